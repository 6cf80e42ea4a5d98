"""What goes wrong is told at the directive, in every build, and shown on the page."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag
from conftest import Build, Project

pytestmark = pytest.mark.torch

TYPES = "show_warning_types = True\n"  # before Sphinx 8 they are not shown by default

PAGE = """
Models
======

.. fxgraph:: zoo.broken.Misfit
   :inputs: 1, 4
   :caption: Misfit

.. fxgraph:: zoo.broken.Undecided
   :inputs: 1, 4
   :tracer: symbolic
   :caption: Undecided

.. fxgraph:: zoo.broken.Unbuildable
   :inputs: 5, 1, 10
   :caption: Unbuildable

.. fxgraph:: zoo.broken.Missing
   :inputs: 1, 4
   :caption: Missing

.. fxgraph:: zoo.examples.Mlp
   :inputs: zoo.broken:Unbuildable(16, 3)
   :caption: No inputs
"""

EXPECTED = """
:orphan:

Expected
========

.. fxgraph:: zoo.broken.Misfit
   :inputs: 1, 4
   :expect: error

.. fxgraph:: zoo.examples.Mlp
   :inputs: 1, 4
   :expect: error
"""

WARNINGS = [
    "expected.rst:11: WARNING: zoo.examples.Mlp: it was expected to fail, but .* [fxgraph.expect]",
    "index.rst:5: WARNING: zoo.broken.Misfit: The model cannot be run: RuntimeError: mat1 and .* [fxgraph.probe]",
    "index.rst:9: WARNING: zoo.broken.Undecided: The model cannot be traced: .*zoo/broken.py:27.* [fxgraph.trace]",
    "index.rst:14: WARNING: zoo.broken.Unbuildable: The model cannot be built: .*zoo/broken.py:38.* [fxgraph.build]",
    "index.rst:18: WARNING: zoo.broken.Missing: The model cannot be imported: .*Missing.* [fxgraph.import]",
    "index.rst:22: WARNING: zoo.examples.Mlp: The inputs cannot be made: .*3 heads.* [fxgraph.input]",
]


def told(build: Build) -> list[str]:
    """The warnings, each with its place from the docs folder on, in the order of pages and lines."""
    return [line.rpartition("/docs/")[2] for line in build.warnings.splitlines()]


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Build]:
    project = Project(tmp_path_factory.mktemp("failing"))
    project.configure(TYPES)
    project.write("index.rst", PAGE)
    project.write("expected.rst", EXPECTED)
    return project, project.build("html", "-W", "--keep-going")


@pytest.fixture(scope="module")
def figure(failing: tuple[Project, Build]) -> Callable[[str], tuple[Tag, Tag]]:
    """A figure by its caption, and what is told of the failure behind it."""
    page = BeautifulSoup(failing[1].page(), "lxml")

    def find(caption: str) -> tuple[Tag, Tag]:
        (found,) = [each for each in page.select("figure.fxgraph") if caption in each.select("figcaption")[0].text]
        told = found.find_next(class_="fxg-failure")
        assert isinstance(told, Tag)
        return found, told

    return find


def test_each_failure_is_one_located_warning(failing: tuple[Project, Build]) -> None:
    _, build = failing
    assert build.status == 1
    assert len(told(build)) == len(WARNINGS)
    for line, pattern in zip(told(build), WARNINGS, strict=True):
        assert re.fullmatch(pattern.replace("[", r"\[").replace("]", r"\]"), line), line


def test_it_is_told_in_every_build_and_not_tried_again(failing: tuple[Project, Build]) -> None:
    project, first = failing
    second = project.build("html", "-W", "--keep-going")
    assert second.status == 1
    assert second.warnings == first.warnings
    assert "capturing" not in second.output


def test_it_can_be_suppressed_by_kind(failing: tuple[Project, Build]) -> None:
    project, _ = failing
    build = project.build("html", "-D", "suppress_warnings=fxgraph.trace,fxgraph.probe")
    assert [line.rpartition("[")[2] for line in told(build)] == [
        "fxgraph.expect]",
        "fxgraph.build]",
        "fxgraph.import]",
        "fxgraph.input]",
    ]


def test_a_run_that_fails_shows_what_ran(figure: Callable[[str], tuple[Tag, Tag]]) -> None:
    shown, told = figure("Misfit")
    paths = [op["data-path"] for op in shown.select("svg .fxg-op")]
    assert set(paths) >= {"x", "encoder.0", "encoder.1", "head"}
    assert "mat1 and mat2 shapes cannot be multiplied" in told.text
    assert "zoo/broken.py:15" in told.text


def test_a_trace_that_fails_shows_how_far_it_came_and_the_modules(figure: Callable[[str], tuple[Tag, Tag]]) -> None:
    shown, told = figure("Undecided")
    assert [op["data-path"] for op in shown.select("svg .fxg-op")] == ["x", "abs", "max", "gt"]
    outline = shown.find_next(class_="fxg-outline")
    assert outline is not None
    assert re.search(r"small +Linear +10 parameters", outline.text)
    assert "zoo/broken.py:27" in told.text


@pytest.mark.parametrize("caption", ["Unbuildable", "Missing", "No inputs"])
def test_nothing_known_shows_the_target_and_the_message(figure: Callable[[str], tuple[Tag, Tag]], caption: str) -> None:
    shown, told = figure(caption)
    assert shown.select("code")[0].text.startswith("zoo.")
    assert not shown.select("svg")
    assert len(told.select("p")) >= 2


def test_a_mended_model_is_captured_and_the_warning_gone(project: Project) -> None:
    broken = "from torch import nn\n\nclass Net(nn.Linear):\n    def __init__(self):\n        super().__init__(4, {})\n"
    project.write("net.py", broken.format("1 / 0"))
    project.write("index.rst", "Net\n===\n\n.. fxgraph:: net.Net\n   :inputs: 1, 4\n")
    assert "net.py:5" in project.build("html").warnings
    project.write("net.py", broken.format("2"))
    build = project.build("html", "-W")
    assert build.warnings == ""
    assert "<svg" in build.page()


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Build]:
    project = Project(tmp_path_factory.mktemp("engine"))
    project.configure(TYPES + "fxgraph_dot = 'no-such-program'\n")
    directive = ".. fxgraph:: zoo.examples.Mlp\n   :inputs: 1, 4\n   :caption: A net\n\n"
    project.write("index.rst", "Net\n===\n\n" + directive + directive.replace("1, 4", "2, 4"))
    return project, project.build("html")


def test_without_an_engine_there_is_one_warning_and_the_rest_of_the_page(without: tuple[Project, Build]) -> None:
    _, build = without
    assert build.status == 0
    assert len(build.warnings.splitlines()) == 1
    assert "no-such-program" in build.warnings
    assert "[fxgraph.layout]" in build.warnings
    page = BeautifulSoup(build.page(), "lxml")
    assert not page.select("svg.fxg-svg")
    assert len(page.select(".fxg-outline")) == 2
    assert len(page.select("table.fxg-nodes")) == 2


def test_without_an_engine_it_is_told_again_in_every_build_until_there_is_one(without: tuple[Project, Build]) -> None:
    project, first = without
    assert project.build("html").warnings == first.warnings
    project.configure(TYPES)
    build = project.build("html", "-W")
    assert build.warnings == ""
    assert "capturing" not in build.output
    assert len(BeautifulSoup(build.page(), "lxml").select("svg.fxg-svg")) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="the engine is a shell script")
@pytest.mark.parametrize("status", [0, 1])
def test_an_engine_that_complains_or_fails_is_told_in_every_build(
    project: Project, tmp_path: Path, status: int
) -> None:
    engine = tmp_path / "engine"
    real = shutil.which("graphviz-pure", path=str(Path(sys.executable).parent))
    engine.write_text(f"#!/bin/sh\necho 'this engine is unwell' >&2\n'{real}' \"$@\"\nexit {status}\n")
    engine.chmod(0o755)
    project.configure(f"{TYPES}fxgraph_dot = {str(engine)!r}\n")
    project.write("index.rst", "Net\n===\n\n.. fxgraph:: zoo.examples.Mlp\n   :inputs: 1, 4\n")
    for _ in range(2):
        build = project.build("html", "-W", "--keep-going")
        assert build.status == 1
        (line,) = told(build)
        assert line.startswith("index.rst:4: WARNING: Mlp: ")
        assert "this engine is unwell" in line
        assert line.endswith("[fxgraph.layout]")
        assert "<svg" in build.page()  # laid out plainly where the engine fails


def test_without_torch_what_was_captured_is_shown(project: Project, tmp_path: Path) -> None:
    project.write("net.py", "from torch import nn\n\nclass Net(nn.Linear):\n    pass\n")
    project.configure(TYPES)
    net = ".. fxgraph:: net.Net(4, 2)\n   :inputs: 1, 4\n\n"
    project.write("index.rst", "Net\n===\n\n" + net)
    project.build("html", "-W")
    project.write("net.py", "from torch import nn\n\nclass Net(nn.Linear):\n    edited = True\n")
    project.write("index.rst", "Net\n===\n\n" + net + net.replace("(4, 2)", "(4, 3)"))
    kept = {path.name: path.read_bytes() for path in (project.target / "doctrees" / "fxgraph").iterdir()}
    shadow = tmp_path / "shadow" / "torch"
    shadow.mkdir(parents=True)
    shadow.joinpath("__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    for _ in range(2):
        path = os.pathsep.join([str(shadow.parent), os.environ.get("PYTHONPATH", "")])
        build = project.build("html", PYTHONPATH=path)
        old, new = told(build)
        assert old.startswith("index.rst:4: WARNING: net.Net(4, 2): shown as it was captured before. ")
        assert old.endswith("[fxgraph.cache]")
        assert new.startswith("index.rst:7: WARNING: net.Net(4, 3): The model cannot be imported: ")
        assert "torch" in new
        page = BeautifulSoup(build.page(), "lxml")
        assert len(page.select("svg.fxg-svg")) == 1
        assert {p.name: p.read_bytes() for p in (project.target / "doctrees" / "fxgraph").iterdir()} == kept
    build = project.build("html", "-W")
    assert build.warnings == ""
    assert len(BeautifulSoup(build.page(), "lxml").select("svg.fxg-svg")) == 2


REPORT = """
Report
======

.. fxgraph-report::
   :caption: All of them

.. fxgraph-report::
   :only: failed
"""

MODELS = """
Models
======

.. fxgraph:: zoo.branch.EarlyExit
   :inputs: 1, 3, 32, 32
   :name: exit

.. fxgraph:: zoo.broken.Misfit
   :inputs: 1, 4
   :expect: error

.. fxgraph:: needs.Net
   :inputs: 1, 4
"""


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Build]:
    """A project with a report, a model that takes one path, one that shall fail, one that is mocked."""
    project = Project(tmp_path_factory.mktemp("report"))
    project.configure(
        TYPES
        + "extensions += ['sphinx.ext.autodoc']\nautodoc_mock_imports = ['not_there']\nfxgraph_require_verdict = True\n"
    )
    project.write("needs.py", "from not_there.kernels import fast\n\nclass Net: pass\n")
    project.write("index.rst", "Index\n=====\n\n.. toctree::\n\n   models\n   report\n")
    project.write("models.rst", MODELS)
    project.write("report.rst", REPORT)
    return project, project.build("html")


def rows(build: Build) -> list[list[list[str]]]:
    tables = BeautifulSoup(build.page("report.html"), "lxml").select("table.fxg-report")
    return [[[cell.text.strip() for cell in row.select("td")] for row in table.select("tbody tr")] for table in tables]


def test_a_report_tells_of_every_model_and_of_those_that_failed(reported: tuple[Project, Build]) -> None:
    everything, failed = rows(reported[1])
    assert [row[:2] for row in everything] == [
        ["exit", "models"],
        ["zoo.broken.Misfit", "models"],
        ["needs.Net", "models"],
    ]
    assert everything[0][2:] == ["captured", "observed", "16", "one path", ""]
    assert everything[1][2].startswith("as expected: The model cannot be run: RuntimeError: mat1")
    assert everything[2][2].startswith("The model cannot be imported: ")
    assert failed == [row[:3] for row in everything[1:]]
    page = BeautifulSoup(reported[1].page("report.html"), "lxml")
    assert page.select("table.fxg-report a.reference.internal")[0]["href"] == "models.html#exit"


def test_a_report_follows_its_models(reported: tuple[Project, Build]) -> None:
    project, _ = reported
    project.write("models.rst", MODELS.partition(".. fxgraph:: needs")[0])
    build = project.build("html")
    assert [row[0] for row in rows(build)[0]] == ["exit", "zoo.broken.Misfit"]
    assert "no targets are out of date" in project.build("html").output.lower() or "0 changed" in build.output
    project.write("models.rst", MODELS)


def test_one_path_is_a_warning_where_a_verdict_is_required(reported: tuple[Project, Build]) -> None:
    (line,) = [line for line in told(reported[1]) if "fxgraph.verdict" in line]
    assert re.fullmatch(
        r"models.rst:5: WARNING: zoo.branch.EarlyExit: one path, as run \(.*\) \[fxgraph.verdict\]", line
    )


def test_a_module_that_autodoc_mocks_is_told_with_what_a_capture_needs(reported: tuple[Project, Build]) -> None:
    (line,) = [line for line in told(reported[1]) if "fxgraph.mock" in line]
    assert line.startswith("models.rst:13: WARNING: needs.Net: The model cannot be imported: ")
    assert "no module 'not_there', which needs imports" in line
    assert "a capture needs the real one or a committed cache" in line
