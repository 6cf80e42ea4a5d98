"""A picture as SVG.

The page variant has classes, and the style sheet colours them by the reader's theme. The print variant is the same
picture in a file of its own, with plain attributes, for readers that know no style sheet: e-books, PDF converters.
"""

from __future__ import annotations

from collections.abc import Container

from sphinx_fxgraph.render.drawing import Frame, Inside
from sphinx_fxgraph.render.heat import Shares
from sphinx_fxgraph.render.print_svg import PrintWriter
from sphinx_fxgraph.render.svg import Writer

__all__ = ["inside_svg", "page_svg", "print_size", "print_svg"]


def page_svg(
    picture: Frame,
    *,
    figure: str,
    title: str,
    description: str,
    shares: Shares | None = None,
    rows: bool | Container[str] = False,
    table: str = "",
) -> str:
    """Inline SVG for a page.

    Args:
        picture: what is drawn.
        figure: all ids in it start so, so that several pictures can stand on one page.
        title: its name.
        description: a sentence in its place.
        shares: numbers for tooltips and shades.
        rows: whether the page has a node table, to which the names of operators then lead; or which paths have a row.
        table: the address of the page that the node table stands in; empty if it is the same.
    """
    return "".join(Writer(figure, shares, rows=rows, table=table).document(picture, title, description))


def inside_svg(inside: Inside, *, figure: str, shares: Shares | None = None, rows: bool = False) -> dict[str, object]:
    """The inside of a closed module as plain data for the viewer: size, ends and SVG; the rest as of `page_svg`."""
    picture = inside.picture
    return {
        "size": [picture.width, picture.height],
        "names": list(inside.names),
        "ins": list(inside.inputs),
        "outs": list(inside.outputs),
        "svg": "".join(_PartWriter(figure, shares, rows=rows).inside(picture)),
    }


def print_svg(
    picture: Frame,
    *,
    title: str,
    description: str,
    shares: Shares | None = None,
    legend: bool = True,
    width: float | None = None,
) -> str:
    """Return a whole SVG file in light colours, without style sheet, script or variable.

    Args:
        picture: what is drawn.
        title: its name.
        description: a sentence in its place.
        shares: numbers for shades.
        legend: whether the picture is explained below it.
        width: the width that it is shown at, in px of 1/96 inch, instead of its own.
    """
    writer = PrintWriter("fxgraph", shares, legend=legend)
    writer.width = width
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "".join(writer.document(picture, title, description))


def print_size(picture: Frame, *, shares: Shares | None = None, legend: bool = True) -> tuple[float, float]:
    """Width and height of what `print_svg` gives."""
    return PrintWriter("fxgraph", shares, legend=legend).size(picture)


class _PartWriter(Writer):
    """For the inside of a closed module, which the viewer puts into place: paths below the module, no ids."""

    def identity(self, path: str) -> dict[str, object]:
        return {"data_path": path}

    def table_link(self, path: str) -> dict[str, object]:  # noqa: ARG002 - the viewer knows the whole path
        return {}
