"""The private names of torch: each stands in one file, exists on this torch, and is missed aloud where it is gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import sphinx_fxgraph  # noqa: E402 - only where torch is
from sphinx_fxgraph import model_record  # noqa: E402
from sphinx_fxgraph.capture import torch_private  # noqa: E402

PACKAGE = Path(sphinx_fxgraph.__file__).parent
A_PRIVATE_NAME = re.compile(r"^(?!\s*#).*(\btorch(\.\w+)*\._(?!_)\w+|from torch[\w.]* import .*(?<![\w.])_(?!_)\w+)")


@pytest.mark.parametrize("name", [*torch_private.PRIVATE])
def test_a_private_name_exists_on_this_torch(name: str) -> None:
    assert torch_private.exists(name)


def test_private_names_stand_in_one_file() -> None:
    found = []
    for path in PACKAGE.rglob("*.py"):
        if path.name == "torch_private.py":
            continue
        code = re.sub(r'"""(?s:.*?)"""|"[^"\n]*"|`[^`\n]*`', "", path.read_text(encoding="utf-8"))
        found += [
            f"{path.name}: {line.strip()}" for line in code.splitlines() if A_PRIVATE_NAME.match(line.split("#")[0])
        ]
    assert not found


def test_a_name_that_is_gone_is_told_in_every_record(monkeypatch: pytest.MonkeyPatch) -> None:
    assert torch_private.missing() == ()
    monkeypatch.delattr(torch._C, "_dispatch_has_kernel_for_dispatch_key")
    torch_private.missing.cache_clear()
    try:
        record = model_record(torch.nn.Linear(4, 2), torch.ones(1, 4))
        assert record.macs == 8
        (note,) = record.record.notes
        assert "has no torch._C._dispatch_has_kernel_for_dispatch_key: composite operators" in note
    finally:
        torch_private.missing.cache_clear()
