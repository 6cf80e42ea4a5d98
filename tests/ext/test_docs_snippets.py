"""What the docs show is built: every fxgraph directive of handbook and README, in reStructuredText and in MyST."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from conftest import DOCS, Build, Project

sys.path.insert(0, str(DOCS / "extensions"))
from example import as_myst

README = DOCS.parent / "README.md"

pytestmark = pytest.mark.torch


def fenced(text: str, language: str) -> Iterator[str]:
    """The code blocks of a MyST or Markdown page."""
    for match in re.finditer(rf"^(`{{3,}}){re.escape(language)}\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL):
        yield match[2]


def indented(text: str, directive: str) -> Iterator[str]:
    """The contents of one kind of directive in a page of reStructuredText."""
    for match in re.finditer(rf"^\.\. {re.escape(directive)}\n((?: {{3}}.*\n|\n)+)", text, re.MULTILINE):
        yield textwrap.dedent(match[1])


def snippets() -> Iterator[tuple[str, str, str]]:
    """Every snippet with a graph as (name, suffix, text)."""
    for path in (README, *sorted(DOCS.rglob("*.rst")), *sorted(DOCS.rglob("*.md"))):
        if "_build" in path.parts or path.parent.name == "models":  # the gallery's, written by a build of the docs
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".rst":
            shown = [*indented(text, "example::"), *indented(text, "code-block:: rst")]
        else:
            shown = list(fenced(text, "rst"))
        name = "-".join(path.relative_to(DOCS.parent).with_suffix("").parts).lower()
        for number, snippet in enumerate(shown, 1):
            if re.search("fxgraph(-table|-diff)?::", snippet) and "mypackage" not in snippet:  # see test_tutorial
                yield f"{name}-{number}", ".rst", snippet
                yield f"{name}-{number}-myst", ".md", as_myst(snippet) + "\n"
        for number, snippet in enumerate(fenced(text, "md") if path.suffix == ".md" else (), 1):
            if "{fxgraph}" in snippet:
                yield f"{name}-md-{number}", ".md", snippet


SNIPPETS = list(snippets())

_NAME = re.compile(
    r"(:name:\ |numref}`|fx:\w+[:}]`|fxgraph-table(?:::|})\ )(?!zoo\.)(\S+?)(?=[`,]|$)", re.MULTILINE | re.VERBOSE
)
"""Where a snippet names a figure of its own."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """One build of a project with a page for each snippet."""
    project = Project(tmp_path_factory.mktemp("snippets"))
    project.configure("numfig = True\n")
    names = "".join(f"   {name}\n" for name, _, _ in SNIPPETS)
    project.write("index.rst", f"Snippets\n========\n\n.. toctree::\n\n{names}")
    for name, suffix, text in SNIPPETS:
        title = f"# {name}\n\n" if suffix == ".md" else f"{name}\n{'=' * len(name)}\n\n"
        # a reader pastes one of them, here they share a project, and names of figures must differ
        text = _NAME.sub(rf"\g<1>{name}-\2", text)
        project.write(name + suffix, title + text)
    return project.build("html", "-nW", "--keep-going")


def test_all_snippets_build_without_a_warning(built: Build) -> None:
    assert built.warnings == ""
    assert built.status == 0


@pytest.mark.parametrize("name", [name for name, _, _ in SNIPPETS])
def test_a_snippet_becomes_a_figure(built: Build, name: str) -> None:
    figures = BeautifulSoup(built.page(f"{name}.html"), "lxml").select("figure.fxgraph")
    text = next(text for found, _, text in SNIPPETS if found == name)
    assert len(figures) == len(re.findall(r"fxgraph(?:-diff)?(?:::|})", text))
    assert all(figure.select("svg .fxg-op") for figure in figures)
    if not figures:
        assert BeautifulSoup(built.page(f"{name}.html"), "lxml").select("table.fxg-table tbody tr")


def test_the_example_in_both_languages_is_the_same_figure(built: Build) -> None:
    def boxes(name: str) -> list[tuple[str, str]]:
        page = BeautifulSoup(built.page(f"{name}.html"), "lxml")
        return [(str(op["data-path"]), str(op["data-kind"])) for op in page.select(".fxg-op")]

    pairs = [name for name, suffix, _ in SNIPPETS if suffix == ".rst"]
    assert len(pairs) > 5
    for name in pairs:
        assert boxes(name) == boxes(f"{name}-myst"), name


def test_python_in_the_readme_runs(tmp_path: Path) -> None:
    blocks = [block for block in fenced(README.read_text(encoding="utf-8"), "python") if "import torch" in block]
    assert blocks
    for block in blocks:
        subprocess.run([sys.executable, "-c", block], check=True, cwd=tmp_path)


@pytest.mark.parametrize("page", ["migration.rst", "paper.rst", "python.rst"])
def test_python_in_the_handbook_gives_what_it_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(DOCS / "usage" / page), module_relative=False)
    assert tried
    assert not failed


def test_commands_in_the_docs_run(tmp_path: Path) -> None:
    pages = [(DOCS / "usage" / name).read_text(encoding="utf-8") for name in ("cli.rst", "paper.rst")]
    blocks = [*fenced(README.read_text(encoding="utf-8"), "sh")]
    blocks += [block for page in pages for block in indented(page, "code-block:: sh")]
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("sphinx-fxgraph ")]
    assert len(commands) >= 2
    for command in commands:
        program = Path(sys.executable).with_name("sphinx-fxgraph")
        words = shlex.split(command)[1:]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(DOCS), os.environ.get("PYTHONPATH"))))
        }
        run = subprocess.run(
            [program, *words], capture_output=True, check=False, cwd=tmp_path, encoding="utf-8", env=environment
        )
        assert run.returncode == 0, run.stderr
        if "-o" in words:
            file = tmp_path / words[words.index("-o") + 1]
            content = file.read_bytes()
            assert content.startswith(b"%PDF") if file.suffix == ".pdf" else b"Linear" in content
        else:
            assert "Linear" in run.stdout


def test_the_reference_is_made_from_every_declared_option() -> None:
    page = (DOCS / "usage" / "options.rst").read_text(encoding="utf-8")
    assert re.findall(r"^\.\. options:: (\w+)$", page, re.MULTILINE) == ["capture", "view", "figure"]


def test_the_handbook_names_what_only_a_difference_has() -> None:
    from sphinx_fxgraph.sphinxext.diff import OURS

    page = (DOCS / "usage" / "diff.rst").read_text(encoding="utf-8")
    assert {name for name in OURS if f"``:{name}:``" in page} == set(OURS)


def test_the_handbook_names_every_warning_and_no_other() -> None:
    from sphinx_fxgraph.sphinxext.messages import SUBTYPES

    page = (DOCS / "usage" / "failures.rst").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^``fxgraph\.(\w+)``$", page, re.MULTILINE)) == sorted(SUBTYPES)


def test_a_fresh_machine_does_what_the_readme_says() -> None:
    """The script that checks a fresh machine finds each command in the README, as it stands there."""
    script = (DOCS.parent / ".ci" / "run").read_text(encoding="utf-8")
    patterns = re.findall(r"^\w+=\$\(readme '(.+)'\)$", script, re.MULTILINE)
    assert len(patterns) == 3
    for pattern in patterns:
        assert len(re.findall(pattern, README.read_text(encoding="utf-8"), re.MULTILINE)) == 1, pattern
