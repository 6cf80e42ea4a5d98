"""The undocumented names of Sphinx: they stand in one file, exist on this Sphinx, and one that is gone is a warning."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sphinx.builders.html import StandaloneHTMLBuilder

import sphinx_fxgraph
from sphinx_fxgraph.sphinxext import sphinx_private

if TYPE_CHECKING:
    from sphinx.testing.util import SphinxTestApp

pytest_plugins = "sphinx.testing.fixtures"

PACKAGE = Path(sphinx_fxgraph.__file__).parent / "sphinxext"
NAMES = "|".join(name.rpartition(".")[2] for name in sphinx_private.PRIVATE)


@pytest.fixture
def app(make_app: Callable[..., SphinxTestApp], tmp_path: Path) -> Callable[[str], SphinxTestApp]:
    """Return a function that makes an application for a builder."""
    (tmp_path / "conf.py").write_text('extensions = ["sphinx_fxgraph"]\n', encoding="utf-8")
    (tmp_path / "index.rst").write_text("Page\n====\n\n.. toctree::\n\n   other\n", encoding="utf-8")
    (tmp_path / "other.rst").write_text("Other\n=====\n", encoding="utf-8")
    return lambda builder: make_app(builder, srcdir=tmp_path)


@pytest.mark.parametrize("builder", ["html", "dirhtml", "singlehtml", "epub", "latex", "text", "man", "gettext"])
def test_each_name_exists_on_this_sphinx(app: Callable[[str], SphinxTestApp], builder: str) -> None:
    made = app(builder)
    assert sphinx_private.missing(made) == []
    assert "this Sphinx has no" not in made.warning.getvalue()


def test_each_name_means_what_it_is_used_for(app: Callable[[str], SphinxTestApp]) -> None:
    made = app("html")
    made.build()
    assert list(sphinx_private.subpages(made.env, "index")) == ["other"]
    assert sphinx_private.holds(made.builder, "html and not draft")
    assert not sphinx_private.holds(made.builder, "latex")
    assert sphinx_private.image_folder(made.builder) == "_images"
    assert sphinx_private.written_page(made.builder)
    assert sphinx_private.has_downloads(made.builder)
    made.registry.translation_handlers["html"] = {"graphviz": (print, None)}
    known = sphinx_private.handlers_of_builder(made)
    assert known is not None
    assert "graphviz" in known


def test_a_name_that_is_gone_is_told_and_the_build_goes_on(
    app: Callable[[str], SphinxTestApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(StandaloneHTMLBuilder, "download_support")
    made = app("html")
    told = made.warning.getvalue()
    assert "this Sphinx has no builder.download_support: pages have no link to the DOT and JSON of a graph" in told
    assert not sphinx_private.has_downloads(made.builder)


def test_the_names_stand_in_one_file() -> None:
    found = []
    for path in sorted(PACKAGE.glob("*.py")):
        if path.name == "sphinx_private.py":
            continue
        code = re.sub(r'"""(?s:.*?)"""', "", path.read_text(encoding="utf-8"))
        lines = (line.partition("#")[0] for line in code.splitlines())
        private = rf"\.({NAMES})\b|\b(app|env|builder|registry|writer|domain)\._[a-z]"
        found += [f"{path.name}: {line.strip()}" for line in lines if re.search(private, line)]
    assert not found
