"""The samples for other projects: hooks, a workflow, Read the Docs. Their commands are read from the files, and run."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
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


@pytest.fixture(scope="module")
def committed(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the sample and its cache, and the hooks installed by pre-commit."""
    hooks = tmp_path_factory.mktemp("hooks")
    shutil.copy(DOCS.parent / ".pre-commit-hooks.yaml", hooks)
    git(hooks, "init")
    git(hooks, "add", ".")
    git(hooks, "commit", "-m", "hooks")
    folder = tmp_path_factory.mktemp("committed") / "repository"
    shutil.copytree(clone, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".gitignore").write_text("__pycache__/\n")  # else pre-commit takes them for changes that are not staged
    sample = (DOCS / "samples/pre-commit/.pre-commit-config.yaml").read_text(encoding="utf-8")
    sample = re.sub(
        r"repo: \S+", f"repo: {hooks}", sample.replace("v0.1.0", git(hooks, "rev-parse", "HEAD").stdout.strip())
    )
    both = sample + re.search(r" *- id: .*\n.*", sample)[0].replace("fxgraph-check", "fxgraph-warm")  # type: ignore[index]
    (folder / ".pre-commit-config.yaml").write_text(both)
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "one")
    return folder


def git(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return run(shlex.join(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command]), folder)


def precommit(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What pre-commit does for those who have it."""
    return run(f"PRE_COMMIT_HOME={folder.parent / 'home'} {sys.executable} -m pre_commit {shlex.join(command)}", folder)


def test_the_hooks_refuse_a_commit_until_the_cache_is_part_of_it(committed: Path) -> None:
    model = committed / "src/tinyseg/unet.py"
    model.write_text(model.read_text().replace("nn.MaxPool2d(2),", "nn.MaxPool2d(2), nn.ReLU(),"))
    page = committed / "docs/index.rst"
    page.write_text(page.read_text() + "\n.. fxgraph:: tinyseg.UNet(4)\n   :inputs: f32[1, 3, 32, 32]\n")
    git(committed, "add", "-u")
    stale = precommit(committed, "run", "fxgraph-check")
    assert stale.returncode == 1
    assert "index.rst:4: WARNING: tinyseg.UNet: tinyseg/unet.py changed" in stale.stdout
    assert "  + deep.1  ReLU  1×8×16×16 f32" in stale.stdout
    assert "index.rst:8: WARNING: tinyseg.UNet(4): it was never captured" in stale.stdout
    assert "sphinx-fxgraph warm docs" in stale.stdout

    warmed = precommit(committed, "run", "fxgraph-warm")
    assert warmed.returncode == 1
    assert "2 of 2 graphs are in docs/graphs" in warmed.stdout, warmed.stdout
    assert warmed.stdout.count(": not added to git") == 3
    assert "to add them: git add docs/graphs" in warmed.stdout
    assert "Unstaged files" not in warmed.stdout
    git(committed, "add", ".")
    fresh = precommit(committed, "run")
    assert fresh.returncode == 0, fresh.stdout
    assert fresh.stdout.count("Passed") == 2


def test_the_workflow_finds_a_fresh_cache_fresh(clone: Path) -> None:
    (command,) = steps("graphs")
    done = run(command, clone)
    assert (done.returncode, done.stderr) == (0, "")


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
