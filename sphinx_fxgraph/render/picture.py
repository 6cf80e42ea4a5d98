"""Build the element tree of a picture: boxes, frames, edges and texts, the same for a page and for print."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sphinx_fxgraph.escape import anchor
from sphinx_fxgraph.record.diff import SIGNS
from sphinx_fxgraph.render import colors
from sphinx_fxgraph.render.colors import Shares, format_percent, shade
from sphinx_fxgraph.render.elements import Element, Line, Text, move, number, outline, row_outline
from sphinx_fxgraph.units import format_shape
from sphinx_fxgraph.view import fonts, labels
from sphinx_fxgraph.view.annotations import category
from sphinx_fxgraph.view.estimate import PANEL_TITLE
from sphinx_fxgraph.view.simplify import GROUP

if TYPE_CHECKING:
    from sphinx_fxgraph.layout.route import Line as Edge
    from sphinx_fxgraph.record.model import Node
    from sphinx_fxgraph.render.scene import Drawn, Frame
    from sphinx_fxgraph.view.level import Box

_MARKS = ("dead", "failed", *SIGNS)
"""Remarks on an operator that change what its box looks like."""
_PAGE_HEIGHT = 9 * 96.0
"""The most that a figure of a given width is high: a page of letter paper, its margins left out."""
_MOST_SIDES = 6
"""Inputs of a panel whose names are tried on both sides of their lines."""
_RADIUS, _FRAME_RADIUS = 7.0, 10.0
"""Of the corners of boxes and of frames."""
_MARGIN, _SWATCH, _ROW = 8.0, 12.0, 18.0
"""Of the legend below a picture: space beside it, size of a swatch, height of a row."""

Content = Iterator[Element | Line | Text]


class Builder:
    """Builds the elements of a picture.

    Args:
        figure: what ids start with.
        shares: the shares of the parts, for tooltips and heat colours.
        rows: whether there is a node table that names of operators lead to; or which paths have a row.
        table: the address of the page that the node table stands in; empty if it is the same.
        part: whether the picture is the inside of a closed module, which the viewer puts into place: without ids.
        links: the addresses of the documentation of classes, which the classes in the titles of frames lead to.
    """

    def __init__(
        self,
        figure: str,
        shares: Shares | None = None,
        *,
        rows: bool | Container[str] = False,
        table: str = "",
        part: bool = False,
        links: Mapping[str, str] = {},
    ) -> None:
        self.figure, self.shares, self.rows, self.table, self.part = figure, shares, rows, table, part
        self.links = links
        self._linked: set[str] = set()
        """The panels that a letter leads to already: the first one has an id."""

    def document(
        self, picture: Frame, title: str, description: str, *, width: float | None = None, legend: bool = False
    ) -> Element:
        """Return the whole picture.

        Args:
            picture: what is drawn.
            title: its name.
            description: a sentence in its place.
            width: the width of the figure in px of 1/96 inch, if it is not the picture's own. The picture fills it, but
                it is not enlarged, and it is no higher than a page; where it is narrower it stands in the middle.
            legend: whether the colours are explained below it.
        """
        rows = legend_rows(picture, self.shares) if legend else []
        right, bottom = size(picture, self.shares, legend=legend)
        scale = min(1.0, width / right, _PAGE_HEIGHT / bottom) if width else 1.0
        beside = (width / scale - right) / 2 if width else 0.0
        geometry = {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"{number(-beside) if beside else 0} 0 {number(right + 2 * beside)} {number(bottom)}",
            "width": width or right,
            "height": bottom * scale,
            "role": "group",
            "aria-labelledby": f"{self.figure}--title",
            "aria-describedby": f"{self.figure}--desc",
        }
        content = [
            Element("title", "", [Text(title)], {"id": f"{self.figure}--title"}),
            Element("desc", "", [Text(description)], {"id": f"{self.figure}--desc"}),
            Element("defs", "", [self._marker("edge"), self._marker("weak")]),
            *self.inside(picture),
            *(self._panel(panel) for panel in picture.panels),
            *(
                _legend_entry(entry, x, picture.height + line * _ROW)
                for line, row in enumerate(rows)
                for x, entry in row
            ),
        ]
        return Element("svg", "fxg-svg", content, geometry)

    def _marker(self, kind: str) -> Element:
        tip = Element("path", f"fxg-tip fxg-tip-{kind}", (), {"d": "M0 .8 7.4 4 0 7.2z"})
        name = f"{self.figure}--{kind}"
        size = {"viewBox": "0 0 8 8", "refX": "7.4", "refY": "4", "markerWidth": "7", "markerHeight": "7"}
        return Element("marker", "", [tip], {"id": name, "orient": "auto", "markerUnits": "userSpaceOnUse", **size})

    def inside(self, frame: Frame) -> Content:
        """Yield what stands in a frame or in the picture: edges below boxes."""
        for line in frame.lines:
            yield self._edge(line)
        if frame.dots:  # lines of no length with round ends: one element for all of them
            dots = "".join(f"M{number(x)} {number(y)}h0" for x, y in frame.dots)
            yield Element("path", "fxg-dots", (), {"d": dots})
        for inner in frame.frames:
            yield self._frame(inner)
        for drawn in frame.boxes:
            yield self._rows(drawn) if drawn.rows else self._box(drawn)
        for (x, y), text in frame.notes:
            yield Line("fxg-note", x, y + 3.5, ("", text))

    def _edge(self, line: Edge) -> Element:
        points = [f"{number(x)} {number(y)}" for x, y in line.points]
        path = f"M{points[0]}"
        if line.enter:
            path = f"M{number(line.enter[0])} {number(line.enter[1])}L{points[0]}"
        path += ("C" if line.curved else "L") + " ".join(points[1:])
        if line.leave:
            path += f"L{number(line.leave[0])} {number(line.leave[1])}"
        geometry = {"d": path}
        if line.arrow:
            geometry["marker-end"] = f"url(#{self.figure}--{'weak' if line.weak else 'edge'})"
        # The names that it joins within the module around it; empty for that module.
        hooks = {"data-from": line.source, "data-to": line.target}
        return Element("path", "fxg-edge fxg-weak" if line.weak else "fxg-edge", (), geometry, hooks)

    def _identity(self, path: str) -> dict[str, object]:
        """Return the hooks that pages, themes and scripts find an element by."""
        return {"data-path": path} if self.part else {"id": anchor(self.figure, path), "data-path": path}

    # -- panels

    def _panel(self, frame: Frame) -> Element:
        """Return a kind of block that is drawn once beside the overview; its title leads to the first such block."""
        box = frame.box
        assert box is not None, "a panel shows a block"
        parts = (("fxg-letter", f"({frame.letter})"), ("fxg-kind", box.node.kind), ("fxg-count", f"×{frame.count}"))
        content = [
            *outline("fxg-frame", frame.width, frame.height, _FRAME_RADIUS, stacked=False),
            Element("g", "", list(self._panel_content(frame)), {"transform": f"translate(0 {number(PANEL_TITLE)})"}),
            Element(
                "a",
                "",
                [Line("fxg-line", 12, 16.5, *parts)],
                hooks={"href": f"#{self.figure}--see-{frame.letter}"},
            ),
        ]
        hooks = {
            "id": f"{self.figure}--panel-{frame.letter}",
            "data-path": frame.path,
            "data-type": box.node.type or None,
        }
        return Element("g", "fxg-panel", content, {"transform": move(frame.x, frame.y)}, hooks)

    def _panel_content(self, frame: Frame) -> Content:
        yield from self.inside(frame)
        for x, name, is_right in input_names(frame):
            yield Line("fxg-span" if is_right else "fxg-span fxg-right", x + (4 if is_right else -4), 10, ("", name))

    def _letters(self, drawn: Drawn) -> Content:
        """Yield the letters of the panels that show what a closed box is or holds, at its upper left corner."""
        for index, letter in enumerate(drawn.letters):
            hooks: dict[str, object] = {"href": f"#{self.figure}--panel-{letter}"}
            if letter not in self._linked:
                hooks = {"id": f"{self.figure}--see-{letter}", **hooks}
                self._linked.add(letter)
            x = 3.0 + 17 * index
            disc = Element("circle", "fxg-disc", (), {"cx": x, "cy": 2.0, "r": 8.0})
            yield Element("a", "fxg-see", [disc, Line("fxg-letter fxg-disc-letter", x, 6.0, ("", letter))], hooks=hooks)

    # -- frames

    def _frame(self, frame: Frame) -> Element:
        """Return an open module with all that is in it."""
        box = frame.box
        assert box is not None, "only the whole picture has no box, and no frame around it"
        node, run, is_module = box.node, box.run, box.node.op != GROUP
        classes = "fxg-module" if is_module else "fxg-group"
        classes += f" fxg-depth-{(frame.depth - 1) % 3}{' fxg-fold' if run else ''}{_marks(node)}"
        hooks = {
            **(self._identity(frame.path) if is_module else {}),
            "data-type": node.type or None,
            "data-count": str(run.count) if run else None,
            "data-names": _names(box),
        }
        content: list[Element | Line | Text] = [
            *outline("fxg-frame", frame.width, frame.height, _FRAME_RADIUS, stacked=bool(run)),
            *self.inside(frame),
        ]
        if is_module:
            numbers = self.shares.about(box, frame.path) if self.shares else ""
            content.append(Element("title", "", [Text(f"{frame.path}: {node.type}\n{numbers}".rstrip())]))
        content += self._badge(box, frame.path, frame.width)
        parts = [
            ("fxg-triangle", "▾"),
            ("fxg-attr", labels.title(node)),
            ("fxg-kind", labels.sign(node) + node.kind),
            ("fxg-count", labels.times(box)),
            ("fxg-span", labels.remark(box)),
        ]
        address = self.links.get(node.type, "")
        content.append(Line("fxg-title", frame.title, 16.5, *(part for part in parts if part[1]), address=address))
        if run:
            content.append(Line("fxg-title", frame.title, 28.5, ("fxg-span", labels.span(node, run))))
        return Element("g", classes, content, {"transform": move(frame.x, frame.y)}, hooks)

    # -- boxes

    def _box(self, drawn: Drawn) -> Element:
        """Return an operator or a closed module."""
        node, label, run = drawn.box.node, drawn.label, drawn.box.run
        if label.closed:
            classes = f"{'fxg-group' if node.op == GROUP else 'fxg-module'} fxg-closed"
        else:
            classes = _operator_classes(drawn)
        classes += f"{' fxg-fold' if run else ''}{_marks(node)}{self._share_classes(drawn)}"
        hooks = {
            **self._identity(drawn.path),
            "data-kind": None if label.closed else node.kind,
            "data-type": node.type or None,
            "data-count": str(run.count) if run else None,
            "data-names": _names(drawn.box),
            "data-body": node.body or None,  # the viewer opens the module with it
        }
        content = [
            *outline("fxg-box", label.width, label.height, _RADIUS, stacked=label.stacked),
            *self._box_texts(drawn),
            *self._badge(drawn.box, drawn.path, label.width),
            *self._letters(drawn),
            Element("title", "", [Text(self._about(drawn))]),
        ]
        return Element("g", classes, content, {"transform": move(drawn.x, drawn.y)}, hooks)

    def _box_texts(self, drawn: Drawn) -> Content:
        label, middle, y = drawn.label, drawn.label.width / 2, 16.0
        parts = [
            ("fxg-triangle", "▸" if label.closed else ""),
            ("fxg-kind", label.kind),
            ("fxg-count", label.count),
            ("fxg-detail", label.detail),
        ]
        head = Line("fxg-head", middle, y, *(part for part in parts if part[1]))
        yield head if label.name or label.closed else self._row_link(drawn, head)
        if label.name:
            y += labels.LINE
            name = Line("fxg-name", middle + label.name_middle, y, ("", label.name))
            yield name if label.closed else self._row_link(drawn, name)
        if label.shape:
            y += labels.LINE if label.shape_below else 0
            yield Line("fxg-shape", middle + label.shape_middle, y, ("", label.shape))
        if label.chips:
            yield from _chip(label.chips, middle, y + 5)

    def _rows(self, drawn: Drawn) -> Element:
        """Return a box with a row for each operator."""
        size = {"width": float(drawn.label.width), "height": float(drawn.label.height), "rx": _RADIUS}
        content = [Element("rect", "fxg-back", (), size)]
        content += [self._row(row, row is drawn.rows[0], row is drawn.rows[-1]) for row in drawn.rows]
        return Element("g", "fxg-rows", content, {"transform": move(drawn.x, drawn.y)})

    def _row(self, drawn: Drawn, is_first: bool, is_last: bool) -> Element:
        """Return one operator of a box of rows: kind and detail at its left, the name or the shape at its right."""
        node, label = drawn.box.node, drawn.label
        path = row_outline(label.width, label.height, _RADIUS * is_first, _RADIUS * is_last)
        content = [
            Element("path", "fxg-box", (), {"d": path}),
            *self._row_texts(drawn),
            *self._badge(drawn.box, drawn.path, label.width),
            Element("title", "", [Text(self._about(drawn))]),
        ]
        classes = f"{_operator_classes(drawn)} fxg-row{_marks(node)}{self._share_classes(drawn)}"
        hooks = {**self._identity(drawn.path), "data-kind": node.kind, "data-type": node.type or None}
        return Element("g", classes, content, {"transform": f"translate(0 {number(drawn.y)})"}, hooks)

    def _row_texts(self, drawn: Drawn) -> Content:
        label = drawn.label
        baseline, right = 12.0 if label.thin else 13.5, label.width - 8
        parts = [("fxg-kind", label.kind), ("fxg-detail", label.detail)]
        head = Line("fxg-line", 8, baseline, *(part for part in parts if part[1]))
        yield head if label.name else self._row_link(drawn, head)
        if label.name:
            yield self._row_link(drawn, Line("fxg-name fxg-right", right, baseline, ("", label.name)))
        if label.shape and label.shape_below:
            yield Line("fxg-shape", label.width / 2, baseline + labels.LINE, ("", label.shape))
        elif label.shape:
            yield Line("fxg-shape fxg-right", right, baseline, ("", label.shape))
        if label.chips:
            left = 8 + labels.first_line(label.kind, label.detail) + labels.GAP
            yield from _chip(label.chips, left + labels.chip_width(label.chips) / 2, baseline - 11)

    def _row_link(self, drawn: Drawn, line: Line) -> Element | Line:
        """Return the line as a link to the operator's row in the node table, if it has one."""
        if not (self.rows if isinstance(self.rows, bool) else drawn.path in self.rows):
            return line
        # In a part the viewer sets the address: it knows the whole path.
        address = {} if self.part else {"href": f"{self.table}#{anchor(f'{self.figure}-row', drawn.path)}"}
        return Element("a", "", [line], hooks=address)

    # -- numbers

    def _share_classes(self, drawn: Drawn) -> str:
        """Return the classes of a box that is coloured by its share."""
        percent = self.shares.percent(drawn.box, drawn.path) if self.shares else None
        return "" if percent is None else f" fxg-shaded fxg-share-{shade(percent)}"

    def _badge(self, box: Box, path: str, width: float) -> Content:
        """Yield the share that colours a box in words, above its right corner. A frame has the words alone."""
        percent = self.shares.percent(box, path) if self.shares else None
        if percent:
            yield Line("fxg-percent", width, -3, ("", format_percent(percent)))

    def _about(self, drawn: Drawn) -> str:
        """Return a tooltip: the whole path, the call, every result, numbers."""
        node = drawn.box.node
        call = f"{node.target}({drawn.box.arguments})" if node.op.startswith("call_") else node.target
        results = [f"{meta.path} {format_shape(meta)} {meta.dtype}".strip() for meta in drawn.box.tensors]
        numbers = self.shares.about(drawn.box, drawn.path) if self.shares else ""
        lines = (f"{drawn.path} = {call}", node.config, *(results or [node.result]), numbers)
        return "\n".join(line for line in lines if line)


def input_names(frame: Frame) -> Sequence[tuple[float, str, bool]]:
    """Return the names of a panel's inputs: where each enters, its text, and whether it stands right of the line.

    They stand on the sides where none meets another one or leaves the panel; where there is no room, they are
    shortened.
    """
    inputs = sorted(frame.inputs)
    sides = [x < frame.width / 2 for x, _ in inputs]
    if len(inputs) <= _MOST_SIDES:
        # The sides away from the border first.
        ways = itertools.product(*([side, not side] for side in sides))
        sides = next((list(way) for way in ways if _has_room(inputs, way, frame.width)), sides)
    if _has_room(inputs, sides, frame.width):
        return [(x, name, side) for (x, name), side in zip(inputs, sides, strict=True)]
    ends = [*(x for x, _ in inputs), frame.width]
    rooms = (int((after - x - 12) / fonts.mono("0", labels.NAME_SIZE)) for x, after in itertools.pairwise(ends))
    return [(x, fonts.shorten(name, room), True) for (x, name), room in zip(inputs, rooms, strict=True) if room > 1]


def _has_room(inputs: Sequence[tuple[float, str]], sides: Sequence[bool], width: float) -> bool:
    """Return whether names stand free of each other, of other lines and of the border.

    Args:
        inputs: where each name's line is, and the name, from the left.
        sides: whether each name stands right of its line.
        width: of the panel.
    """
    end = 0.0
    for (x, name), is_right in zip(inputs, sides, strict=True):
        size = fonts.mono(name, labels.NAME_SIZE) + 4
        left, right = (x, x + size) if is_right else (x - size, x)
        if left < end + 4:
            return False
        end = right
    return end + 4 < width


def _marks(node: Node) -> str:
    return "".join(f" fxg-{mark}" for mark in node.marks if mark in _MARKS) if node.marks else ""


def _names(box: Box) -> str | None:
    """Return the names of all nodes that a box stands for, by which the viewer finds those that are not drawn."""
    return " ".join(box.names) if len(box.names) > 1 else None


def _operator_classes(drawn: Drawn) -> str:
    node = drawn.box.node
    holds_tensor = drawn.box.tensors or node.op == "output"
    return f"fxg-op fxg-{category(node)}" + ("" if holds_tensor else " fxg-nontensor")


def _chip(text: str, middle: float, top: float) -> Content:
    """Yield the names of side inputs in an outline of their own."""
    width = labels.chip_width(text)
    place = {"x": middle - width / 2, "y": top, "width": width, "height": labels.CHIP_HEIGHT, "rx": 7.0}
    yield Element("rect", "fxg-chip", (), place)
    yield Line("fxg-name", middle, top + 11, ("", text))


# -- the legend below a picture


def size(picture: Frame, shares: Shares | None, *, legend: bool) -> tuple[float, float]:
    """Return width and height of a picture, with the legend below it if it has one."""
    rows = len(legend_rows(picture, shares)) if legend else 0
    return picture.width, picture.height + (rows * _ROW + _MARGIN if rows else 0)


def legend_rows(picture: Frame, shares: Shares | None) -> Sequence[Sequence[tuple[float, colors.Entry]]]:
    """Return the entries of the legend in rows no wider than the picture, each with where it starts."""
    rows: list[list[tuple[float, colors.Entry]]] = []
    x = picture.width
    for entry in colors.entries(picture, shares):
        needed = _SWATCH + 6 + fonts.sans(entry.text, labels.SHAPE_SIZE) + 14
        if not rows or x + needed > picture.width - _MARGIN:
            rows.append([])
            x = _MARGIN
        rows[-1].append((x, entry))
        x += needed
    return rows


def _legend_entry(entry: colors.Entry, x: float, y: float) -> Element:
    """Return a swatch, drawn as the boxes or lines that it explains, and its text."""
    middle = y + _ROW / 2
    swatch: list[Element | Line | Text]
    if entry.key == "closed":
        swatch = [Line("", x, middle + 4, ("fxg-triangle", "▸"))]
    elif entry.key == "weak":
        swatch = [Element("path", "fxg-edge fxg-weak", (), {"d": f"M{number(x)} {number(middle)}h{number(_SWATCH)}"})]
    else:
        place = {"width": _SWATCH, "height": _SWATCH, "rx": 3.0}
        top = middle - _SWATCH / 2
        sheets = (2, 0) if entry.key == "fold" else (0,)
        swatch = [Element("rect", "fxg-box", (), {"x": x + sheet, "y": top + sheet, **place}) for sheet in sheets]
    classes = f"fxg-shaded fxg-{entry.key}" if entry.key.startswith("share-") else f"fxg-{entry.key}"
    classes = "fxg-io" if entry.key == "fold" else classes
    return Element("g", classes, [*swatch, Line("fxg-key", x + _SWATCH + 6, middle + 3.5, ("", entry.text))])
