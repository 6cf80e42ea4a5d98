"""The same picture with plain attributes in light colours, for readers that know no style sheet.

Such readers are simple ones: of a list of fonts some take only the first, and a line of several styles may not be
centred. So the fonts that are most common come first, and the parts of a line are texts of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sphinx_fxgraph.layout.route import Line
from sphinx_fxgraph.render import colors
from sphinx_fxgraph.render.colors import ACCENT, LIGHT, Shares, shade
from sphinx_fxgraph.render.drawing import Drawn, Frame
from sphinx_fxgraph.render.svg import Writer, number, tag
from sphinx_fxgraph.view import fonts, labels
from sphinx_fxgraph.view.annotations import category

_SANS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
_MONO = "'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace"
_TRIANGLE = 12.0
"""Room for the mark of an open or closed module."""
_MARGIN, _SWATCH, _ROW = 8.0, 12.0, 18.0
"""Of the legend, below the picture."""


class PrintWriter(Writer):
    """Looks are attributes of each element; there is nothing to find an element by.

    Args:
        figure: what the few ids start with.
        shares: what the parts have of the whole.
        legend: whether the picture is explained below it.
    """

    def __init__(self, figure: str, shares: Shares | None = None, *, legend: bool = True) -> None:
        super().__init__(figure, shares)
        self.legend = legend

    def style(self, classes: str) -> dict[str, object]:
        """The attributes that make an element look like ``classes``."""
        names = classes.split() or [""]
        if names[0] == "fxg-op":  # a group, whose category may be called as one of the texts in it
            names = [name for name in names if name == "fxg-dead"]
        found: dict[str, object] = {}
        for name in names:
            found |= _LOOKS.get(name, {})
        return found

    def identity(self, path: str) -> dict[str, object]:  # noqa: ARG002 - print needs no identity
        """Nothing."""
        return {}

    def joins(self, line: Line) -> dict[str, object]:  # noqa: ARG002 - nothing is lit in print
        """Nothing."""
        return {}

    def opening(self, body: str) -> dict[str, object]:  # noqa: ARG002 - nothing opens in print
        """Nothing."""
        return {}

    # -- the legend, and paper behind it all

    def size(self, picture: Frame) -> tuple[float, float]:
        """The picture's size with the legend below."""
        rows = self._legend(picture)
        return picture.width, picture.height + (len(rows) * _ROW + _MARGIN if rows else 0)

    def inside(self, frame: Frame) -> Iterator[str]:
        """What stands in a frame; with the whole picture the paper and the legend."""
        if frame.box:
            yield from super().inside(frame)
            return
        width, height = self.size(frame)
        yield tag("rect", fill=LIGHT.paper, stroke="none", width=width, height=height) + "</rect>"
        yield from super().inside(frame)
        for line, row in enumerate(self._legend(frame)):
            for x, entry in row:
                yield from self._entry(entry, x, frame.height + line * _ROW)

    def _legend(self, picture: Frame) -> list[list[tuple[float, colors.Entry]]]:
        return _rows(colors.entries(picture, self.shares), picture.width) if self.legend else []

    def _entry(self, entry: colors.Entry, x: float, y: float) -> Iterator[str]:
        middle = y + _ROW / 2
        if entry.key == "weak":
            dashes = self.style("fxg-edge fxg-weak")
            yield tag("path", **dashes, d=f"M{number(x)} {number(middle)}h{number(_SWATCH)}") + "</path>"
        else:
            hue = entry.key if entry.key in LIGHT.fills else "io"
            fill = LIGHT.shares[int(entry.key[-1])] if entry.key.startswith("share-") else LIGHT.fills[hue]
            for sheet in (2, 0) if entry.key == "fold" else (0,):
                yield (
                    tag(
                        "rect",
                        fill=fill,
                        stroke=LIGHT.strokes[hue],
                        x=x + sheet,
                        y=middle - _SWATCH / 2 + sheet,
                        width=_SWATCH,
                        height=_SWATCH,
                        rx=3,
                    )
                    + "</rect>"
                )
        yield self.text("fxg-span fxg-legend", x + _SWATCH + 6, middle + 3.5, ("", entry.text))

    # -- boxes and frames

    def box_colours(self, drawn: Drawn) -> dict[str, object]:
        """Return the colours of the category or of the share."""
        node, closed = drawn.box.node, drawn.label.closed
        hue = "io" if closed else category(node)
        percent = self.shares.percent(drawn.box, drawn.path) if self.shares else None
        fill = LIGHT.fills[hue] if percent is None else LIGHT.shares[shade(percent)]
        if "failed" in node.marks:
            return {"fill": fill, "stroke": ACCENT, "stroke_width": 2.5}
        dashed = not closed and not drawn.box.tensors and node.op != "output"
        return {"fill": fill, "stroke": LIGHT.strokes[hue], "stroke_dasharray": "4 3" if dashed else None}

    def panel_identity(self, frame: Frame) -> dict[str, object]:  # noqa: ARG002 - print needs no identity
        """Return nothing."""
        return {}

    def see_identity(self, name: str) -> dict[str, object]:  # noqa: ARG002 - as above
        """Return nothing."""
        return {}

    def panel_link(self, letter: str) -> dict[str, object]:  # noqa: ARG002 - as above
        """Return nothing."""
        return {}

    def back_link(self, frame: Frame) -> dict[str, object]:  # noqa: ARG002 - as above
        """Return nothing."""
        return {}

    def disc_colours(self) -> dict[str, object]:
        """Return the colours of the disc around a letter."""
        return {"fill": LIGHT.strokes["matmul"], "stroke": LIGHT.paper}

    def frame_colours(self, frame: Frame) -> dict[str, object]:
        """Return the colours of the frame's depth."""
        return {"fill": LIGHT.frames[(frame.depth - 1) % 3], "stroke": LIGHT.frame}

    def text(self, style: str, x: float, y: float, *parts: tuple[str, str]) -> str:
        """One line. Few fonts have the triangles, so they are drawn; a centred line of many styles is many texts."""
        triangle = parts[0][1] if parts[0][0] == "fxg-triangle" else ""
        if style == "fxg-title" and triangle:
            return self._triangle(triangle, x, y) + super().text(style, x + _TRIANGLE, y, *parts[1:])
        if style != "fxg-head" or len(parts) == 1:
            return super().text(style, x, y, *parts)
        texts = parts[1:] if triangle else parts
        widths = [fonts.sans(text, *_SIZES[name]) for name, text in texts]
        left = x - (sum(widths) + labels.GAP * (len(texts) - 1) + (_TRIANGLE if triangle else 0)) / 2
        if triangle:
            found = [self._triangle(triangle, left, y), super().text("", left + _TRIANGLE, y, texts[0])]
            left += _TRIANGLE
        else:  # the first two meet at one point, however wide a reader's font is
            found = [super().text("fxg-end", left + widths[0], y, texts[0])]
        for before, part in zip(widths, texts[1:], strict=False):
            left += before + labels.GAP
            found.append(super().text("", left, y, part))
        return "".join(found)

    def _triangle(self, sign: str, x: float, y: float) -> str:
        corners = f"M{number(x)} {number(y - 7)}" + ("h7l-3.5 6z" if sign == "▾" else "l6 3.5l-6 3.5z")
        return tag("path", fill=LIGHT.muted, d=corners) + "</path>"


def _rows(entries: Sequence[colors.Entry], width: float) -> list[list[tuple[float, colors.Entry]]]:
    """The entries in rows no wider than the picture, each with its place."""
    rows: list[list[tuple[float, colors.Entry]]] = []
    x = width
    for entry in entries:
        needed = _SWATCH + 6 + fonts.sans(entry.text, labels.SHAPE_SIZE) + 14
        if not rows or x + needed > width - _MARGIN:
            rows.append([])
            x = _MARGIN
        rows[-1].append((x, entry))
        x += needed
    return rows


def _font(size: float, family: str, **more: object) -> dict[str, object]:
    return {"font_size": size, "font_family": family, "fill": LIGHT.ink, **more}


_SIZES = {
    "fxg-kind": (labels.KIND_SIZE, True),
    "fxg-detail": (labels.DETAIL_SIZE, False),
    "fxg-count": (labels.KIND_SIZE, True),
}
"""Of what stands in a box's first line: size, and whether it is bold."""

_LOOKS: dict[str, dict[str, object]] = {
    "fxg-head": {"text_anchor": "middle"},
    "fxg-end": {"text_anchor": "end"},
    "fxg-kind": _font(labels.KIND_SIZE, _SANS, font_weight="bold"),
    "fxg-detail": _font(labels.DETAIL_SIZE, _SANS, fill=LIGHT.muted),
    "fxg-attr": _font(labels.NAME_SIZE, _MONO, fill=LIGHT.muted, font_weight="bold"),
    "fxg-name": _font(labels.NAME_SIZE, _MONO, fill=LIGHT.muted, text_anchor="middle"),
    "fxg-shape": _font(labels.SHAPE_SIZE, _SANS, text_anchor="middle"),
    "fxg-triangle": _font(labels.KIND_SIZE, _SANS, fill=LIGHT.muted),
    "fxg-edge": {"fill": "none", "stroke": LIGHT.edge, "stroke_width": 1.3},
    "fxg-dots": {"fill": "none", "stroke": LIGHT.edge, "stroke_width": 4, "stroke_linecap": "round"},
    "fxg-back": {"fill": LIGHT.paper},
    "fxg-letter": _font(labels.KIND_SIZE, _SANS, fill=LIGHT.strokes["matmul"], font_weight="bold"),
    "fxg-disc-letter": {"text_anchor": "middle", "fill": LIGHT.paper},
    "fxg-right": {"text_anchor": "end"},
    "fxg-chip": {"fill": LIGHT.paper, "stroke": LIGHT.weak},
    "fxg-count": _font(labels.KIND_SIZE, _SANS, fill=LIGHT.strokes["matmul"], font_weight="bold"),
    "fxg-span": _font(labels.NAME_SIZE, _MONO, fill=LIGHT.muted),
    "fxg-legend": _font(labels.SHAPE_SIZE, _SANS, fill=LIGHT.muted),
    "fxg-note": _font(labels.SHAPE_SIZE, _SANS, text_anchor="middle", fill=LIGHT.muted),
    "fxg-percent": _font(labels.SHAPE_SIZE, _SANS, text_anchor="end", font_weight="bold"),
    "fxg-weak": {"stroke": LIGHT.weak, "stroke_dasharray": "4 3"},
    "fxg-tip-edge": {"fill": LIGHT.edge},
    "fxg-tip-weak": {"fill": LIGHT.weak},
    "fxg-dead": {"opacity": 0.55},
}
