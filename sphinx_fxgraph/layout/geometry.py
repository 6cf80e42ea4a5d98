"""Points, rectangles and lines, in the axes of the flow: x runs across it, y along it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
        """The point in its middle."""
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


def sampled(points: Sequence[Point], steps: int = 12) -> Iterator[Point]:
    """Yield points along Bézier curves, their ends included."""
    yield points[0]
    for at in range(0, len(points) - 3, 3):
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = points[at : at + 4]
        for step in range(1, steps + 1):
            t = step / steps
            a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            yield a * ax + b * bx + c * cx + d * dx, a * ay + b * by + c * cy + d * dy
