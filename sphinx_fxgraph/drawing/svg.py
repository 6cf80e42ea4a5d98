"""A picture as SVG.

The page variant has classes, and the style sheet colours them by the reader's theme. The print variant is the same
picture in a file of its own, with plain attributes, for readers that know no style sheet: e-books, PDF converters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from sphinx_fxgraph.diff import SIGNS
from sphinx_fxgraph.drawing import fonts, labels
from sphinx_fxgraph.drawing.compose import Drawn, Frame, Inside
from sphinx_fxgraph.drawing.palette import LIGHT, category
from sphinx_fxgraph.drawing.routing import Line
from sphinx_fxgraph.drawing.shown import GROUP
from sphinx_fxgraph.record import Node

_MARKS = ("dead", "failed", *SIGNS)
"""Remarks on an operator that change what its box looks like."""

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]")


def anchor(figure: str, path: str) -> str:
    """The id of a node: ``<figure>-<path>``, ``..2`` for the ``@2`` of a second call, ``_xHHHH_`` for odd letters."""
    return f"{figure}-" + _NOT_PLAIN.sub(lambda c: f"_x{ord(c[0]):04X}_", re.sub(r"@(\d+)", r"..\1", path))


def page_svg(picture: Frame, *, figure: str, title: str, description: str) -> str:
    """Inline SVG for a page. All ids in it start with ``figure``, so that several pictures can stand on one page."""
    return "".join(_Writer(figure).document(picture, title, description))


def inside_svg(inside: Inside, *, figure: str) -> dict[str, object]:
    """The inside of a closed module as plain data for the viewer: size, ends and SVG."""
    picture = inside.picture
    return {
        "size": [picture.width, picture.height],
        "names": list(inside.names),
        "ins": list(inside.inputs),
        "outs": list(inside.outputs),
        "svg": "".join(_PartWriter(figure).inside(picture)),
    }


def print_svg(picture: Frame, *, title: str, description: str) -> str:
    """A whole SVG file in light colours, without style sheet, script or variable."""
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "".join(
        _PrintWriter("fxgraph").document(picture, title, description)
    )


def _marks(node: Node) -> str:
    return "".join(f" fxg-{mark}" for mark in node.marks if mark in _MARKS)


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

    def opening(self, body: str) -> dict[str, object]:
        """The attributes that the viewer finds the inside of a closed module by."""
        return {"data_body": body or None}

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
        box = frame.box
        assert box is not None, "only the whole picture has no box, and no frame around it"
        module = box.node.op != GROUP
        classes = "fxg-module" if module else "fxg-group"
        yield _tag(
            "g",
            **self.style(
                f"{classes} fxg-depth-{(frame.depth - 1) % 3}{' fxg-fold' if box.run else ''}{_marks(box.node)}"
            ),
            **(self.identity(frame.path) if module else {}),
            data_type=box.node.type or None,
            data_count=box.run.count if box.run else None,
            transform=f"translate({_number(frame.x)} {_number(frame.y)})",
        )
        yield from self.rectangles("fxg-frame", frame.width, frame.height, 10, stacked=bool(box.run))
        yield from self.inside(frame)
        if module:
            yield f"<title>{escape(f'{frame.path}: {box.node.type}')}</title>"
        parts = [
            ("fxg-triangle", "▾"),
            ("fxg-attr", labels.title(box.node)),
            ("fxg-kind", labels.sign(box.node) + box.node.kind),
            ("fxg-count", labels.times(box.run)),
            ("fxg-span", labels.chip(box.chips)),
        ]
        yield self.text("fxg-title", frame.title, 16.5, *(part for part in parts if part[1]))
        if box.run:
            yield self.text("fxg-title", frame.title, 28.5, ("fxg-span", labels.span(box.node, box.run)))
        yield "</g>"

    def rectangles(self, style: str, width: float, height: float, radius: int, *, stacked: bool) -> Iterator[str]:
        """The outline of a box or a frame; of a run the lower sheets of its stack too."""
        for sheet in (2, 1) if stacked else ():
            move = labels.STACK * sheet
            yield (
                _tag(
                    "rect",
                    **self.style(f"{style} fxg-sheet"),
                    x=move,
                    y=move,
                    width=float(width),
                    height=float(height),
                    rx=radius,
                )
                + "</rect>"
            )
        yield _tag("rect", **self.style(style), width=float(width), height=float(height), rx=radius) + "</rect>"

    def inside(self, frame: Frame) -> Iterator[str]:
        for line in frame.lines:
            yield self.line(line)
        if frame.dots:  # lines of no length with round ends: one element for all of them
            dots = "".join(f"M{_number(x)} {_number(y)}h0" for x, y in frame.dots)
            yield _tag("path", **self.style("fxg-dots"), d=dots) + "</path>"
        for inner in frame.frames:
            yield from self.frame(inner)
        for drawn in frame.boxes:
            yield from self.box(drawn)
        for (x, y), text in frame.notes:
            yield self.text("fxg-note", x, y + 3.5, ("", text))

    def line(self, line: Line) -> str:
        points = [f"{_number(x)} {_number(y)}" for x, y in line.points]
        path = f"M{points[0]}"
        if line.enter:
            path = f"M{_number(line.enter[0])} {_number(line.enter[1])}L{points[0]}"
        path += ("C" if line.curved else "L") + " ".join(points[1:])
        if line.leave:
            path += f"L{_number(line.leave[0])} {_number(line.leave[1])}"
        classes = "fxg-edge" + (" fxg-weak" if line.weak else "") + (" fxg-rail" if line.rail else "")
        tip = f"url(#{self.figure}--{'weak' if line.weak else 'edge'})" if line.arrow else None
        return _tag("path", **self.style(classes), d=path, marker_end=tip) + "</path>"

    def box(self, drawn: Drawn) -> Iterator[str]:
        node, label = drawn.box.node, drawn.label
        if label.closed:
            classes = f"{'fxg-group' if node.op == GROUP else 'fxg-module'} fxg-closed"
        else:
            classes = f"fxg-op fxg-{category(node)}" + (
                "" if drawn.box.tensors or node.op == "output" else " fxg-nontensor"
            )
        run = drawn.box.run
        yield _tag(
            "g",
            **self.style(f"{classes}{' fxg-fold' if run else ''}{_marks(node)}"),
            **self.identity(drawn.path),
            data_kind=None if label.closed else node.kind,
            data_type=node.type or None,
            data_count=run.count if run else None,
            **self.opening(node.body),
            transform=f"translate({_number(drawn.x)} {_number(drawn.y)})",
        )
        yield from self.rectangles("fxg-box", label.width, label.height, 7, stacked=label.stacked)
        middle = label.width / 2
        parts = [
            ("fxg-triangle", "▸" if label.closed else ""),
            ("fxg-kind", label.kind),
            ("fxg-detail", label.detail),
            ("fxg-count", label.count),
        ]
        yield self.text("fxg-head", middle, 16, *(part for part in parts if part[1]))
        y = 16.0
        for style, text in (("fxg-name", label.name), ("fxg-shape", label.shape)):
            if text:
                y += 12
                yield self.text(style, middle, y, ("", text))
        if label.chips:
            width = fonts.mono(label.chips, labels.NAME_SIZE) + 10
            yield (
                _tag(
                    "rect",
                    **self.style("fxg-chip"),
                    x=middle - width / 2,
                    y=y + 5,
                    width=width,
                    height=labels.CHIP_HEIGHT,
                    rx=7,
                )
                + "</rect>"
            )
            yield self.text("fxg-name", middle, y + 15.5, ("", label.chips))
        yield f"<title>{escape(self.about(drawn))}</title></g>"

    def about(self, drawn: Drawn) -> str:
        """What a tooltip tells: the whole path, the call, every result."""
        node = drawn.box.node
        arguments = ", ".join(part for part in (node.args, node.kwargs) if part)
        call = f"{node.target}({arguments})" if node.op.startswith("call_") else node.target
        results = [f"{meta.path} {labels.dims(meta)} {meta.dtype}".strip() for meta in drawn.box.tensors] or [
            node.result
        ]
        return "\n".join(part for part in (f"{drawn.path} = {call}", node.config, *results) if part)

    def text(self, style: str, x: float, y: float, *parts: tuple[str, str]) -> str:
        """One line; its parts stand side by side in styles of their own."""
        spans = [
            (_tag("tspan", dx=labels.GAP if number else None, **self.style(name)) + escape(text) + "</tspan>")
            if name
            else escape(text)
            for number, (name, text) in enumerate(parts)
        ]
        return _tag("text", **self.style(style), x=float(x), y=float(y)) + "".join(spans) + "</text>"


class _PartWriter(_Writer):
    """For the inside of a closed module, which the viewer puts into place: paths below the module, no ids."""

    def identity(self, path: str) -> dict[str, object]:
        return {"data_path": path}


class _PrintWriter(_Writer):
    """The same with plain attributes."""

    def style(self, classes: str) -> dict[str, object]:
        found: dict[str, object] = {}
        for name in classes.split():
            found |= _PRINT.get(name, {})
        return found

    def identity(self, path: str) -> dict[str, object]:  # noqa: ARG002 - print needs no identity
        return {}

    def opening(self, body: str) -> dict[str, object]:  # noqa: ARG002 - nothing opens in print
        return {}

    def box(self, drawn: Drawn) -> Iterator[str]:
        hue = "io" if drawn.label.closed else category(drawn.box.node)
        yield from self._filled(super().box(drawn), LIGHT.fills[hue], LIGHT.strokes[hue])

    def frame(self, frame: Frame) -> Iterator[str]:
        yield from self._filled(super().frame(frame), LIGHT.frames[(frame.depth - 1) % 3], LIGHT.frame)

    def _filled(self, parts: Iterator[str], fill: str, stroke: str) -> Iterator[str]:
        """A box's colours are its group's in the page variant; here each of its own rectangles has them."""
        for part in parts:
            yield (
                part.replace("<rect ", f'<rect fill="{fill}" stroke="{stroke}" ')
                if part.startswith(("<rect x=", "<rect width"))
                else part
            )


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
    "fxg-rail": {"stroke_width": 1},
    "fxg-dots": {"fill": "none", "stroke": LIGHT.edge, "stroke_width": 4, "stroke_linecap": "round"},
    "fxg-chip": {"fill": LIGHT.paper, "stroke": LIGHT.weak},
    "fxg-count": _font(labels.KIND_SIZE, fonts.SANS, fill=LIGHT.strokes["matmul"], font_weight="bold"),
    "fxg-span": _font(labels.NAME_SIZE, fonts.MONO, fill=LIGHT.muted),
    "fxg-note": _font(labels.SHAPE_SIZE, fonts.SANS, text_anchor="middle", fill=LIGHT.muted),
    "fxg-weak": {"stroke": LIGHT.weak, "stroke_dasharray": "4 3"},
    "fxg-tip-edge": {"fill": LIGHT.edge},
    "fxg-tip-weak": {"fill": LIGHT.weak},
}
