"""Faulty models in one real build: each costs itself its graph and nothing else. `run.py` has all of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import cases
import project

pytestmark = [pytest.mark.torch, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]

SAMPLE = {
    ("ValueError", "import"),
    ("message of controls", "forward"),
    ("message of markup", "build"),
    ("text that raises", "child"),
    ("cause of itself", "factory"),
    ("own base class", "after"),
    ("KeyboardInterrupt", "inputs"),
    ("argparse", "import"),
    ("os._exit 0", "forward"),
    ("SIGSEGV", "child"),
    ("session", "forward"),
    ("daemon", "build"),
    ("fork", "forward"),
    ("temporary folder", "forward"),
    ("temporary files", "build"),
    ("closed files", "forward"),
    ("output is None", "build"),
    ("builtins", "import"),
    ("program with network", "forward"),
}


TEXTS = {
    "NUL",
    "bidi",
    "long",
    "deep",
    "markup",
    "open",
    "dims",
    "timeout of ages",
    "huge depth",
    "expect error",
    "torn",
}
TEXTS |= {"alt of markup", "name of markup", "near name", "exits", "both", "huge number"}


def chosen() -> list[cases.Case]:
    """A part of the table, or with FXGRAPH_FAULTS=all the whole."""
    models, texts = list(cases.models(seconds=20)), list(cases.directives(seconds=20))
    if os.environ.get("FXGRAPH_FAULTS") == "all":
        return models + texts
    return [case for case in models if (case.kind, case.stage) in SAMPLE] + [
        case for case in texts if case.kind in TEXTS
    ]


def test_each_fault_is_one_typed_warning_or_a_graph_and_the_neighbours_are_the_same(tmp_path: Path) -> None:
    alone = project.build(tmp_path, [])
    assert (alone.status, alone.stray, alone.left) == (0, (), ())
    assert alone.neighbours.count("fxg-svg") == 3
    run = project.build(tmp_path, chosen())
    wrong = [
        (each.case.group, each.case.kind, each.case.stage, each.warnings) for each in run.outcomes if not each.is_right
    ]
    assert wrong == []
    assert (run.status, run.stray, run.left) == (0, (), ())
    assert run.neighbours == alone.neighbours
    said = {(each.case.kind, each.case.stage): each.warnings for each in run.outcomes}
    assert "the following arguments are required: data" in said["argparse", "import"][0][1]
    assert '__name__ == "__main__"' in said["argparse", "import"][0][1]
    assert said["KeyboardInterrupt", "inputs"][0][0] == "fxgraph.input"
    assert said["own base class", "after"][0][0] == "fxgraph.probe"


class TestCachedExecutesNothing:
    """Every file of the cache is a trap, and so are the models: a build must not step into any."""

    def test_traps_are_not_sprung(self, tmp_path: Path) -> None:
        built = project.build(tmp_path, [], "-D", "fxgraph_cache_dir=cache")
        assert built.status == 0
        trap = tmp_path / "sprung"
        spring = f"import pathlib; pathlib.Path({str(trap)!r}).touch()\n"
        cache = tmp_path / "docs/cache"
        # project.build writes the docs anew; the cache is put back beside them.
        kept = {path.name: path.read_text() for path in cache.iterdir()}
        (tmp_path / "models/good.py").write_text(spring)
        folder = tmp_path / "kept"
        folder.mkdir()
        for name, text in kept.items():
            (folder / name).write_text(text.replace("Linear", "Linear<script>alert(1)</script>"))
        (folder / "sitecustomize.py").write_text(spring)
        (folder / "conftest.py").write_text(spring)
        again = project.build(
            tmp_path,
            [],
            "-E",
            "-D",
            f"fxgraph_cache_dir={folder}",
            "-D",
            "fxgraph_mode=cached",
            "-D",
            "fxgraph_dot=none",
        )
        assert again.status == 0
        assert not trap.exists()
        assert "Linear&lt;script&gt;" in again.neighbours  # without an engine the changed record is shown as tables
        assert "<script>alert" not in again.neighbours
