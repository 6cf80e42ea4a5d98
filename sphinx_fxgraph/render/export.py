"""Write a record as a file: SVG, HTML, PDF, PNG, DOT or JSON."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any, cast

from sphinx_fxgraph.layout.graphviz import Engine, find_engine
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import document, html_page, summary
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.render.dot import source

POINTS = 0.75
"""Points of a PDF for each unit of the drawing."""
SCALE = 2.0
"""Pixels of a PNG for each unit of the drawing: sharp on the displays of today."""


class ConverterMissingError(Exception):
    """CairoSVG, or the cairo library that it uses, is not installed."""


def pdf(svg: str) -> bytes:
    """Return a PDF of one page in the size of the picture; its fonts are embedded and its text can be selected.

    Args:
        svg: what `print_svg` gives.

    Raises:
        ConverterMissingError: CairoSVG is not there.
    """
    return cast("bytes", _cairosvg().svg2pdf(bytestring=svg.encode()))


def png(svg: str, scale: float = SCALE) -> bytes:
    """Return a PNG.

    Args:
        svg: what `print_svg` gives.
        scale: pixels for each px of the drawing.

    Raises:
        ConverterMissingError: CairoSVG is not there.
    """
    return cast("bytes", _cairosvg().svg2png(bytestring=svg.encode(), scale=scale))


CONVERTERS: dict[str, Callable[[str], bytes]] = {".pdf": pdf, ".png": png}
"""By suffix of the file."""


def missing() -> str:
    """Return why PDF and PNG cannot be written here; empty where they can."""
    try:
        _cairosvg()
    except ConverterMissingError as error:
        return str(error)
    return ""


def _cairosvg() -> Any:
    try:
        import cairosvg
    except ImportError:
        raise ConverterMissingError(
            "PDF and PNG need CairoSVG: pip install 'sphinx-fxgraph[print]'; svg and html need nothing"
        ) from None
    except OSError as error:  # it is there, and the library that it loads is not
        raise ConverterMissingError(
            f"PDF and PNG need the cairo library, on Debian the package libcairo2; CairoSVG says: {error}"
        ) from None
    return cairosvg


_PX = {"in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "pt": 96 / 72, "px": 1.0}
"""Pixels of SVG for each unit of length."""
_ONE_COLUMN = 5 * 96.0
"""In a column of a page that is narrower than this, panels would make the letters too small."""
_PRINTED = 300 / 96
"""Pixels of a PNG for each px of a figure whose width is given: 300 for an inch."""


def length(text: str) -> float:
    """Return a length such as ``3.3in``, ``85mm``, ``8.5cm``, ``240pt`` or ``320px`` in px of 1/96 inch.

    Raises:
        ValueError: the text is no length.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *(in|cm|mm|pt|px)", text.strip())
    if not found or not float(found[1]):
        raise ValueError(f"{text!r} is no width; for example 3.3in, 85mm, 240pt")
    return float(found[1]) * _PX[found[2]]


def print_svg(
    record: Record, look: ViewOptions, title: str, engine: Engine | None = None, width: float | None = None
) -> str:
    """Return a whole SVG file in light colours that needs no style sheet.

    Args:
        record: the model.
        look: how it is drawn.
        title: what it is called.
        engine: the layout engine instead of the one that is found.
        width: the width of the figure in px of 1/96 inch. In one of less than 5 inches there are no panels, unless the
            option asks for them.

    Raises:
        EngineMissingError: there is no layout engine.
    """
    if width and width < _ONE_COLUMN and look.panels == "auto":
        look = dataclasses.replace(look, panels="no")
    job = compose.Job(record, look, paper=True)
    compose.lay_out([job], engine or find_engine())
    return document.print_svg(compose.scene(job), title=title, description=summary.describe(record), width=width)


def html(record: Record, look: ViewOptions, title: str, engine: Engine | None = None) -> str:
    """Return a self-contained page with the viewer.

    Raises:
        EngineMissingError: there is no layout engine.
    """
    job = compose.Job(record, look, inside=True)
    compose.lay_out([job], engine or find_engine())
    return html_page.page(job, title)


def content(
    suffix: str, record: Record, look: ViewOptions, title: str, engine: str = "", width: float | None = None
) -> bytes:
    """Return the content of a file of a kind.

    Args:
        suffix: of its name, one of `SUFFIXES`.
        record: the model.
        look: how it is drawn; DOT and JSON have all of it.
        title: what it is called.
        engine: a command for the layout engine instead of the one that is found.
        width: of an SVG, PDF or PNG, in px of 1/96 inch, instead of its own.

    Raises:
        EngineMissingError: there is no layout engine.
        ConverterMissingError: PDF or PNG is asked for, and what converts is not there.
    """
    if suffix in _PICTURES:
        return _PICTURES[suffix](print_svg(record, look, title, find_engine(engine), width), width)
    return _WRITERS[suffix](record, look, title, engine)


_PICTURES: dict[str, Callable[[str, float | None], bytes]] = {
    ".svg": lambda svg, _: svg.encode(),
    ".pdf": lambda svg, _: pdf(svg),
    ".png": lambda svg, width: png(svg, _PRINTED if width else SCALE),
}
_WRITERS: dict[str, Callable[[Record, ViewOptions, str, str], bytes]] = {
    ".html": lambda record, look, title, engine: html(record, look, title, find_engine(engine)).encode(),
    ".dot": lambda record, _, __, ___: source(record).encode(),
    ".json": lambda record, _, __, ___: record.to_json().encode(),
}

SUFFIXES = (".svg", ".html", ".pdf", ".png", ".dot", ".json")
