"""The page on style sheets names variables and classes that exist."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import DOCS

import sphinx_fxgraph

PACKAGE = Path(sphinx_fxgraph.__file__).parent


def test_every_class_and_variable_on_the_page_exists() -> None:
    page = (DOCS / "usage" / "themes.rst").read_text(encoding="utf-8")
    sources = [path for kind in ("*.py", "*.css") for path in PACKAGE.rglob(kind)]
    known = set(re.findall(r"fxg-[\w-]+", "".join(path.read_text(encoding="utf-8") for path in sources)))
    named = set(re.findall(r"fxg-[a-z-]+", page))
    assert len(named) > 20
    assert named - known == set()
