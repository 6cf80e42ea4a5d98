"""The edges of a level as lines: the spine straight, long edges in lanes, the others as the engine has drawn them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sphinx_fxgraph.layout.graphviz import Coordinates
from sphinx_fxgraph.layout.lanes import Lanes, Point, Rectangle
from sphinx_fxgraph.layout.positions import Spots
from sphinx_fxgraph.view.level import BOUNDARY, Edge, Level, Port

_RAIL_GAP, _RAIL_STEP = 12.0, 6.0
"""From the boxes to the first rail, and from rail to rail."""
_LEAVES, _JOINS = 4.0, 9.0
"""How far below its source a rail leaves the column, and how far above a consumer it joins it again."""
_CORNER = 7.0
"""No edge meets a box nearer to its corner, which is round."""


@dataclass(frozen=True)
class Line:
    """An edge within a level: the corners of straight lines, or the control points of Bézier curves."""

    points: tuple[Point, ...]
    curved: bool = False
    spine: bool = False
    weak: bool = False
    arrow: bool = False
    rail: bool = False
    enters: bool = False
    leaves: bool = False
    """Whether it comes straight from the frame's border and goes straight on to it, ..."""
    enter: Point | None = None
    leave: Point | None = None
    """... and where that is, once the frame is known."""
    tail: int | None = None
    head: int | None = None
    """The boxes that it joins; a rail knows one of them, ..."""
    source: str | None = None
    target: str | None = None
    """... and their names, once these are known; empty for the frame itself."""


def lines(level: Level, was: Spots, spots: Spots, found: Coordinates) -> list[Line]:
    """Every edge of a level.

    Args:
        level: whose edges.
        was: the places that the engine gave.
        spots: those that boxes and ends have now.
        found: the engine's coordinates.
    """
    lanes = Lanes([spots.rectangle(box) for box in range(len(level.boxes))], (spots.inputs, spots.outputs))
    leaving, arriving = Counter(edge.tail for edge in level.edges), Counter(edge.head for edge in level.edges)
    routes: dict[int, tuple[Point, ...]] = {}
    for index, edge in enumerate(level.edges):
        flat = found["edges"].get(str(index), ())
        route = list(zip(flat[::2], flat[1::2], strict=True))
        start, end = spots.tail(edge.tail), spots.head(edge.head)
        straight = abs(start[0] - end[0]) < 1
        if len(route) < 4 or (edge.spine and straight):
            routes[index] = (start, (start[0], end[1]) if straight else end)
        else:
            routes[index] = _route(edge, route, was, spots)
    # Short edges first: they get the inner lanes.
    for index in sorted(routes, key=lambda index: routes[index][-1][1] - routes[index][0][1]):
        edge = level.edges[index]
        if not edge.spine and len(routes[index]) >= 4:
            tail = spots.end(edge.tail, spots.tail(edge.tail), moves=leaving[edge.tail] == 1)
            head = spots.end(edge.head, spots.head(edge.head), moves=arriving[edge.head] == 1)
            if way := lanes.line(edge.tail, tail, head, routes[index]):
                routes[index] = way
                if edge.tail.box == BOUNDARY:
                    spots.inputs[edge.tail.number] = way[0]
                if edge.head.box == BOUNDARY:
                    spots.outputs[edge.head.number] = way[-1]
    return [_line(edge, routes[index], spots) for index, edge in enumerate(level.edges)]


def _line(edge: Edge, points: tuple[Point, ...], spots: Spots) -> Line:
    return Line(
        points=points,
        curved=len(points) > 2,
        spine=edge.spine,
        weak=edge.weak,
        arrow=edge.head.box != BOUNDARY and not spots.is_open(edge.head),
        enters=edge.tail.box == BOUNDARY,
        leaves=edge.head.box == BOUNDARY,
        tail=edge.tail.box,
        head=edge.head.box,
    )


def _route(edge: Edge, route: Sequence[Point], was: Spots, spots: Spots) -> tuple[Point, ...]:
    """An edge as the engine has drawn it, led to where its ends really are."""
    points = list(route)
    for port, exact, before, (first, second) in (
        (edge.tail, spots.tail(edge.tail), was.tail(edge.tail), (0, 1)),
        (edge.head, spots.head(edge.head), was.head(edge.head), (-1, -2)),
    ):
        # An edge may meet a box anywhere on its border; the spine, a port and the level's own ends have one place.
        fixed = edge.spine or port.box == BOUNDARY or spots.is_open(port)
        origin = points[first] if fixed else before
        move = (exact[0] - origin[0], exact[1] - origin[1])
        for k in (first, second):
            points[k] = (points[k][0] + move[0], points[k][1] + move[1])
        if not fixed:
            points[first] = _met(spots.rectangle(port.box), points[first], points[second])
    return tuple(points)


def _met(box: Rectangle, end: Point, control: Point) -> Point:
    """Where an edge that the engine ended a little before a box meets it: straight on, or by the shortest way."""
    low, high = (box.left, box.top), (box.right, box.bottom)
    ways = []
    for axis in (0, 1):
        direction = end[axis] - control[axis]
        if direction:
            side = low[axis] if direction > 0 else high[axis]
            other = end[1 - axis] + (side - end[axis]) / direction * (end[1 - axis] - control[1 - axis])
            if low[1 - axis] + _CORNER <= other <= high[1 - axis] - _CORNER:
                ways.append((side, other) if axis == 0 else (other, side))
    if ways:
        return min(ways, key=lambda way: math.dist(way, end))
    x, y = (max(a + _CORNER, min(b - _CORNER, p)) for p, a, b in zip(end, low, high, strict=True))
    sides = [(x, box.top), (x, box.bottom), (box.left, y), (box.right, y)]
    return min(sides, key=lambda side: math.dist(side, end))


def rails(level: Level, spots: Spots) -> tuple[list[Line], list[Point]]:
    """A bus for each source right of the boxes, taps from the buses to the consumers, and where they are tapped."""
    right = max(spots.rectangle(box).right for box in range(len(level.boxes))) + _RAIL_GAP
    found: list[Line] = []
    taps: dict[Port, list[float]] = defaultdict(list)
    for number, rail in enumerate(level.rails):
        across = right + _RAIL_STEP * number
        x, y = spots.tail(rail.tail)
        if rail.tail.box != BOUNDARY:
            y += _LEAVES
        last = max(spots.head(head)[1] for head in rail.heads) - _JOINS
        found.append(Line(((x, y), (across, y), (across, last)), rail=True, tail=rail.tail.box))
        for head in rail.heads:
            taps[head].append(across)
    dots = []
    for head, xs in taps.items():
        x, y = spots.head(head)
        found.append(Line(((max(xs), y - _JOINS), (x, y - _JOINS), (x, y - 1)), rail=True, head=head.box))
        dots += [(across, y - _JOINS) for across in xs]
    return found, dots
