"""A small part of benchmarks/fuzz/run.py, the same inputs each time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("fuzz_run", Path(__file__).parents[2] / "benchmarks/fuzz/run.py")
assert _SPEC is not None
assert _SPEC.loader is not None
fuzz = importlib.util.module_from_spec(_SPEC)
sys.modules["fuzz_run"] = fuzz
_SPEC.loader.exec_module(fuzz)


@pytest.mark.parametrize("name", fuzz.GROUPS)
def test_random_input_is_a_value_or_a_typed_error(name: str) -> None:
    result = fuzz.run(name, 60, number=7)
    assert result.failure == ""
    assert result.inputs >= 50
