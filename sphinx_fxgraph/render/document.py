"""A picture as SVG.

The page variant has classes, and the style sheet colours them by the reader's theme. The print variant is the same
picture in a file of its own, with plain attributes, for readers that know no style sheet: e-books, PDF converters.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from sphinx_fxgraph.render import svg
from sphinx_fxgraph.render.colors import Shares
from sphinx_fxgraph.render.drawing import Frame, Inside
from sphinx_fxgraph.render.picture import Builder, size

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
    links: Mapping[str, str] | None = None,
) -> str:
    """Return inline SVG for a page.

    Args:
        picture: what is drawn.
        figure: all ids in it start so, so that several pictures can stand on one page.
        title: its name.
        description: a sentence in its place.
        shares: numbers for tooltips and shades.
        rows: whether the page has a node table, to which the names of operators then lead; or which paths have a row.
        table: the address of the page that the node table stands in; empty if it is the same.
        links: the addresses of the documentation of classes, to which the titles of frames then lead.
    """
    builder = Builder(figure, shares, rows=rows, table=table, links=links or {})
    return svg.page_svg([builder.document(picture, title, description)])


def inside_svg(inside: Inside, *, figure: str, shares: Shares | None = None, rows: bool = False) -> dict[str, object]:
    """Return the inside of a closed module as plain data for the viewer: size, ends and SVG.

    Args:
        inside: what is drawn.
        figure: what ids of the page start with.
        shares: numbers for tooltips and shades, of the module.
        rows: whether the page has a node table.
    """
    picture = inside.picture
    return {
        "size": [picture.width, picture.height],
        "names": list(inside.names),
        "ins": list(inside.inputs),
        "outs": list(inside.outputs),
        "svg": svg.page_svg(Builder(figure, shares, rows=rows, part=True).inside(picture)),
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
    builder = Builder("fxgraph", shares)
    return svg.print_svg(builder.document(picture, title, description, width=width, legend=legend))


def print_size(picture: Frame, *, shares: Shares | None = None, legend: bool = True) -> tuple[float, float]:
    """Return width and height of what `print_svg` gives."""
    return size(picture, shares, legend=legend)


_NATURAL, _SMALL, _SMALLEST = 0.75, 0.5, 0.45
"""Points for each unit of the drawing: as on a display of 96 dots an inch, as small as its text is well read, and a
little smaller, where one more strip then has room."""
_TITLE = 24.0
"""Units from the top of a frame that its title takes."""
_GAP = 4.0
"""Units below a box, where it is cut."""
_LEAST = 0.5
"""Of a page's height that is filled before a cut."""


@dataclass(frozen=True)
class Strips:
    """How a picture is cut and scaled on paper."""

    width: float
    """Of the picture, in units."""
    scale: float
    """Points for each unit of the drawing."""
    cuts: tuple[tuple[float, float], ...]
    """Top and bottom of each strip, in units from the top."""
    abreast: int
    """How many of them stand side by side on one page."""


def strips(
    picture: Frame, size: tuple[float, float], paper: tuple[float, float], gap: float, *, whole: bool = False
) -> Strips:
    """Return how a picture fits on paper: as one piece where that can be read, else as strips from top to bottom.

    Strips are cut between boxes where they can be.

    Args:
        picture: what is drawn.
        size: its width and height in units, with what stands below it.
        paper: width and height in points that a page has for it.
        gap: points between two strips.
        whole: whether it is one piece on one page in any case.
    """
    (width, height), (room, tallest) = size, paper
    scale = min(_NATURAL, room / width, tallest / height)
    if whole or scale >= min(_SMALLEST, room / width):
        return Strips(width, scale, ((0, height),), 1)
    abreast = max(1, int((room + gap) / (width * _SMALLEST + gap)))
    scale = min(_SMALL, ((room + gap) / abreast - gap) / width)
    blocked = sorted(_blocked(picture))
    cuts, top, most = [], 0.0, tallest / scale
    while height - top > most:
        bottom = _cut(blocked, top + _LEAST * most, top + most)
        cuts.append((top, bottom))
        top = bottom
    return Strips(width, scale, (*cuts, (top, height)), abreast)


def _cut(blocked: list[tuple[float, float]], least: float, most: float) -> float:
    """Return the lowest height in between that goes through the fewest boxes."""

    def boxes_through(height: float) -> int:
        return sum(top < height < bottom for top, bottom in blocked)

    places = [bottom + _GAP for _, bottom in blocked if least <= bottom + _GAP <= most]
    return min([*places, most], key=lambda height: (boxes_through(height), -height))


def _blocked(frame: Frame, above: float = 0.0) -> Iterator[tuple[float, float]]:
    """Yield top and bottom of each box and of each title in a frame, in units from the top of the picture."""
    for drawn in frame.boxes:
        yield above + drawn.y, above + drawn.y + drawn.label.height
    for inner in frame.frames:
        yield above + inner.y, above + inner.y + _TITLE
        yield from _blocked(inner, above + inner.y)
