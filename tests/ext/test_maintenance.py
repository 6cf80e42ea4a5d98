"""What maintainers of a site meet: a cache of records only, ignored files, lost downloads, wrong settings."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Build, Project

from sphinx_fxgraph.layout import graphviz

MODEL = """\
import torch

class Net(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))

    def forward(self, x):
        return self.body(x).softmax(-1)
"""
GRAPH = ".. fxgraph:: net.Net{0}\n   :inputs: 3, 4\n\n"
PAGE = "Nets\n====\n\n" + GRAPH.format("") + GRAPH.format("(9)")
CACHE = "fxgraph_cache_dir = '_fxgraph'\nexclude_patterns = ['_fxgraph']\n"


def fill(project: Project, conf: str = CACHE) -> Project:
    project.configure(conf)
    project.write("net.py", MODEL)
    project.write("index.rst", PAGE)
    return project


def git(project: Project, *command: str) -> str:
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *command]
    return subprocess.run(run, cwd=project.source, capture_output=True, check=True, encoding="utf-8").stdout


def warm(project: Project, *arguments: str) -> Build:
    return project.build("fxgraph-warm", *arguments)


@pytest.mark.torch
def test_only_records_can_be_committed_and_pages_are_the_same(tmp_path: Path, bare: str) -> None:
    project = fill(Project(tmp_path))
    whole = project.build("html", "-W")
    assert whole.status == 0, whole.warnings
    page = whole.page()
    cache = project.source / "_fxgraph"
    both = sum(file.stat().st_size for file in cache.iterdir())
    project.configure(CACHE + "fxgraph_commit = 'records'\n")
    pruned = warm(project, "-D", "fxgraph_prune=1")
    assert pruned.status == 0, pruned.warnings
    assert {path.suffix for path in cache.iterdir()} == {".json"}
    assert not list(cache.glob("*.layout.json"))
    assert sum(file.stat().st_size for file in cache.iterdir()) < 0.6 * both
    assert project.build("fxgraph-check", "-W").status == 0
    kept = {file.name: file.read_bytes() for file in cache.iterdir()}
    shutil.rmtree(project.target)
    first = project.build("html", "-W", "-D", "fxgraph_mode=cached")
    assert (first.status, first.page()) == (0, page)
    second = project.build("html", "-W", "-D", "fxgraph_mode=cached")
    assert "laying out" not in second.output
    assert "0 added, 0 changed, 0 removed" in second.output
    assert {file.name: file.read_bytes() for file in cache.iterdir()} == kept


@pytest.mark.torch
def test_what_git_ignores_is_told(tmp_path: Path) -> None:
    project = fill(Project(tmp_path))
    git(project, "init", "-q")
    assert "git ignores" not in warm(project).output
    project.write(".gitignore", "*.txt\n*.json\n")
    told = warm(project).output
    assert "git ignores 4 of the 6 files there, since .gitignore:2:*.json\n" in told
    assert "add the line !_fxgraph/* to .gitignore" in told
    project.write(".gitignore", "*.txt\n*.json\n!_fxgraph/*\n")
    assert "git ignores" not in warm(project).output


@pytest.mark.torch
def test_downloads_come_back(tmp_path: Path) -> None:
    project = fill(Project(tmp_path))
    first = project.build("html", "-W")
    downloads = first.folder / "_downloads"
    before = sorted(path.name for path in downloads.rglob("*.dot"))
    assert len(before) == 2
    shutil.rmtree(downloads)
    project.build("html", "-W")
    assert sorted(path.name for path in downloads.rglob("*.dot")) == before
    assert "targets for 0 source files" in project.build("html", "-W").output


@pytest.mark.torch
def test_two_versions_of_the_docs_can_share_a_folder(tmp_path: Path) -> None:
    project = fill(Project(tmp_path))
    shared = tmp_path / "shared"
    pages = {}
    for version, width in (("1.0", 8), ("2.0", 16)) * 2:
        project.configure(f"version = '{version}'\nfxgraph_cache_dir = f'{shared}/{{version}}'\n")
        project.write("net.py", MODEL.replace("width=8", f"width={width}"))
        build = project.build("html", "-W", "-a")
        assert build.status == 0, build.warnings
        assert ("capturing" in build.output) == (version not in pages)
        assert pages.setdefault(version, build.page()) == build.page()
    assert "58 parameters" in pages["1.0"]
    assert "114 parameters" in pages["2.0"]


def test_settings_of_a_wrong_type_are_warned_of_and_the_default_is_used(project: Project) -> None:
    project.configure(
        "import pathlib\nfxgraph_cache_dir = pathlib.Path('_fxgraph')\n"
        "fxgraph_mode = 'cached'\nshow_warning_types = True\n"
        "def executor(): return None\nfxgraph_executor = executor\nfxgraph_timeout = '90'\nfxgraph_defaults = []\n"
    )
    project.write("index.rst", "Index\n=====\n")
    build = project.build("html")
    assert build.status == 0
    for told in (
        (
            'fxgraph_executor is a string, such as "package.module:factory", not function; '
            "the default is used [fxgraph.option]"
        ),
        "fxgraph_timeout is a whole number, not str; the default is used [fxgraph.option]",
        "fxgraph_defaults is a dictionary, not list; the default is used [fxgraph.option]",
    ):
        assert told in build.warnings
    assert "fxgraph_cache_dir is" not in build.warnings


def test_an_engine_is_found_where_its_distribution_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    info = folder / "graphviz_pure-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: graphviz-pure\nVersion: 1.0\n")
    program = tmp_path / "elsewhere" / "bin" / "graphviz-pure"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (info / "RECORD").write_text("../elsewhere/bin/graphviz-pure,,\n")
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    importlib.invalidate_caches()
    assert Path(graphviz.find_engine().command).resolve() == program.resolve()
