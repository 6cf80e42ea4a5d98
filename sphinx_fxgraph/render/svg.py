"""Write the element tree of a picture as SVG: with classes for a page, with plain attributes for print."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from sphinx_fxgraph.escape import xml
from sphinx_fxgraph.render.elements import Attributes, Element, Line, Text, number
from sphinx_fxgraph.render.looks import Look, shape_look, text_look
from sphinx_fxgraph.view import fonts, labels

_SPECIAL = re.compile(r"[^ !#-%(-;=?-~]").search  # all but the plain characters of ASCII
_GAP = f' dx="{number(labels.GAP)}"'
_TRIANGLE = 12.0
"""Room for the mark of an open or closed module in print."""


def _escaped(text: str) -> str:
    return xml(text) if _SPECIAL(text) else text


def _attributes(values: Attributes) -> str:
    return "".join(
        [
            f' {name}="{value if type(value) is str else number(value)}"'  # type: ignore[arg-type]  # a number
            for name, value in values.items()
            if value is not None
        ]
    )


def page_svg(elements: Iterable[Element | Line | Text]) -> str:
    """Return elements as SVG for a page, whose style sheet gives classes their looks."""
    parts: list[str] = []
    for element in elements:
        _write_page(element, parts)
    return "".join(parts)


def _write_page(element: Element | Line | Text, parts: list[str]) -> None:
    if isinstance(element, Element):
        classes = f' class="{element.classes}"' if element.classes else ""
        hooks = "".join(
            [f' {name}="{_escaped(str(value))}"' for name, value in element.hooks.items() if value is not None]
        )
        start = f"<{element.name}{classes}{hooks}{_attributes(element.geometry)}"
        if not element.content:
            parts.append(f"{start}/>")
            return
        parts.append(f"{start}>")
        for inner in element.content:
            _write_page(inner, parts)
        parts.append(f"</{element.name}>")
    elif isinstance(element, Line):
        spans = [
            f'<tspan{_GAP if index else ""} class="{classes}">{_escaped(text)}</tspan>' if classes else _escaped(text)
            for index, (classes, text) in enumerate(element.parts)
        ]
        if element.address:
            start = f'<a href="{_escaped(element.address)}">'
            spans = [f"{start}{span}</a>" if ' class="fxg-kind"' in span else span for span in spans]
        place = f'x="{number(element.x)}" y="{number(element.y)}"'
        parts.append(f'<text class="{element.classes}" {place}>{"".join(spans)}</text>')
    else:
        parts.append(_escaped(element.text))


def print_svg(picture: Element) -> str:
    """Return a whole SVG file in light colours for readers that know no style sheet: e-books, PDF converters.

    Such readers are simple ones: of a list of fonts some take only the first, and a line of several styles may not be
    centred. So the parts of a centred line are texts of their own. Hooks are left out, and so are links.
    """
    parts = ['<?xml version="1.0" encoding="utf-8"?>\n']
    _PrintWriter(parts).write(picture, "", shaded=False)
    return "".join(parts)


class _PrintWriter:
    def __init__(self, parts: list[str]) -> None:
        self.parts = parts

    def write(self, element: Element | Line | Text, around: str, *, shaded: bool) -> None:
        """Write an element.

        Args:
            element: what to write.
            around: the classes of the element that it stands in.
            shaded: whether it stands in a box that is coloured by its share.
        """
        if isinstance(element, Line):
            self._line(element, shaded=shaded)
        elif isinstance(element, Text):
            self.parts.append(_escaped(element.text))
        elif element.name == "a":
            for inner in element.content:
                self.write(inner, around, shaded=shaded)
        else:
            start = f"<{element.name}{_shape_attributes(around, element.classes)}{_attributes(element.geometry)}"
            if not element.content:
                self.parts.append(f"{start}/>")
                return
            self.parts.append(f"{start}>")
            shaded = "fxg-shaded" in element.classes
            for inner in element.content:
                self.write(inner, element.classes, shaded=shaded)
                if isinstance(inner, Element) and inner.name == "defs":
                    self._paper(element)
            self.parts.append(f"</{element.name}>")

    def _paper(self, picture: Element) -> None:
        x, _, width, height = str(picture.geometry["viewBox"]).split()
        place = {"x": None if x == "0" else x, "width": width, "height": height}
        self.parts.append(f"<rect{_shape_attributes('', 'fxg-back')}{_attributes(place)}/>")

    def _line(self, line: Line, *, shaded: bool) -> None:
        x, parts = line.x, line.parts
        triangle = parts[0][1] if parts[0][0] == "fxg-triangle" else ""
        if line.classes == "fxg-head" and len(parts) > 1:
            self._head(line, parts[1:] if triangle else parts, triangle, shaded=shaded)
            return
        if triangle:  # few fonts have it
            self._triangle(triangle, x, line.y)
            x, parts = x + _TRIANGLE, parts[1:]
        if not parts:
            return
        if len(parts) == 1:
            self._text(line.classes, parts[0], x, line.y, shaded=shaded)
            return
        spans = "".join(
            f"<tspan{_GAP if index else ''}{_text_attributes(line.classes, classes, shaded)}>{_escaped(text)}</tspan>"
            for index, (classes, text) in enumerate(parts)
        )
        self.parts.append(f'<text x="{number(x)}" y="{number(line.y)}">{spans}</text>')

    def _head(self, line: Line, parts: Sequence[tuple[str, str]], triangle: str, *, shaded: bool) -> None:
        """Write the parts of a centred line as texts of their own."""
        widths = [_width(classes, text) for classes, text in parts]
        left = line.x - (sum(widths) + labels.GAP * (len(widths) - 1) + (_TRIANGLE if triangle else 0)) / 2
        if triangle:
            self._triangle(triangle, left, line.y)
            left += _TRIANGLE
            self._text("", parts[0], left, line.y, shaded=shaded)
        else:  # the first two meet at one point, however wide a reader's font is
            self._text("fxg-right", parts[0], left + widths[0], line.y, shaded=shaded)
        for before, part in zip(widths, parts[1:], strict=False):
            left += before + labels.GAP
            self._text("", part, left, line.y, shaded=shaded)

    def _text(self, classes: str, part: tuple[str, str], x: float, y: float, *, shaded: bool) -> None:
        look = _text_attributes(classes, part[0], shaded)
        self.parts.append(f'<text{look} x="{number(x)}" y="{number(y)}">{_escaped(part[1])}</text>')

    def _triangle(self, sign: str, x: float, y: float) -> None:
        corners = f"M{number(x)} {number(y - 7)}" + ("h7l-3.5 6z" if sign == "▾" else "l6 3.5l-6 3.5z")
        fill = text_look("fxg-triangle")["fill"]
        self.parts.append(f'<path fill="{fill}" d="{corners}"/>')


@functools.cache
def _shape_attributes(around: str, classes: str) -> str:
    return _look_attributes(shape_look(around, classes))


@functools.cache
def _text_attributes(line: str, part: str, shaded: bool) -> str:
    return _look_attributes(text_look(line, part, shaded=shaded))


def _look_attributes(look: Look) -> str:
    return "".join(f' {name}="{value if isinstance(value, str) else f"{value:g}"}"' for name, value in look.items())


def _width(classes: str, text: str) -> float:
    look = text_look(classes)
    return fonts.sans(text, float(look["font-size"]), bold="font-weight" in look)
