"""A record as a file: SVG, a page, PDF, PNG, DOT or JSON."""

from __future__ import annotations

from collections.abc import Callable

from sphinx_fxgraph.layout.graphviz import Engine, find_engine
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import convert, document, html_page, summary
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.render.dot.model import source


def print_svg(record: Record, look: ViewOptions, title: str, engine: Engine | None = None) -> str:
    """A whole SVG file in light colours that needs no style sheet.

    Raises:
        EngineMissingError: there is no layout engine.
    """
    job = compose.Job(record, look, paper=True)
    compose.lay_out([job], engine or find_engine())
    return document.print_svg(compose.scene(job), title=title, description=summary.describe(record))


def html(record: Record, look: ViewOptions, title: str, engine: Engine | None = None) -> str:
    """One self-contained page with the viewer.

    Raises:
        EngineMissingError: there is no layout engine.
    """
    job = compose.Job(record, look, inside=True)
    compose.lay_out([job], engine or find_engine())
    return html_page.page(job, title)


def content(suffix: str, record: Record, look: ViewOptions, title: str, engine: str = "") -> bytes:
    """What stands in a file of this kind.

    Args:
        suffix: of its name, one of `SUFFIXES`.
        record: the model.
        look: how it is drawn; DOT and JSON have all of it.
        title: what it is called.
        engine: a command for the layout engine instead of the one that is found.

    Raises:
        EngineMissingError: there is no layout engine.
        ConverterMissingError: PDF or PNG is asked for, and what converts is not there.
    """
    return _WRITERS[suffix](record, look, title, engine)


_WRITERS: dict[str, Callable[[Record, ViewOptions, str, str], bytes]] = {
    ".svg": lambda record, look, title, engine: print_svg(record, look, title, find_engine(engine)).encode(),
    ".html": lambda record, look, title, engine: html(record, look, title, find_engine(engine)).encode(),
    ".pdf": lambda record, look, title, engine: convert.pdf(print_svg(record, look, title, find_engine(engine))),
    ".png": lambda record, look, title, engine: convert.png(print_svg(record, look, title, find_engine(engine))),
    ".dot": lambda record, _, __, ___: source(record).encode(),
    ".json": lambda record, _, __, ___: record.to_json().encode(),
}

SUFFIXES = tuple(_WRITERS)
