"""One level with the engine's coordinates: what the engine rounded is put right, and edges become lines.

Everything here is in the level's own axes: x runs across the flow of data, y along it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sphinx_fxgraph.drawing.layout import Coordinates
from sphinx_fxgraph.drawing.level import BOUNDARY, Edge, Level, Port
from sphinx_fxgraph.drawing.level_dot import Extent

Point = tuple[float, float]

_SNAP = 6.0
"""The most that a box is moved to stand exactly on the spine: less than half the distance of two boxes."""
_RAIL_GAP, _RAIL_STEP = 12.0, 6.0
"""From the boxes to the first rail, and from rail to rail."""
_LEAVES, _JOINS = 4.0, 9.0
"""How far below its source a rail leaves the column, and how far above a consumer it joins it again."""


@dataclass(frozen=True)
class Pads:
    """Room around the inside of a frame: before and after it across the flow, and along it."""

    before: float
    after: float
    start: float
    end: float


@dataclass(frozen=True)
class Line:
    """An edge within a level: the corners of straight lines, or the control points of Bézier curves."""

    points: tuple[Point, ...]
    curved: bool = False
    weak: bool = False
    arrow: bool = False
    rail: bool = False
    enters: bool = False
    leaves: bool = False
    """Whether it comes straight from the frame's border and goes straight on to it, ..."""
    enter: Point | None = None
    leave: Point | None = None
    """... and where that is, once the frame is known."""


@dataclass(frozen=True)
class Placed:
    """A level with coordinates: the middles of its boxes, where its ends lie on its borders, and its lines."""

    width: float
    height: float
    boxes: tuple[Point, ...]
    inputs: tuple[float, ...]
    outputs: tuple[float, ...]
    lines: tuple[Line, ...]
    dots: tuple[Point, ...]
    """Where a rail is tapped."""
    notes: tuple[tuple[Point, int], ...]
    """The middle of an edge's text, and the index of the edge."""


def place(level: Level, extents: Sequence[Extent], found: Coordinates, pads: Pads) -> Placed:
    """Move coordinates into the frame, draw the spine straight and lead every edge to where its ends really are."""

    def inside(point: Sequence[float]) -> Point:
        return point[0] + pads.before, point[1] + pads.start

    nodes = {name: inside(point) for name, point in found["nodes"].items()}
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
        flat = found["edges"].get(str(index), ())
        route = [inside(point) for point in zip(flat[::2], flat[1::2], strict=True)]
        lines.append(_line(edge, route, places, drawn))
    width, height = found["size"]
    rails, dots = _rails(level, drawn) if level.rails else ((), ())
    lines += rails
    # Room for rails on both sides, so that the column stays in the middle.
    aside = _RAIL_GAP + _RAIL_STEP * len(level.rails) if level.rails else 0.0
    if aside:
        rightmost = max(x + e.width / 2 for (x, _), e in zip(drawn.boxes, extents, strict=True)) - pads.before
        aside = max(0.0, aside - (width - rightmost))
    return Placed(
        2 * math.ceil((width + aside + pads.before + pads.after) / 2),
        math.ceil(height + pads.start + pads.end),
        tuple(drawn.boxes),
        tuple(x for x, _ in drawn.inputs),
        tuple(x for x, _ in drawn.outputs),
        tuple(lines),
        tuple(dots),
        tuple((inside(point), int(index)) for index, point in found.get("notes", {}).items()),
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


def _line(edge: Edge, route: Sequence[Point], places: _Places, drawn: _Places) -> Line:
    start, end = drawn.tail(edge.tail), drawn.head(edge.head)
    straight = abs(start[0] - end[0]) < 1
    points: list[Point]
    if len(route) < 4 or (edge.spine and straight):
        points = [start, (start[0], end[1]) if straight else end]
    else:
        points = list(route)
        for port, exact, was, (first, second) in (
            (edge.tail, start, places.tail(edge.tail), (0, 1)),
            (edge.head, end, places.head(edge.head), (-1, -2)),
        ):
            # An edge may meet a box anywhere on its border; the spine, a port and the level's own ends have one place.
            fixed = edge.spine or port.box == BOUNDARY or drawn.extents[port.box].inputs is not None
            origin = points[first] if fixed else was
            move = (exact[0] - origin[0], exact[1] - origin[1])
            for k in (first, second):
                points[k] = (points[k][0] + move[0], points[k][1] + move[1])
    return Line(
        points=tuple(points),
        curved=len(points) > 2,
        weak=edge.weak,
        arrow=edge.head.box != BOUNDARY and drawn.extents[edge.head.box].inputs is None,
        enters=edge.tail.box == BOUNDARY,
        leaves=edge.head.box == BOUNDARY,
    )


def _rails(level: Level, drawn: _Places) -> tuple[list[Line], list[Point]]:
    """A bus for each source right of the boxes, and taps from the buses to the consumers."""
    right = max(x + extent.width / 2 for (x, _), extent in zip(drawn.boxes, drawn.extents, strict=True)) + _RAIL_GAP
    lines: list[Line] = []
    taps: dict[Port, list[float]] = defaultdict(list)
    for number, rail in enumerate(level.rails):
        across = right + _RAIL_STEP * number
        x, y = drawn.tail(rail.tail)
        if rail.tail.box != BOUNDARY:
            y += _LEAVES
        last = max(drawn.head(head)[1] for head in rail.heads) - _JOINS
        lines.append(Line(((x, y), (across, y), (across, last)), rail=True))
        for head in rail.heads:
            taps[head].append(across)
    dots = []
    for head, xs in taps.items():
        x, y = drawn.head(head)
        lines.append(Line(((max(xs), y - _JOINS), (x, y - _JOINS), (x, y - 1)), rail=True))
        dots += [(across, y - _JOINS) for across in xs]
    return lines, dots
