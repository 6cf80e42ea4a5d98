"""A picture as SVG.

The page variant has classes, and the style sheet colours them by the reader's theme. The print variant is the same
picture in a file of its own, with plain attributes, for readers that know no style sheet: e-books, PDF converters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from sphinx_fxgraph.drawing import fonts, labels
from sphinx_fxgraph.drawing.compose import Frame, Line, Placed
from sphinx_fxgraph.drawing.palette import LIGHT, category

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]")


def anchor(figure: str, path: str) -> str:
    """The id of a node: ``<figure>-<path>``, ``..2`` for the ``@2`` of a second call, ``_xHHHH_`` for odd letters."""
    return f"{figure}-" + _NOT_PLAIN.sub(lambda c: f"_x{ord(c[0]):04X}_", re.sub(r"@(\d+)", r"..\1", path))


def page_svg(picture: Frame, *, figure: str, title: str, description: str) -> str:
    """Inline SVG for a page. All ids in it start with ``figure``, so that several pictures can stand on one page."""
    return "".join(_Writer(figure).document(picture, title, description))


def print_svg(picture: Frame, *, title: str, description: str) -> str:
    """A whole SVG file in light colours, without style sheet, script or variable."""
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "".join(
        _PrintWriter("fxgraph").document(picture, title, description)
    )


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _tag(name: str, **attributes: object) -> str:
    """A start tag; ``class_`` is class, ``_`` in a name is ``-``; None leaves an attribute out."""
    text = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_number(value) if isinstance(value, float) else str(value))}"
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{text}>"


class _Writer:
    """Writes the parts; what they look like is in the classes."""

    def __init__(self, figure: str) -> None:
        self.figure = figure

    def style(self, classes: str) -> dict[str, object]:
        """The attributes that make an element look like ``classes``."""
        return {"class_": classes}

    def identity(self, path: str) -> dict[str, object]:
        """The attributes that pages, themes and scripts find an element by."""
        return {"id": anchor(self.figure, path), "data_path": path}

    def document(self, picture: Frame, title: str, description: str) -> Iterator[str]:
        width, height = picture.width, picture.height
        name = f"{self.figure}--title"
        about = f"{self.figure}--desc"
        yield _tag(
            "svg",
            xmlns="http://www.w3.org/2000/svg",
            **self.style("fxg-svg"),
            viewBox=f"0 0 {_number(width)} {_number(height)}",
            width=float(width),
            height=float(height),
            role="group",
            aria_labelledby=name,
            aria_describedby=about,
        )
        yield f'<title id="{name}">{escape(title)}</title><desc id="{about}">{escape(description)}</desc><defs>'
        for kind in ("edge", "weak"):
            name = f"{self.figure}--{kind}"
            size = {"viewBox": "0 0 8 8", "refX": 7.4, "refY": 4, "markerWidth": 7, "markerHeight": 7}
            yield _tag("marker", id=name, orient="auto", markerUnits="userSpaceOnUse", **size)
            yield _tag("path", d="M0 .8 7.4 4 0 7.2z", **self.style(f"fxg-tip fxg-tip-{kind}")) + "</path></marker>"
        yield "</defs>"
        yield from self.inside(picture)
        yield "</svg>"

    def frame(self, frame: Frame) -> Iterator[str]:
        node = frame.node
        assert node is not None, "only the root of the picture has no node, and it has no frame"
        yield _tag(
            "g",
            **self.style(f"fxg-module fxg-depth-{(frame.depth - 1) % 3}"),
            **self.identity(frame.path),
            data_type=node.type,
            transform=f"translate({_number(frame.x)} {_number(frame.y)})",
        )
        yield (
            _tag("rect", **self.style("fxg-frame"), width=float(frame.width), height=float(frame.height), rx=10)
            + "</rect>"
        )
        yield from self.inside(frame)
        yield f"<title>{escape(f'{frame.path}: {node.type}')}</title>"
        yield self.text(
            "fxg-title", frame.title, 16.5, ("fxg-triangle", "▾"), ("fxg-attr", node.name), ("fxg-kind", node.kind)
        )
        yield "</g>"

    def inside(self, frame: Frame) -> Iterator[str]:
        for line in frame.lines:
            yield self.line(line, frame.shift)
        for inner in frame.frames:
            yield from self.frame(inner)
        for placed in frame.boxes:
            yield from self.box(placed)

    def line(self, line: Line, shift: float) -> str:
        points = [f"{_number(x + shift)} {_number(y)}" for x, y in line.points]
        path = f"M{points[0]}"
        if line.enter:
            path = f"M{_number(line.enter[0] + shift)} {_number(line.enter[1])}L{points[0]}"
        path += f"{'C' if len(points) > 2 else 'L'}{' '.join(points[1:])}"
        if line.leave:
            path += f"L{_number(line.leave[0] + shift)} {_number(line.leave[1])}"
        tip = f"url(#{self.figure}--{'weak' if line.weak else 'edge'})" if line.arrow else None
        return (
            _tag("path", **self.style("fxg-edge fxg-weak" if line.weak else "fxg-edge"), d=path, marker_end=tip)
            + "</path>"
        )

    def box(self, placed: Placed) -> Iterator[str]:
        node, label = placed.box.node, placed.label
        if label.closed:
            classes = "fxg-module fxg-closed"
        else:
            classes = f"fxg-op fxg-{category(node)}" + (
                "" if placed.box.tensors or node.op == "output" else " fxg-nontensor"
            )
        yield _tag(
            "g",
            **self.style(classes),
            **self.identity(placed.path),
            data_kind=None if label.closed else node.kind,
            data_type=node.type or None,
            transform=f"translate({_number(placed.x)} {_number(placed.y)})",
        )
        yield (
            _tag("rect", **self.style("fxg-box"), width=float(label.width), height=float(label.height), rx=7)
            + "</rect>"
        )
        middle = label.width / 2
        closed = [("fxg-triangle", "▸")] if label.closed else []
        detail = [("fxg-detail", label.detail)] if label.detail else []
        yield self.text("fxg-head", middle, 16, *closed, ("fxg-kind", label.kind), *detail)
        y = 16.0
        for style, text in (("fxg-name", label.name), ("fxg-shape", label.shape)):
            if text:
                y += 12
                yield self.text(style, middle, y, ("", text))
        yield f"<title>{escape(self.about(placed))}</title></g>"

    def about(self, placed: Placed) -> str:
        """What a tooltip tells: the whole path, the call, every result."""
        node = placed.box.node
        arguments = ", ".join(part for part in (node.args, node.kwargs) if part)
        call = f"{node.target}({arguments})" if node.op.startswith("call_") else node.target
        results = [f"{meta.path} {labels.dims(meta)} {meta.dtype}".strip() for meta in placed.box.tensors] or [
            node.result
        ]
        return "\n".join(part for part in (f"{placed.path} = {call}", node.config, *results) if part)

    def text(self, style: str, x: float, y: float, *parts: tuple[str, str]) -> str:
        """One line; its parts stand side by side in styles of their own."""
        spans = [
            (_tag("tspan", dx=labels.GAP if number else None, **self.style(name)) + escape(text) + "</tspan>")
            if name
            else escape(text)
            for number, (name, text) in enumerate(parts)
        ]
        return _tag("text", **self.style(style), x=float(x), y=float(y)) + "".join(spans) + "</text>"


class _PrintWriter(_Writer):
    """The same with plain attributes."""

    def style(self, classes: str) -> dict[str, object]:
        found: dict[str, object] = {}
        for name in classes.split():
            found |= _PRINT.get(name, {})
        return found

    def identity(self, path: str) -> dict[str, object]:  # noqa: ARG002 - print needs no identity
        return {}

    def box(self, placed: Placed) -> Iterator[str]:
        hue = "io" if placed.label.closed else category(placed.box.node)
        for part in super().box(placed):
            # The fill of a box is its group's in the page variant; here every rectangle has its own.
            yield (
                part.replace("<rect ", f'<rect fill="{LIGHT.fills[hue]}" stroke="{LIGHT.strokes[hue]}" ', 1)
                if "<rect" in part
                else part
            )

    def frame(self, frame: Frame) -> Iterator[str]:
        fill = LIGHT.frames[(frame.depth - 1) % 3]
        for number, part in enumerate(super().frame(frame)):
            yield part.replace("<rect ", f'<rect fill="{fill}" stroke="{LIGHT.frame}" ', 1) if number == 1 else part


def _font(size: float, family: str, **more: object) -> dict[str, object]:
    return {"font_size": size, "font_family": family, "fill": LIGHT.ink, **more}


_PRINT: dict[str, dict[str, object]] = {
    "fxg-head": {"text_anchor": "middle"},
    "fxg-kind": _font(labels.KIND_SIZE, fonts.SANS, font_weight="bold"),
    "fxg-detail": _font(labels.DETAIL_SIZE, fonts.SANS, fill=LIGHT.muted),
    "fxg-attr": _font(labels.NAME_SIZE + 1, fonts.MONO, fill=LIGHT.muted, font_weight="bold"),
    "fxg-name": _font(labels.NAME_SIZE, fonts.MONO, fill=LIGHT.muted, text_anchor="middle"),
    "fxg-shape": _font(labels.SHAPE_SIZE, fonts.SANS, text_anchor="middle"),
    "fxg-triangle": _font(labels.KIND_SIZE, fonts.SANS, fill=LIGHT.muted),
    "fxg-edge": {"fill": "none", "stroke": LIGHT.edge, "stroke_width": 1.3},
    "fxg-weak": {"stroke": LIGHT.weak, "stroke_dasharray": "4 3"},
    "fxg-tip-edge": {"fill": LIGHT.edge},
    "fxg-tip-weak": {"fill": LIGHT.weak},
}
