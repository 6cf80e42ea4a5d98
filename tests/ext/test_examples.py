"""The example of a model zoo: docs with and without torch, and a workflow that checks the committed graphs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import DOCS

pytestmark = pytest.mark.torch

MODELS = ["AutoEncoder", "ConvNet", "Encoder", "Recurrent", "UNet"]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as a clone has it."""
    folder = tmp_path_factory.mktemp("examples") / "tinyzoo"
    shutil.copytree(DOCS / "examples/tinyzoo", folder, ignore=shutil.ignore_patterns("__pycache__", "models", "_build"))
    return folder


def commands(folder: Path, job: str) -> list[str]:
    """The commands of a job of the example's workflow, without those that install."""
    steps = yaml.safe_load((folder / ".github/workflows/docs.yml").read_text())["jobs"][job]["steps"]
    return [step["run"] for step in steps if "run" in step and "pip install" not in step["run"]]


def run(command: str, folder: Path, python: str) -> str:
    """Run a command in the environment of an interpreter and return what it printed."""
    path = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, check=False, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def inspect(pages: Path) -> None:
    """Look for a graph on each page, for two in the API reference, and for a thumbnail of each model."""
    for name in MODELS:
        page = BeautifulSoup((pages / f"models/{name}.html").read_text(encoding="utf-8"), "lxml")
        assert len(page.select("svg.fxg-svg")) == 1, name
        assert page.select("table.fxg-stages"), name
    reference = BeautifulSoup((pages / "api.html").read_text(encoding="utf-8"), "lxml")
    assert len(reference.select("svg.fxg-svg")) == 2
    index = BeautifulSoup((pages / "index.html").read_text(encoding="utf-8"), "lxml")
    assert len(index.select(".fxg-thumbs svg")) == len(MODELS)


def test_the_pages_are_built_with_torch(clone: Path) -> None:
    before = {path.name: path.read_bytes() for path in (clone / "docs/graphs").iterdir()}
    told = run(f"{sys.executable} -m sphinx -nW --keep-going docs docs/_build/torch", clone, sys.executable)
    inspect(clone / "docs/_build/torch")
    if "capturing" not in told:  # the release of torch is that of the committed records
        assert {path.name: path.read_bytes() for path in (clone / "docs/graphs").iterdir()} == before


def test_the_pages_are_built_without_torch(clone: Path, bare: str) -> None:
    (command,) = commands(clone, "pages")
    assert "capturing" not in run(command, clone, bare)
    inspect(clone / "docs/_build/html")


def test_the_workflow_finds_the_committed_graphs_fresh(clone: Path) -> None:
    (command,) = commands(clone, "graphs")
    run(command, clone, sys.executable)
    first, *_ = commands(clone, "graphs")
    source = clone / "src/tinyzoo/models.py"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("code: int = 16", "code: int = 8"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx_fxgraph", *first.split()[1:]],
        cwd=clone,
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    source.write_text(text, encoding="utf-8")
    assert done.returncode == 1
    assert "tinyzoo.AutoEncoder: tinyzoo/models.py changed" in done.stderr
