"""Levels placed inside each other: from the coordinates of single levels to one picture.

Levels are placed from the inside out, since an open module is a box of the size of its inside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sphinx_fxgraph.layout import fallback
from sphinx_fxgraph.layout.geometry import Point
from sphinx_fxgraph.layout.graphviz import Coordinates, Extent, digest, level_dot
from sphinx_fxgraph.layout.place import Pads, Placed, place
from sphinx_fxgraph.layout.route import Line
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.model import Record, join
from sphinx_fxgraph.view import labels
from sphinx_fxgraph.view.estimate import MOST_CENTRED, PANEL_TITLE
from sphinx_fxgraph.view.expansion import WIDTH
from sphinx_fxgraph.view.labels import STACK, Label
from sphinx_fxgraph.view.level import BOUNDARY, Box, Level, connect
from sphinx_fxgraph.view.levels import overview
from sphinx_fxgraph.view.panels import GAP, Panel
from sphinx_fxgraph.view.simplify import GROUP, Shown

_TITLE = 24.0
"""Height of a frame's title."""
_MARGIN = Pads(8, 8, 8, 8)
_PADS = {"TB": Pads(12, 12, _TITLE, 2), "LR": Pads(_TITLE, 10, 6, 6)}
_SECOND_LINE = 12.0
"""More height for the title of a run."""
_NARROWEST, _STEP = 300.0, 30.0
"""Width by estimate below which no default view is tried again, and the least by which the next one is less."""
_ROUND_TITLE = 8.0
"""From a frame's title to its neighbours."""


@dataclass(frozen=True)
class Drawn:
    """An operator or closed module, by the upper left corner of its box within its frame."""

    path: str
    box: Box
    label: Label
    x: float
    y: float
    rows: tuple[Drawn, ...] = ()
    """The rows of a box of rows, placed within it."""
    letters: str = ""
    """Of the panels that show what a closed box is or holds."""


@dataclass(frozen=True)
class Frame:
    """An open module with everything in it, placed within the frame around it; the whole picture has no box."""

    path: str
    box: Box | None
    depth: int
    x: float
    y: float
    width: float
    height: float
    title: float
    """Where its title starts, from its left edge."""
    lines: tuple[Line, ...]
    dots: tuple[Point, ...]
    notes: tuple[tuple[Point, str], ...]
    boxes: tuple[Drawn, ...]
    frames: tuple[Frame, ...]
    letter: str = ""
    """Of a panel."""
    count: int = 0
    """How many blocks of its kind the model has."""
    inputs: tuple[tuple[float, str], ...] = ()
    """Of a panel with several inputs, where each comes in and its name."""
    panels: tuple[Frame, ...] = ()
    """The kinds of blocks that are drawn beside the whole picture."""


@dataclass(frozen=True)
class Inside:
    """The inside of a closed module: a picture without its frame, and the places of its inputs and outputs."""

    picture: Frame
    names: tuple[str, ...]
    """What enters at each pin."""
    inputs: tuple[float, ...]
    outputs: tuple[float, ...]


@dataclass(frozen=True)
class _Opened:
    """An open box: its extent with the stack of a run, how far its frame stands in it, and where its title starts.

    ``shift`` is how far the inside is moved across and along, ``length`` the frame's own size along the flow.
    """

    extent: Extent
    inset: float
    shift: Point
    length: float
    title: float


class Composer:
    """All in the axes of the flow: across and along. Only `scene` turns them into x and y.

    Args:
        record: what is drawn.
        look: how.
        layouts: the coordinates of levels by the digest of their DOT, as they become known.
        inside: whether the insides of closed modules are placed too.
        paper: whether the picture is for paper.
    """

    def __init__(
        self, record: Record, look: ViewOptions, layouts: Mapping[str, Coordinates], *, inside: bool, paper: bool
    ) -> None:
        self.record, self.look, self.paper, self.with_insides = record, look, paper, inside
        self.layouts = layouts
        self.flip = look.direction == "LR"
        self.pads = _PADS[look.direction]
        self.widest, self.is_chosen = WIDTH, False
        self._folds: dict[bool, Shown] = {}
        self._choose()
        self.dots: dict[str, str] = {}
        self.asked: dict[str, tuple[Level, Sequence[Extent], Sequence[Point]]] = {}
        """What is laid out, by the digest of its DOT."""
        self.placed: dict[Level, Placed] = {}
        self._labels: dict[Box, Label] = {}

    def _choose(self) -> None:
        """Choose what is shown within the width."""
        self.view = overview(self.record, self.look, paper=self.paper, widest=self.widest, folds=self._folds)
        self.root = connect(self.view.root)
        # Of a view that is chosen again, the insides of closed modules are laid out once it is settled.
        is_first = self.widest == WIDTH
        self.closed = self.view.closed_levels() if self.with_insides and (is_first or self.is_chosen) else {}

    def advance(self) -> dict[str, str]:
        """Place every level that has a layout; the DOT of those that lack one, as far as their insides are placed.

        A default view that the engine made wider than its limit is chosen again, within less; the first one stays if
        none is narrow enough.
        """
        missing = self._advance()
        while not missing and not self.is_chosen:
            over = self._excess()
            if over > 0 and self.widest > _NARROWEST:
                self.widest -= max(over, _STEP)
                self._choose()
            else:
                self.is_chosen = True
                if over > 0 and self.widest < WIDTH:
                    self.widest = WIDTH
                    self._choose()
                elif self.widest < WIDTH and self.with_insides:
                    self.closed = self.view.closed_levels()
            missing = self._advance()
        return missing

    def _excess(self) -> float:
        """Return by how much the picture is wider than a default view may be; 0 where options ask for more."""
        if self.flip or self.paper or self.look.panels == "yes" or self.look.depth is not None or self.look.open:
            return 0.0
        return self.scene().width - WIDTH

    def _advance(self) -> dict[str, str]:
        missing: dict[str, str] = {}
        seen: set[Level] = set()
        panels = [panel.box.inner for panel in self.view.panels if panel.box.inner]
        for level in (self.root, *panels, *self.closed.values()):
            self._visit(level, missing, seen)
        return missing

    def _visit(self, level: Level, missing: dict[str, str], seen: set[Level]) -> None:
        if level in self.placed or level in seen:
            return
        seen.add(level)
        inside = [box.inner for box in level.boxes if box.inner]
        for inner in inside:
            self._visit(inner, missing, seen)
        if any(inner not in self.placed for inner in inside):
            return
        extents = [self._extent(box) for box in level.boxes]
        notes = [self._turned(*labels.edge_text_size(edge)) for edge in level.edges]
        dot = level_dot(level, extents, notes)
        key = digest(dot)
        self.dots[key] = dot
        self.asked[key] = level, extents, notes
        if key in self.layouts and _answers(level, self.layouts[key]):
            pads = _MARGIN if level is self.root else self.pads
            self.placed[level] = place(level, extents, notes, self.layouts[key], pads)
        else:
            missing[key] = dot

    def is_answered(self, key: str, found: Coordinates) -> bool:
        """Return whether coordinates have all that the level with this digest needs."""
        return _answers(self.asked[key][0], found)

    def plain(self, key: str) -> Coordinates:
        """Lay out a level without an engine."""
        return fallback.lay_out_plain(*self.asked[key])

    def _turned(self, x: float, y: float) -> Point:
        return (y, x) if self.flip else (x, y)

    def _label(self, box: Box) -> Label:
        if box not in self._labels:
            self._labels[box] = labels.label(box)
        return self._labels[box]

    def _extent(self, box: Box) -> Extent:
        if box.inner:
            return self._opened(box).extent
        text = self._label(box)
        across, along = self._turned(text.width, text.height)
        stack = 2 * STACK if text.stacked else 0.0
        return Extent(across + 2 * stack, along + stack, stack=stack)

    def _opened(self, box: Box) -> _Opened:
        assert box.inner is not None, "an open box"
        placed = self.placed[box.inner]
        needed = labels.title_width(box) + 2 * _ROUND_TITLE
        stack = 2 * STACK if box.run else 0.0
        second = _SECOND_LINE if box.run else 0.0
        across, along, shift, title = placed.width, placed.height + second, 0.0, self.pads.before - 4
        if self.flip:
            across, along, shift, title = across + second, max(placed.height, math.ceil(needed)), second, 8.0
            second = 0.0
        elif title + needed > min((*placed.inputs, placed.width)):
            # No room left of the line that comes in: the title goes right of all lines.
            last = max(placed.inputs, default=0.0)
            more = max(0, math.ceil(last + needed - across))
            across += more
            if across + more <= MOST_CENTRED:  # what is inside stays in the middle
                across, shift = across + more, float(more)
            across = 2 * math.ceil(across / 2)
            title = last + shift + _ROUND_TITLE
        extent = Extent(
            across + 2 * stack,
            along + stack,
            tuple(x + shift + stack for x in placed.inputs),
            tuple(x + shift + stack for x in placed.outputs),
        )
        return _Opened(extent, stack, (shift, second), along, title)

    def scene(self) -> Frame:
        """Return the picture, built from the outside in."""
        placed = self.placed[self.root]
        root = _Opened(Extent(placed.width, placed.height), 0, (0, 0), placed.height, 0)
        picture = self._frame(self.root, "", None, 0, (0.0, 0.0), root)
        return self._with_panels(picture) if self.view.panels else picture

    def _with_panels(self, picture: Frame) -> Frame:
        """Put the panels into columns right of the picture."""
        below = self.view.panels[0].below
        left = _MARGIN.before if below else picture.width + GAP - _MARGIN.after - 2
        start = picture.height + GAP if below else _MARGIN.start
        width, height = picture.width, picture.height
        found: list[Frame] = []
        for column in range(1 + max(panel.column for panel in self.view.panels)):
            top, right = start, left
            for panel in self.view.panels:
                if panel.column != column or panel.box.inner is None:
                    continue
                frame = self._panel(panel, panel.box.inner, (left, top))
                found.append(frame)
                top += frame.height + GAP
                right = max(right, left + frame.width)
                height = max(height, top - GAP + _MARGIN.end)
            left, width = right + GAP, max(width, right + _MARGIN.after)
        panels = sorted(found, key=lambda frame: frame.letter)
        return replace(picture, width=width, height=height, panels=tuple(panels))

    def _panel(self, panel: Panel, level: Level, at: Point) -> Frame:
        """Return a panel: its title, below that the names of its inputs, and the block."""
        placed = self.placed[level]
        least = labels.panel_width(panel.box.node.kind, panel.count) + 24
        width = max(placed.width, 2 * math.ceil(least / 2))
        shift = (width - placed.width) / 2
        opened = _Opened(Extent(width, placed.height), 0, (shift, 0), placed.height, 0)
        frame = self._frame(level, panel.path, panel.box, 2, at, opened)
        names = [(x + shift, name) for x, name in zip(placed.inputs, level.names, strict=True)]
        return replace(
            frame,
            height=frame.height + PANEL_TITLE,
            letter=panel.letter,
            count=panel.count,
            inputs=tuple(names) if len(names) > 1 else (),
        )

    def inside(self, level: Level) -> Inside:
        """Return the content of the frame of a closed module that is opened."""
        placed = self.placed[level]
        opened = _Opened(Extent(placed.width, placed.height), 0, (0, 0), placed.height, 0)
        frame = self._frame(level, "", None, 0, (0.0, 0.0), opened)
        return Inside(frame, level.names, placed.inputs, placed.outputs)

    def _frame(self, level: Level, path: str, outer: Box | None, depth: int, at: Point, opened: _Opened) -> Frame:
        placed, (aside, down) = self.placed[level], opened.shift
        boxes, frames = [], []
        for box, (middle, y) in zip(level.boxes, placed.boxes, strict=True):
            extent = self._extent(box)
            across, along = middle + aside - extent.width / 2, y + down - extent.height / 2
            if box.inner:
                inner = self._opened(box)
                where = path if box.node.op == GROUP else join(path, box.node.name)
                frames.append(self._frame(box.inner, where, box, depth + 1, (across + inner.inset, along), inner))
            else:
                text = self._label(box)
                corner = self._turned(across + (2 * STACK if text.stacked else 0), along)
                boxes.append(
                    Drawn(
                        join(path, box.node.name),
                        box,
                        text,
                        *corner,
                        rows=_rows(path, box, text),
                        letters=self.view.letters(box),
                    )
                )
        x, y = self._turned(*at)
        width, height = self._turned(opened.extent.width - 2 * opened.inset, opened.length)
        return Frame(
            path=path,
            box=outer,
            depth=depth,
            x=x,
            y=y,
            width=width,
            height=height,
            title=opened.title,
            lines=tuple(self._line(level, line, opened.shift, opened.extent.height) for line in placed.lines),
            dots=tuple(self._turned(x + aside, y + down) for x, y in placed.dots),
            notes=tuple(
                (self._turned(x + aside, y + down), labels.edge_text(level.edges[index]))
                for (x, y), index in placed.notes
            ),
            boxes=tuple(boxes),
            frames=tuple(frames),
        )

    def _line(self, level: Level, line: Line, shift: Point, length: float) -> Line:
        """Return a line in its frame; one that leaves a run goes on past the sheets of its stack."""
        source, target = (
            "" if box == BOUNDARY else None if box is None else level.boxes[box].row(number).node.name
            for box, number in ((line.tail, -1), (line.head, 0))
        )
        points = [(x + shift[0], y + shift[1]) for x, y in line.points]
        enter = self._turned(points[0][0], 0.0) if line.enters else None
        leave = self._turned(points[-1][0], length) if line.leaves else None
        points = [self._turned(*point) for point in points]
        return replace(line, points=tuple(points), enter=enter, leave=leave, source=source, target=target)


def _rows(path: str, box: Box, label: Label) -> tuple[Drawn, ...]:
    tops = itertools.accumulate((row.height for row in label.rows), initial=0.0)
    return tuple(
        Drawn(join(path, row.node.name), row, text, 0.0, top)
        for row, text, top in zip(box.rows, label.rows, tops, strict=False)
    )


def _answers(level: Level, found: Coordinates) -> bool:
    """Return whether coordinates are complete for a level: they may come from a file that anyone has written."""
    names = {f"n{index}" for index in range(len(level.boxes))}
    names |= {f"i{k}" for k in range(level.inputs)} | {f"o{k}" for k in range(level.outputs)}
    edges = {str(index) for index in range(len(level.edges))}
    curves = all(len(flat) % 6 == 2 for flat in found["edges"].values())
    return names <= found["nodes"].keys() and edges >= found["edges"].keys() | found.get("notes", {}).keys() and curves
