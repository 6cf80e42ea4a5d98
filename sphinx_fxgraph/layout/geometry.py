"""Points, rectangles and lines, and where the boxes and ports of a level are. x runs across the flow, y along it."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sphinx_fxgraph.layout.graphviz import Extent
from sphinx_fxgraph.view.level import BOUNDARY, Level, Port

Point = tuple[float, float]

_RADIUS = 8.0
"""Radius of a round corner."""


@dataclass(frozen=True)
class Rectangle:
    """A box, a frame or a text."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> Point:
        """Return the point in its middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def holds(self, point: Point, room: float) -> bool:
        """Return whether a point is inside or nearer than ``room``."""
        x, y = point
        return self.left - room < x < self.right + room and self.top - room < y < self.bottom + room

    def overlaps(self, other: Rectangle) -> bool:
        """Return whether the two share more than a border."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def around(middle: Point, size: tuple[float, float]) -> Rectangle:
    """Return the rectangle of a size around a point."""
    (x, y), (width, height) = middle, size
    return Rectangle(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def rounded(corners: Sequence[Point]) -> tuple[Point, ...]:
    """Return the control points of a line with these corners, each rounded where there is room."""
    points: list[Point] = [corners[0]]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        radius = min(_RADIUS, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        points += straight(points[-1], _towards(corner, before, radius))[1:]
        end = _towards(corner, after, radius)
        points += [_towards(corner, before, 0.45 * radius), _towards(corner, after, 0.45 * radius), end]
    points += straight(points[-1], corners[-1])[1:]
    return tuple(points)


def straight(start: Point, end: Point) -> tuple[Point, Point, Point, Point]:
    """Return a straight line as a Bézier curve."""
    (x, y), (x2, y2) = start, end
    return start, (x + (x2 - x) / 3, y + (y2 - y) / 3), (x + (x2 - x) * 2 / 3, y + (y2 - y) * 2 / 3), end


def _towards(start: Point, end: Point, distance: float) -> Point:
    """Return the point at a distance from ``start`` on the way to ``end``."""
    share = distance / (math.dist(start, end) or 1)
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


@functools.cache
def _shares(steps: int) -> list[tuple[float, float, float, float]]:
    """Return the share of each control point in points along a Bézier curve."""
    return [
        ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        for t in (step / steps for step in range(1, steps + 1))
    ]


def sampled(points: Sequence[Point], steps: int = 12) -> Iterator[Point]:
    """Yield points along Bézier curves, their ends included."""
    yield points[0]
    for at in range(0, len(points) - 3, 3):
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = points[at : at + 4]
        for a, b, c, d in _shares(steps):
            yield a * ax + b * bx + c * cx + d * dx, a * ay + b * by + c * cy + d * dy


_SNAP = 6.0
"""The most that a box is moved to stand exactly on the main path: less than half the distance of two boxes."""


@dataclass
class Positions:
    """The middles of a level's boxes, and where its own ends lie across it."""

    boxes: list[Point]
    inputs: list[float]
    outputs: list[float]
    extents: Sequence[Extent]
    height: float = 0.0
    """Of the level; its outputs lie there."""
    upward: frozenset[int] = frozenset()
    """The boxes that edges enter from below and leave at the top."""

    def rectangle(self, box: int) -> Rectangle:
        """Return what a box covers; the empty corner before the first sheet of a stack does not count."""
        (x, y), extent = self.boxes[box], self.extents[box]
        across, along = extent.width / 2, extent.height / 2
        return Rectangle(x - across + extent.stack, y - along, x + across, y + along)

    def is_open(self, port: Port) -> bool:
        """Return whether a port is at a box that shows its inside, so that an edge has to meet it at one place."""
        return port.box != BOUNDARY and self.extents[port.box].inputs is not None

    def is_upward(self, port: Port) -> bool:
        """Return whether the flow goes up at a port."""
        return port.box in self.upward

    def tail(self, port: Port) -> Point:
        """Return where an edge from a port starts: at the bottom of its box, or at the top of the level."""
        if port.box == BOUNDARY:
            return self.inputs[port.number], 0.0
        (x, y), extent = self.boxes[port.box], self.extents[port.box]
        along = extent.height / 2
        return x + _offset(extent, extent.outputs, port.number), y - along if self.is_upward(port) else y + along

    def head(self, port: Port) -> Point:
        """Return where an edge to a port ends: at the top of its box, or at the bottom of the level."""
        if port.box == BOUNDARY:
            return self.outputs[port.number], self.height
        (x, y), extent = self.boxes[port.box], self.extents[port.box]
        along = extent.height / 2
        return x + _offset(extent, extent.inputs or (), port.number), y + along if self.is_upward(port) else y - along

    def straighten(self, level: Level) -> None:
        """Move the boxes of the main path sideways by the little that the engine's rounding left them off the line.

        The way up of a U becomes one column.
        """
        column = max((self.boxes[box][0] for box in level.upward), default=0.0)
        for box in level.upward:
            self.boxes[box] = column, self.boxes[box][1]
        for edge in level.spine():
            line, (x, _) = self.tail(edge.tail)[0], self.head(edge.head)
            if abs(line - x) > _SNAP:
                continue
            if edge.head.box == BOUNDARY:
                self.outputs[edge.head.number] += line - x
            else:
                x, y = self.boxes[edge.head.box]
                self.boxes[edge.head.box] = x + line - self.head(edge.head)[0], y


def _offset(extent: Extent, ports: Sequence[float], number: int) -> float:
    """Return how far right of the middle of a box one of its ports lies."""
    return ports[number] - extent.width / 2 if extent.inputs is not None else 0.0
