"""Projects that test their docs with the sphinx-testing package (1.0.1) can test pages with a graph."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bs4 import BeautifulSoup
from conftest import DOCS
from sphinx_testing import with_app

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SETTINGS = {"extensions": ["sphinx_fxgraph"], "html_theme": "basic"}


def for_pytest(test: Callable[..., None]) -> Callable[[], None]:
    """Hide a decorated test's arguments from pytest.

    `with_app` passes app, status and warning itself, but uses `functools.wraps`, through which pytest sees these
    arguments and looks for fixtures of their names.
    """

    @functools.wraps(test)
    def run() -> None:
        test()

    run.__signature__ = inspect.Signature()  # type: ignore[attr-defined]  # inspect reads it from any callable
    return run


@pytest.fixture
def _zoo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS)


@pytest.mark.torch
@pytest.mark.usefixtures("_zoo")
@for_pytest
@with_app(create_new_srcdir=True, confoverrides=SETTINGS)
def test_a_page_built_with_app(app: Sphinx, status: StringIO, warning: StringIO) -> None:
    text = "Page\n====\n\n.. fxgraph:: zoo.two_inputs.TwoInputs\n   :inputs: (1, 3, 16, 16), (1, 2, 8, 8)\n"
    Path(app.srcdir, "index.rst").write_text(text, encoding="utf-8")
    app.build()
    assert warning.getvalue() == ""
    page = BeautifulSoup(Path(app.outdir, "index.html").read_text(encoding="utf-8"), "lxml")
    assert len(page.select("figure.fxgraph svg .fxg-op")) == 14
