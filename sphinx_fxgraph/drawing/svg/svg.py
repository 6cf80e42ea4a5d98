"""A picture as SVG.

The page variant has classes, and the style sheet colours them by the reader's theme. The print variant is the same
picture in a file of its own, with plain attributes, for readers that know no style sheet: e-books, PDF converters.
"""

from __future__ import annotations

from sphinx_fxgraph.drawing.compose import Frame, Inside
from sphinx_fxgraph.drawing.svg.printed import PrintWriter
from sphinx_fxgraph.drawing.svg.shares import Shares
from sphinx_fxgraph.drawing.svg.writer import Writer, anchor

__all__ = ["anchor", "inside_svg", "page_svg", "print_svg"]


def page_svg(picture: Frame, *, figure: str, title: str, description: str, shares: Shares | None = None) -> str:
    """Inline SVG for a page. All ids in it start with ``figure``, so that several pictures can stand on one page."""
    return "".join(Writer(figure, shares).document(picture, title, description))


def inside_svg(inside: Inside, *, figure: str, shares: Shares | None = None) -> dict[str, object]:
    """The inside of a closed module as plain data for the viewer: size, ends and SVG."""
    picture = inside.picture
    return {
        "size": [picture.width, picture.height],
        "names": list(inside.names),
        "ins": list(inside.inputs),
        "outs": list(inside.outputs),
        "svg": "".join(_PartWriter(figure, shares).inside(picture)),
    }


def print_svg(picture: Frame, *, title: str, description: str, shares: Shares | None = None) -> str:
    """A whole SVG file in light colours, without style sheet, script or variable."""
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "".join(
        PrintWriter("fxgraph", shares).document(picture, title, description)
    )


class _PartWriter(Writer):
    """For the inside of a closed module, which the viewer puts into place: paths below the module, no ids."""

    def identity(self, path: str) -> dict[str, object]:
        return {"data_path": path}
