"""A torch that cannot be used, and Graphviz that is not there: one warning that says what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import environments

pytestmark = [pytest.mark.torch, pytest.mark.skipif(sys.platform == "win32", reason="makes symbolic links")]

CASES = [each for each in environments.ENVIRONMENTS if each.words and not each.settings]


@pytest.mark.parametrize("environment", CASES, ids=lambda each: each.name)
def test_one_warning_says_what_is_missing(environment: environments.Environment, tmp_path: Path) -> None:
    result = environments.build(environment, tmp_path, tmp_path)
    assert result.stray == ()
    assert [environment.words in text for text in result.warnings] == [True]
    assert result.is_right
