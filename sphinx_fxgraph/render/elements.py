"""A picture as a tree of elements, before it is written as SVG for a page or for print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sphinx_fxgraph.view import labels

Attributes = Mapping[str, object]
"""Attributes by name: texts, and numbers in units of the drawing; None leaves an attribute out."""


class Element:
    """One element of SVG.

    Attributes:
        name: the name of the element.
        classes: what it looks like: on a page its classes, in print the attributes that `looks` gives for them.
        content: what is in it.
        geometry: attributes that both serialisers write as they are.
        hooks: attributes that only a page needs: ids, links, and what the viewer reads. Their values are escaped.
    """

    __slots__ = ("classes", "content", "geometry", "hooks", "name")

    def __init__(
        self,
        name: str,
        classes: str = "",
        content: Sequence[Element | Line | Text] = (),
        geometry: Attributes = {},  # noqa: B006 - never changed
        hooks: Attributes = {},  # noqa: B006 - never changed
    ) -> None:
        self.name, self.classes, self.content, self.geometry, self.hooks = name, classes, content, geometry, hooks


class Line:
    """One line of text; its parts stand side by side.

    Attributes:
        classes: what the line looks like.
        x: where it starts, ends or has its middle, by its classes.
        y: its baseline.
        parts: classes and text of each part; a part without classes looks like the line.
        address: what the part ``fxg-kind`` leads to on a page; empty if it is no link.
    """

    __slots__ = ("address", "classes", "parts", "x", "y")

    def __init__(self, classes: str, x: float, y: float, *parts: tuple[str, str], address: str = "") -> None:
        self.classes, self.x, self.y, self.parts, self.address = classes, x, y, parts, address


class Text:
    """Text that is not drawn, in a ``title`` or ``desc``."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def number(value: float) -> str:
    """Return a coordinate with one digit after the point, if it needs one."""
    return f"{value:.1f}".removesuffix(".0")


def move(x: float, y: float) -> str:
    """Return the value of ``transform`` that moves an element."""
    return f"translate({number(x)} {number(y)})"


def outline(classes: str, width: float, height: float, radius: float, *, stacked: bool) -> Iterator[Element]:
    """Yield the outline of a box or a frame; of a run the lower sheets of its stack too."""
    size = {"width": float(width), "height": float(height), "rx": radius}
    for sheet in (2, 1) if stacked else ():
        place = {"x": labels.STACK * sheet, "y": labels.STACK * sheet}
        yield Element("rect", f"{classes} fxg-sheet", (), {**place, **size})
    yield Element("rect", classes, (), size)


def row_outline(width: float, height: float, top: float, bottom: float) -> str:
    """Return the path of a rectangle whose upper and lower corners have these radii."""

    def corner(radius: float, x: int, y: int) -> str:
        return f"a{radius:g} {radius:g} 0 0 1 {x * radius:g} {y * radius:g}" if radius else ""

    return (
        f"M{number(top)} 0H{number(width - top)}{corner(top, 1, 1)}V{number(height - bottom)}{corner(bottom, -1, 1)}"
        f"H{number(bottom)}{corner(bottom, -1, -1)}V{number(top)}{corner(top, 1, -1)}z"
    )
