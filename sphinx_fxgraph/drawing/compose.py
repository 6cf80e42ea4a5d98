"""Levels placed inside each other: from the coordinates of single levels to one picture.

Levels are laid out from the inside out, since an open module is a box of the size of its inside; equal levels are laid
out once. What the engine rounds is put right here: the boxes of a spine stand exactly above each other, and an edge
enters a frame exactly where it goes on inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sphinx_fxgraph.drawing import fonts
from sphinx_fxgraph.drawing.labels import KIND_SIZE, NAME_SIZE, Label, label
from sphinx_fxgraph.drawing.layout import Coordinates, Engine
from sphinx_fxgraph.drawing.level_dot import Extent, digest, level_dot
from sphinx_fxgraph.drawing.levels import BOUNDARY, Box, Edge, Level, Port, root_level
from sphinx_fxgraph.drawing.shown import GROUP, Look
from sphinx_fxgraph.record import Node, Record, join

Point = tuple[float, float]

MARGIN = 8.0
"""Around the whole picture, in user units."""
SIDE, TOP, BOTTOM = 14.0, 24.0, 2.0
"""Between a frame and its inside."""
_SNAP = 8.0
"""The most that a box is moved to stand exactly on the spine: less than half the distance of two boxes."""


@dataclass(frozen=True)
class Placed:
    """An operator or closed module, by the upper left corner of its box within its frame."""

    path: str
    box: Box
    label: Label
    x: float
    y: float


@dataclass(frozen=True)
class Line:
    """An edge within a frame: two ``points`` of a straight line, or the control points of Bézier curves.

    It starts at ``enter`` on the frame's upper border where it comes from outside, and goes on to ``leave`` on the
    lower border where it leads outside.
    """

    points: tuple[Point, ...]
    weak: bool
    arrow: bool
    enter: Point | None = None
    leave: Point | None = None


@dataclass(frozen=True)
class Frame:
    """An open module and all that is drawn inside, placed within the frame around it; the picture has no node."""

    path: str
    node: Node | None
    depth: int
    x: float
    y: float
    width: float
    height: float
    title: float
    """Where its title starts, from its left edge."""
    shift: float
    """How far right of the frame's left edge its lines are drawn."""
    lines: tuple[Line, ...]
    boxes: tuple[Placed, ...]
    frames: tuple[Frame, ...]


@dataclass
class Job:
    """One picture to be made: a record, a look, and the layouts known so far by the digest of their DOT."""

    record: Record
    look: Look = field(default_factory=Look)
    layouts: dict[str, Coordinates] = field(default_factory=dict)

    def dot(self) -> str:
        """The DOT of every level of the picture, one graph after another, as Graphviz reads it."""
        return "".join(_Composer(self).dots.values())

    def used(self) -> dict[str, Coordinates]:
        """The layouts that this picture needs, of those that it knows."""
        return {key: self.layouts[key] for key in _Composer(self).dots if key in self.layouts}

    def complete(self) -> bool:
        """Whether all its levels have a layout."""
        return not _Composer(self).missing


def lay_out(jobs: Sequence[Job], engine: Engine, timeout: float = 60) -> list[str]:
    """Fill in the layouts that the jobs lack, in as few runs of the engine as the nesting allows.

    Returns:
        What the engine complained of, if anything.

    Raises:
        EngineMissingError, EngineFailedError: see `layout`.
    """
    complaints: list[str] = []
    while True:
        missing = [_Composer(job).missing for job in jobs]
        graphs = {key: dot for found in missing for key, dot in found.items()}
        if not graphs:
            return complaints
        coordinates, complaint = engine.lay_out(list(graphs.values()), timeout)
        if complaint:
            complaints.append(complaint)
        done = dict(zip(graphs, coordinates, strict=True))
        for job, found in zip(jobs, missing, strict=True):
            job.layouts.update((key, done[key]) for key in found)


def scene(job: Job) -> Frame:
    """The whole picture.

    Raises:
        ValueError: the job is not laid out yet.
    """
    return _Composer(job).scene()


@dataclass(frozen=True)
class _Shape:
    """A level with coordinates: the middles of its boxes, where its ends lie on its borders, its edges as lines."""

    width: float
    height: float
    boxes: Sequence[Point]
    inputs: tuple[float, ...]
    outputs: tuple[float, ...]
    lines: Sequence[Line]


@dataclass(frozen=True)
class _Opened:
    """An open box: the frame's extent, how far its inside is moved right in it, and where its title starts."""

    extent: Extent
    shift: float
    title: float


class _Composer:
    def __init__(self, job: Job) -> None:
        self.layouts = job.layouts
        self.root = root_level(job.record, job.look)
        self.dots: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self._shapes: dict[Level, _Shape | None] = {}
        self._labels: dict[Box, Label] = {}
        self._shape(self.root)

    # -- from the inside out

    def _shape(self, level: Level) -> _Shape | None:
        if level not in self._shapes:
            self._shapes[level] = self._placed(level)
        return self._shapes[level]

    def _placed(self, level: Level) -> _Shape | None:
        inside = [self._shape(box.inner) for box in level.boxes if box.inner]
        if None in inside:
            return None
        extents = [self._extent(box) for box in level.boxes]
        dot = level_dot(level, extents)
        key = digest(dot)
        self.dots[key] = dot
        if key not in self.layouts:
            self.missing[key] = dot
            return None
        return _read(level, extents, self.layouts[key], framed=level is not self.root)

    def _extent(self, box: Box) -> Extent:
        if box.inner:
            return self._opened(box).extent
        text = self._label(box)
        return Extent(text.width, text.height)

    def _label(self, box: Box) -> Label:
        if box not in self._labels:
            self._labels[box] = label(box)
        return self._labels[box]

    def _opened(self, box: Box) -> _Opened:
        shape = self._shapes[box.inner] if box.inner else None
        assert shape is not None, "levels are placed from the inside out"
        needed = title_width(box.node)
        first = min((*shape.inputs, shape.width))
        if SIDE - 4 + needed + 8 <= first:
            return _Opened(Extent(shape.width, shape.height, shape.inputs, shape.outputs), 0, SIDE - 4)
        # No room left of the line that comes in: the title goes right of all lines, and the frame grows on both sides
        # alike, so that what is inside stays in its middle.
        last = max(shape.inputs, default=0.0)
        grow = 2 * math.ceil(max(0.0, last + 8 + needed + 8 - shape.width))
        shift = grow / 2
        extent = Extent(
            shape.width + grow,
            shape.height,
            tuple(x + shift for x in shape.inputs),
            tuple(x + shift for x in shape.outputs),
        )
        return _Opened(extent, shift, last + shift + 8)

    # -- from the outside in

    def scene(self) -> Frame:
        if self._shape(self.root) is None:
            raise ValueError("the picture is not laid out yet: call lay_out first")
        return self._frame(self.root, "", None, 0, (0.0, 0.0), None)

    def _frame(
        self, level: Level, path: str, node: Node | None, depth: int, at: tuple[float, float], opened: _Opened | None
    ) -> Frame:
        shape = self._shapes[level]
        assert shape is not None
        shift = opened.shift if opened else 0.0
        boxes, frames = [], []
        for box, (x, y) in zip(level.boxes, shape.boxes, strict=True):
            where = path if box.inner and box.node.op == GROUP else join(path, box.node.name)
            if box.inner:
                inner = self._opened(box)
                corner = (x + shift - inner.extent.width / 2, y - inner.extent.height / 2)
                frames.append(self._frame(box.inner, where, box.node, depth + 1, corner, inner))
            else:
                text = self._label(box)
                boxes.append(Placed(where, box, text, x + shift - text.width / 2, y - text.height / 2))
        return Frame(
            path=path,
            node=node,
            depth=depth,
            x=at[0],
            y=at[1],
            width=opened.extent.width if opened else shape.width,
            height=shape.height,
            title=opened.title if opened else 0,
            shift=shift,
            lines=tuple(shape.lines),
            boxes=tuple(boxes),
            frames=tuple(frames),
        )


def title_width(node: Node) -> float:
    """Width of a frame's title: triangle, attribute name and class."""
    return 16 + fonts.mono(node.name, NAME_SIZE + 1) + 6 + fonts.sans(node.kind, KIND_SIZE, bold=True)


def _read(level: Level, extents: Sequence[Extent], found: Coordinates, *, framed: bool) -> _Shape:
    """Coordinates of a level, moved into its frame, with its spine drawn straight."""
    side, top, bottom = (SIDE, TOP, BOTTOM) if framed else (MARGIN, MARGIN, MARGIN)
    nodes = {name: (x + side, y + top) for name, (x, y) in found["nodes"].items()}
    width, height = found["size"]
    width, height = 2 * math.ceil(width / 2 + side), math.ceil(height + top + bottom)
    places = _Places(
        [nodes[f"n{index}"] for index in range(len(level.boxes))],
        [nodes[f"i{k}"] for k in range(level.inputs)],
        [nodes[f"o{k}"] for k in range(level.outputs)],
        extents,
    )
    drawn = _Places(list(places.boxes), list(places.inputs), list(places.outputs), extents)
    drawn.straighten(level)
    lines = []
    for index, edge in enumerate(level.edges):
        route = [(x + side, y + top) for x, y in batched(found["edges"].get(str(index), ()))]
        lines.append(_line(edge, route, places, drawn, height))
    return _Shape(
        width, height, drawn.boxes, tuple(x for x, _ in drawn.inputs), tuple(x for x, _ in drawn.outputs), lines
    )


@dataclass
class _Places:
    """Where the middles of a level's boxes and its own ends are."""

    boxes: list[Point]
    inputs: list[Point]
    outputs: list[Point]
    extents: Sequence[Extent]

    def tail(self, port: Port) -> Point:
        """Where an edge from ``port`` starts: at the bottom of its box."""
        if port.box == BOUNDARY:
            return self.inputs[port.number]
        (x, y), extent = self.boxes[port.box], self.extents[port.box]
        return x + _offset(extent, extent.outputs, port.number), y + extent.height / 2

    def head(self, port: Port) -> Point:
        """Where an edge to ``port`` ends: at the top of its box."""
        if port.box == BOUNDARY:
            return self.outputs[port.number]
        (x, y), extent = self.boxes[port.box], self.extents[port.box]
        return x + _offset(extent, extent.inputs or (), port.number), y - extent.height / 2

    def straighten(self, level: Level) -> None:
        """Move the boxes of the spine sideways by the little that the engine's rounding left them off the line."""
        for edge in level.spine():
            line, (x, _) = self.tail(edge.tail)[0], self.head(edge.head)
            if abs(line - x) > _SNAP:
                continue
            places = self.outputs if edge.head.box == BOUNDARY else self.boxes
            index = edge.head.number if edge.head.box == BOUNDARY else edge.head.box
            places[index] = (places[index][0] + line - x, places[index][1])


def _offset(extent: Extent, ports: Sequence[float], number: int) -> float:
    """How far right of the middle of a box one of its ports lies."""
    return ports[number] - extent.width / 2 if extent.inputs is not None else 0.0


def _line(edge: Edge, route: Sequence[Point], places: _Places, drawn: _Places, height: float) -> Line:
    """An edge as drawn: the engine's route, led to where its ends really are."""
    start, end = drawn.tail(edge.tail), drawn.head(edge.head)
    if len(route) < 4 or (edge.spine and abs(start[0] - end[0]) < 1):
        points = [start, (start[0], end[1]) if abs(start[0] - end[0]) < 1 else end]
    else:
        points = list(route)
        for ends, exact, old, new in (
            ((0, 1), start, places.tail(edge.tail), start),
            ((-1, -2), end, places.head(edge.head), end),
        ):
            # An edge may meet a box anywhere on its border; a port and the spine have one place.
            port = edge.tail if ends[0] == 0 else edge.head
            fixed = edge.spine or port.box == BOUNDARY or drawn.extents[port.box].inputs is not None
            at = points[ends[0]]
            move = (exact[0] - at[0], exact[1] - at[1]) if fixed else (new[0] - old[0], new[1] - old[1])
            for k in ends:
                points[k] = (points[k][0] + move[0], points[k][1] + move[1])
    return Line(
        points=tuple(points),
        weak=edge.weak,
        enter=(start[0], 0.0) if edge.tail.box == BOUNDARY else None,
        leave=(end[0], height) if edge.head.box == BOUNDARY else None,
        arrow=edge.head.box != BOUNDARY and drawn.extents[edge.head.box].inputs is None,
    )


def batched(flat: Sequence[float]) -> Iterator[Point]:
    """Pairs of a flat list."""
    return zip(flat[::2], flat[1::2], strict=True)
