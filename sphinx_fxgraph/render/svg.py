"""The parts of a picture as SVG elements; what they look like is in their classes."""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterator, Mapping

from sphinx_fxgraph.escape import anchor, xml
from sphinx_fxgraph.layout.route import Line
from sphinx_fxgraph.record.diff import SIGNS
from sphinx_fxgraph.record.model import Node
from sphinx_fxgraph.render.colors import Shares, shade, written
from sphinx_fxgraph.render.drawing import Drawn, Frame
from sphinx_fxgraph.units import format_shape
from sphinx_fxgraph.view import labels
from sphinx_fxgraph.view.annotations import category
from sphinx_fxgraph.view.estimate import PANEL_TITLE
from sphinx_fxgraph.view.level import Box
from sphinx_fxgraph.view.simplify import GROUP

_MARKS = ("dead", "failed", *SIGNS)
"""Remarks on an operator that change what its box looks like."""


_SPECIAL = re.compile(r"[^ !#-%(-;=?-~]").search  # all but the plain characters of ASCII


def _marks(node: Node) -> str:
    return "".join(f" fxg-{mark}" for mark in node.marks if mark in _MARKS)


def _names(box: Box) -> str | None:
    """Return the names of all nodes that a box stands for, by which the viewer finds those that are not drawn."""
    return " ".join(box.names) if len(box.names) > 1 else None


def number(value: float) -> str:
    """A coordinate with one digit after the point, if it needs one."""
    return f"{value:.1f}".removesuffix(".0")


def tag(name: str, **attributes: object) -> str:
    """A start tag; ``class_`` is class, ``_`` in a name is ``-``; None leaves an attribute out."""
    text = "".join([f" {_named(key)}={_quoted(value)}" for key, value in attributes.items() if value is not None])
    return f"<{name}{text}>"


@functools.cache
def _named(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _quoted(value: object) -> str:
    text = number(value) if isinstance(value, float) else str(value)
    return f'"{xml(text)}"' if _SPECIAL(text) else f'"{text}"'


def _row_outline(width: float, height: float, top: float, bottom: float) -> str:
    """Return the path of a rectangle whose upper and lower corners have these radii."""

    def corner(radius: float, x: int, y: int) -> str:
        return f"a{radius} {radius} 0 0 1 {x * radius} {y * radius}" if radius else ""

    return (
        f"M{number(top)} 0H{number(width - top)}{corner(top, 1, 1)}V{number(height - bottom)}{corner(bottom, -1, 1)}"
        f"H{number(bottom)}{corner(bottom, -1, -1)}V{number(top)}{corner(top, 1, -1)}z"
    )


class Writer:
    """Writes the parts; what they look like is in the classes.

    Args:
        figure: what ids start with.
        shares: what the parts have of the whole, for tooltips and shades.
        rows: whether there is a node table, so that the names of operators can lead to its rows; or which have a row.
        table: the address of the page that the node table stands in; empty if it is the same.
    """

    def __init__(
        self, figure: str, shares: Shares | None = None, *, rows: bool | Container[str] = False, table: str = ""
    ) -> None:
        self.figure, self.shares, self.rows, self.table = figure, shares, rows, table
        self.width: float | None = None
        """The width that the picture is shown at, in px of 1/96 inch, if it is not its own."""
        self.seen: set[str] = set()
        """Ids of the first letters that lead to each panel."""

    def style(self, classes: str) -> dict[str, object]:
        """The attributes that make an element look like ``classes``."""
        return {"class_": classes}

    def identity(self, path: str) -> dict[str, object]:
        """The attributes that pages, themes and scripts find an element by."""
        return {"id": anchor(self.figure, path), "data_path": path}

    def opening(self, body: str) -> dict[str, object]:
        """The attributes that the viewer finds the inside of a closed module by."""
        return {"data_body": body or None}

    def joins(self, line: Line) -> dict[str, object]:
        """The attributes that tell what an edge joins: names within the module around it, empty for that module."""
        return {"data_from": line.source, "data_to": line.target}

    def has_row(self, path: str) -> bool:
        """Whether there is a row for an operator."""
        return self.rows if isinstance(self.rows, bool) else path in self.rows

    def table_link(self, path: str) -> dict[str, object]:
        """Return the attributes of a link to an operator's row in the node table."""
        return {"href": f"{self.table}#{anchor(f'{self.figure}-row', path)}"}

    def size(self, picture: Frame) -> tuple[float, float]:
        """Width and height of the whole."""
        return picture.width, picture.height

    def document(self, picture: Frame, title: str, description: str) -> Iterator[str]:
        """A whole SVG element."""
        width, height = self.size(picture)
        scale = self.width / width if self.width else 1.0
        name = f"{self.figure}--title"
        about = f"{self.figure}--desc"
        yield tag(
            "svg",
            xmlns="http://www.w3.org/2000/svg",
            **self.style("fxg-svg"),
            viewBox=f"0 0 {number(width)} {number(height)}",
            width=width * scale,
            height=height * scale,
            role="group",
            aria_labelledby=name,
            aria_describedby=about,
        )
        yield f'<title id="{name}">{xml(title)}</title><desc id="{about}">{xml(description)}</desc><defs>'
        for kind in ("edge", "weak"):
            name = f"{self.figure}--{kind}"
            size = {"viewBox": "0 0 8 8", "refX": 7.4, "refY": 4, "markerWidth": 7, "markerHeight": 7}
            yield tag("marker", id=name, orient="auto", markerUnits="userSpaceOnUse", **size)
            yield tag("path", d="M0 .8 7.4 4 0 7.2z", **self.style(f"fxg-tip fxg-tip-{kind}")) + "</path></marker>"
        yield "</defs>"
        yield from self.inside(picture)
        for panel in picture.panels:
            yield from self.panel(panel)
        yield "</svg>"

    def panel(self, frame: Frame) -> Iterator[str]:
        """Write a kind of block that is drawn once beside the overview; its letter leads to the first such block."""
        box = frame.box
        assert box is not None, "a panel shows a block"
        yield tag(
            "g",
            **self.style("fxg-panel"),
            **self.panel_identity(frame),
            data_type=box.node.type or None,
            transform=f"translate({number(frame.x)} {number(frame.y)})",
        )
        yield from self.rectangles("fxg-frame", self.frame_colours(frame), frame.width, frame.height, 10, stacked=False)
        yield tag("g", transform=f"translate(0 {number(PANEL_TITLE)})")
        yield from self.inside(frame)
        for x, name in frame.inputs:
            left = x < frame.width / 2
            yield self.text("fxg-span" if left else "fxg-span fxg-right", x + (4 if left else -4), 10, ("", name))
        parts = (("fxg-letter", f"({frame.letter})"), ("fxg-kind", box.node.kind), ("fxg-count", f"×{frame.count}"))
        title = self.text("fxg-line", 12, 16.5, *parts)
        yield "</g>" + tag("a", **self.back_link(frame)) + title + "</a></g>"

    def panel_identity(self, frame: Frame) -> dict[str, object]:
        """Return the attributes that pages, themes and scripts find a panel by."""
        return {"id": f"{self.figure}--panel-{frame.letter}", "data_path": frame.path}

    def panel_link(self, letter: str) -> dict[str, object]:
        """Return the attributes of a link to a panel."""
        return {"href": f"#{self.figure}--panel-{letter}"}

    def back_link(self, frame: Frame) -> dict[str, object]:
        """Return the attributes of a link from a panel to the overview's first box of its kind."""
        return {"href": f"#{self.figure}--see-{frame.letter}"}

    def letters(self, drawn: Drawn) -> Iterator[str]:
        """Write the letters of the panels that show what a closed box is or holds, at its upper left corner."""
        for number_, letter in enumerate(drawn.letters):
            name = f"{self.figure}--see-{letter}"
            first = name not in self.seen
            self.seen.add(name)
            x = 3.0 + 17 * number_
            circle = tag("circle", **self.style("fxg-disc"), **self.disc_colours(), cx=x, cy=2.0, r=8.0) + "</circle>"
            text = self.text("fxg-letter fxg-disc-letter", x, 6.0, ("", letter))
            identity = self.see_identity(name) if first else {}
            yield tag("a", **self.style("fxg-see"), **identity, **self.panel_link(letter)) + circle + text + "</a>"

    def see_identity(self, name: str) -> dict[str, object]:
        """Return the attributes that a panel finds its first box by."""
        return {"id": name}

    def disc_colours(self) -> dict[str, object]:
        """Return the attributes that colour the disc around a letter."""
        return {}

    def frame(self, frame: Frame) -> Iterator[str]:
        """An open module with all that is in it."""
        box = frame.box
        assert box is not None, "only the whole picture has no box, and no frame around it"
        module = box.node.op != GROUP
        classes = "fxg-module" if module else "fxg-group"
        yield tag(
            "g",
            **self.style(
                f"{classes} fxg-depth-{(frame.depth - 1) % 3}{' fxg-fold' if box.run else ''}{_marks(box.node)}"
            ),
            **(self.identity(frame.path) if module else {}),
            data_type=box.node.type or None,
            data_count=box.run.count if box.run else None,
            data_names=_names(box),
            transform=f"translate({number(frame.x)} {number(frame.y)})",
        )
        yield from self.rectangles(
            "fxg-frame", self.frame_colours(frame), frame.width, frame.height, 10, stacked=bool(box.run)
        )
        yield from self.inside(frame)
        if module:
            told = f"{frame.path}: {box.node.type}\n{self.numbers(box, frame.path)}".rstrip()
            yield f"<title>{xml(told)}</title>"
        yield from self.badge(box, frame.path, frame.width)
        parts = [
            ("fxg-triangle", "▾"),
            ("fxg-attr", labels.title(box.node)),
            ("fxg-kind", labels.sign(box.node) + box.node.kind),
            ("fxg-count", labels.times(box)),
            ("fxg-span", labels.remark(box)),
        ]
        yield self.text("fxg-title", frame.title, 16.5, *(part for part in parts if part[1]))
        if box.run:
            yield self.text("fxg-title", frame.title, 28.5, ("fxg-span", labels.span(box.node, box.run)))
        yield "</g>"

    def rectangles(
        self, style: str, colours: Mapping[str, object], width: float, height: float, radius: int, *, stacked: bool
    ) -> Iterator[str]:
        """Write the outline of a box or a frame; of a run the lower sheets of its stack too."""
        size = {"width": float(width), "height": float(height), "rx": radius}
        for sheet in (2, 1) if stacked else ():
            place = {"x": labels.STACK * sheet, "y": labels.STACK * sheet}
            yield tag("rect", **self.style(f"{style} fxg-sheet"), **colours, **place, **size) + "</rect>"
        yield tag("rect", **self.style(style), **colours, **size) + "</rect>"

    def inside(self, frame: Frame) -> Iterator[str]:
        """What stands in a frame or in the picture: edges below boxes."""
        for line in frame.lines:
            yield self.line(line)
        if frame.dots:  # lines of no length with round ends: one element for all of them
            dots = "".join(f"M{number(x)} {number(y)}h0" for x, y in frame.dots)
            yield tag("path", **self.style("fxg-dots"), d=dots) + "</path>"
        for inner in frame.frames:
            yield from self.frame(inner)
        for drawn in frame.boxes:
            yield from self.box(drawn)
        for (x, y), text in frame.notes:
            yield self.text("fxg-note", x, y + 3.5, ("", text))

    def line(self, line: Line) -> str:
        """An edge."""
        points = [f"{number(x)} {number(y)}" for x, y in line.points]
        path = f"M{points[0]}"
        if line.enter:
            path = f"M{number(line.enter[0])} {number(line.enter[1])}L{points[0]}"
        path += ("C" if line.curved else "L") + " ".join(points[1:])
        if line.leave:
            path += f"L{number(line.leave[0])} {number(line.leave[1])}"
        classes = "fxg-edge" + (" fxg-weak" if line.weak else "")
        tip = f"url(#{self.figure}--{'weak' if line.weak else 'edge'})" if line.arrow else None
        return tag("path", **self.style(classes), **self.joins(line), d=path, marker_end=tip) + "</path>"

    def box(self, drawn: Drawn) -> Iterator[str]:
        """Write an operator, a closed module or a box of rows."""
        if drawn.rows:
            place = f"translate({number(drawn.x)} {number(drawn.y)})"
            size = {"width": float(drawn.label.width), "height": float(drawn.label.height), "rx": 7}
            yield tag("g", **self.style("fxg-rows"), transform=place)
            yield tag("rect", **self.style("fxg-back"), **size) + "</rect>"
            for row in drawn.rows:
                yield from self.row(row, first=row is drawn.rows[0], last=row is drawn.rows[-1])
            yield "</g>"
            return
        node, label = drawn.box.node, drawn.label
        if label.closed:
            classes = f"{'fxg-group' if node.op == GROUP else 'fxg-module'} fxg-closed"
        else:
            classes = self.operator_classes(drawn)
        run = drawn.box.run
        yield tag(
            "g",
            **self.style(f"{classes}{' fxg-fold' if run else ''}{_marks(node)}{self.shaded(drawn)}"),
            **self.identity(drawn.path),
            data_kind=None if label.closed else node.kind,
            data_type=node.type or None,
            data_count=run.count if run else None,
            data_names=_names(drawn.box),
            **self.opening(node.body),
            transform=f"translate({number(drawn.x)} {number(drawn.y)})",
        )
        colours = self.box_colours(drawn)
        yield from self.rectangles("fxg-box", colours, label.width, label.height, 7, stacked=label.stacked)
        middle = label.width / 2
        parts = [
            ("fxg-triangle", "▸" if label.closed else ""),
            ("fxg-kind", label.kind),
            ("fxg-count", label.count),
            ("fxg-detail", label.detail),
        ]
        head = self.text("fxg-head", middle, 16, *(part for part in parts if part[1]))
        yield head if label.name or label.closed else self.linked(drawn, head)
        y = 16.0
        if label.name:
            y += labels.LINE
            said = self.text("fxg-name", middle + label.name_middle, y, ("", label.name))
            yield said if label.closed else self.linked(drawn, said)
        if label.shape:
            y += labels.LINE if label.shape_below else 0
            yield self.text("fxg-shape", middle + label.shape_middle, y, ("", label.shape))
        if label.chips:
            yield from self.chip(label.chips, middle, y + 5)
        yield from self.badge(drawn.box, drawn.path, label.width)
        yield from self.letters(drawn)
        yield f"<title>{xml(self.about(drawn))}</title></g>"

    def operator_classes(self, drawn: Drawn) -> str:
        """Return the classes of an operator."""
        node = drawn.box.node
        holds_tensor = drawn.box.tensors or node.op == "output"
        return f"fxg-op fxg-{category(node)}" + ("" if holds_tensor else " fxg-nontensor")

    def row(self, drawn: Drawn, *, first: bool, last: bool) -> Iterator[str]:
        """Write one operator of a box of rows: kind and detail at its left, the name or the shape at its right.

        Args:
            drawn: the operator, placed within the box.
            first: whether it is the top row, which has the box's upper corners.
            last: whether it is the bottom row.
        """
        node, label = drawn.box.node, drawn.label
        yield tag(
            "g",
            **self.style(f"{self.operator_classes(drawn)} fxg-row{_marks(node)}{self.shaded(drawn)}"),
            **self.identity(drawn.path),
            data_kind=node.kind,
            data_type=node.type or None,
            transform=f"translate(0 {number(drawn.y)})",
        )
        outline = _row_outline(label.width, label.height, 7 if first else 0, 7 if last else 0)
        yield tag("path", **self.style("fxg-box"), **self.box_colours(drawn), d=outline) + "</path>"
        baseline = 12.0 if label.thin else 13.5
        parts = [("fxg-kind", label.kind), ("fxg-detail", label.detail)]
        head = self.text("fxg-line", 8, baseline, *(part for part in parts if part[1]))
        yield head if label.name else self.linked(drawn, head)
        if label.name:
            yield self.linked(drawn, self.text("fxg-name fxg-right", label.width - 8, baseline, ("", label.name)))
        if label.shape and label.shape_below:
            yield self.text("fxg-shape", label.width / 2, baseline + labels.LINE, ("", label.shape))
        elif label.shape:
            yield self.text("fxg-shape fxg-right", label.width - 8, baseline, ("", label.shape))
        if label.chips:
            left = 8 + labels.first_line(label.kind, label.detail) + labels.GAP
            yield from self.chip(label.chips, left + labels.chip_width(label.chips) / 2, baseline - 11)
        yield from self.badge(drawn.box, drawn.path, label.width)
        yield f"<title>{xml(self.about(drawn))}</title></g>"

    def linked(self, drawn: Drawn, text: str) -> str:
        """Return the text as a link to the operator's row in the node table, if it has one."""
        return tag("a", **self.table_link(drawn.path)) + text + "</a>" if self.has_row(drawn.path) else text

    def chip(self, text: str, middle: float, top: float) -> Iterator[str]:
        """Write the names of side inputs in an outline of their own."""
        width = labels.chip_width(text)
        place = {"x": middle - width / 2, "y": top, "width": width, "height": labels.CHIP_HEIGHT, "rx": 7}
        yield tag("rect", **self.style("fxg-chip"), **place) + "</rect>"
        yield self.text("fxg-name", middle, top + 11, ("", text))

    def box_colours(self, drawn: Drawn) -> dict[str, object]:  # noqa: ARG002 - print has attributes, pages a style sheet
        """Return the attributes that colour the outline of a box."""
        return {}

    def frame_colours(self, frame: Frame) -> dict[str, object]:  # noqa: ARG002 - as above
        """Return the attributes that colour the outline of a frame."""
        return {}

    def shaded(self, drawn: Drawn) -> str:
        """The classes of a box that is coloured by its share."""
        percent = self.shares.percent(drawn.box, drawn.path) if self.shares else None
        return "" if percent is None else f" fxg-shaded fxg-share-{shade(percent)}"

    def badge(self, box: Box, path: str, width: float) -> Iterator[str]:
        """The share that colours a box, in words, above its right corner. A frame has the words alone."""
        percent = self.shares.percent(box, path) if self.shares else None
        if percent:
            yield self.text("fxg-percent", width, -3, ("", written(percent)))

    def numbers(self, box: Box, path: str) -> str:
        """What a box has, with its share of the whole."""
        return self.shares.about(box, path) if self.shares else ""

    def about(self, drawn: Drawn) -> str:
        """What a tooltip tells: the whole path, the call, every result, numbers."""
        node = drawn.box.node
        call = f"{node.target}({drawn.box.arguments})" if node.op.startswith("call_") else node.target
        results = [f"{meta.path} {format_shape(meta)} {meta.dtype}".strip() for meta in drawn.box.tensors] or [
            node.result
        ]
        numbers = self.numbers(drawn.box, drawn.path)
        return "\n".join(part for part in (f"{drawn.path} = {call}", node.config, *results, numbers) if part)

    def text(self, style: str, x: float, y: float, *parts: tuple[str, str]) -> str:
        """One line; its parts stand side by side in styles of their own."""
        spans = [
            (tag("tspan", dx=labels.GAP if place else None, **self.style(name)) + xml(text) + "</tspan>")
            if name
            else xml(text)
            for place, (name, text) in enumerate(parts)
        ]
        return tag("text", **self.style(style), x=float(x), y=float(y)) + "".join(spans) + "</text>"
