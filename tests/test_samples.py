"""The samples for other projects: hooks, a workflow, Read the Docs. Their commands are read from the files, and run."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from conftest import DOCS

pytestmark = pytest.mark.torch

HOOKS = {hook["id"]: hook for hook in yaml.safe_load((DOCS.parent / ".pre-commit-hooks.yaml").read_text())}
WORKFLOW = yaml.safe_load((DOCS / "samples/github-actions/docs.yml").read_text())


def steps(job: str) -> Iterator[str]:
    """The commands of a job, but for what installs."""
    for step in WORKFLOW["jobs"][job]["steps"]:
        if "run" in step and "pip install" not in step["run"]:
            yield step["run"]


def run(command: str, folder: Path, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """Run it as a shell in the environment of an interpreter does."""
    path = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path}
    return subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, check=False, encoding="utf-8"
    )


def hook(name: str) -> str:
    return f"{HOOKS[name]['entry']} {shlex.join(HOOKS[name]['args'])}"


def test_the_difference_in_the_handbook_is_what_the_command_prints() -> None:
    page = (DOCS / "usage/diff.rst").read_text(encoding="utf-8")
    command, _, told = textwrap.dedent(
        page[page.index("   $ sphinx-fxgraph diff") : page.index("Each side is")]
    ).partition("\n")
    done = run(command.removeprefix("$ "), DOCS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == told.strip()


@pytest.fixture(scope="module")
def readthedocs() -> ModuleType:
    """The script that builds a sample."""
    spec = importlib.util.spec_from_file_location("readthedocs_build", DOCS / "samples/readthedocs/build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def clone(readthedocs: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample without torch, its cache filled as the project's people fill it."""
    folder: Path = readthedocs.prepared("committed", tmp_path_factory.mktemp("samples"))
    return folder


def test_the_hooks_and_the_workflow_find_a_fresh_cache_fresh(clone: Path) -> None:
    commands = [hook("fxgraph-warm"), hook("fxgraph-check"), *steps("graphs")]
    assert len(commands) == 3
    for command in commands:
        done = run(command, clone)
        assert (done.returncode, done.stderr) == (0, ""), command


def test_the_workflow_builds_pages_without_torch(clone: Path, bare: str) -> None:
    (command,) = steps("pages")
    done = run(command, clone, bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert "<svg" in (clone / "docs/_build/html/index.html").read_text(encoding="utf-8")


def test_read_the_docs_builds_pages_without_torch_graphviz_and_network(
    clone: Path, bare: str, readthedocs: ModuleType
) -> None:
    page = (readthedocs.built(clone, bare, without="torch") / "index.html").read_text(encoding="utf-8")
    assert "Upsample" in page


def test_read_the_docs_captures_where_torch_is_installed(readthedocs: ModuleType, tmp_path: Path) -> None:
    pages = readthedocs.built(readthedocs.prepared("torch-cpu", tmp_path), sys.executable)
    assert "Upsample" in (pages / "index.html").read_text(encoding="utf-8")
