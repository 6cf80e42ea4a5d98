"""Long edges as lanes: an edge that passes other boxes runs straight beside them, with round corners.

Graphviz says on which side of each box an edge passes. Within that, the edge is drawn anew: out of its source, along
the boxes as near to them as may be, and into its target. Edges from one source share a lane, others keep their
distance. Where no such way is free, the edge stays as Graphviz has drawn it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Point = tuple[float, float]

_BESIDE = 10.0
"""From a box to the nearest lane, ..."""
_APART = 7.0
"""... and from lane to lane."""
_ARROW = 13.0
"""From a box to the lane of an edge that it meets on its side."""
_CLEAR = 3.0
"""No edge comes nearer to a box that it does not end at."""
_NEAR = 100.0
"""No edge reaches further back than that from where its ends are."""
_RADIUS = 12.0
"""Of a corner."""
_FROM_CORNER = 9.0
"""No edge meets a box nearer to its corner, which is round."""


@dataclass(frozen=True)
class Rectangle:
    """A box in the axes of the flow."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> Point:
        """The point in its middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def holds(self, point: Point, room: float) -> bool:
        """Whether a point is inside or nearer than ``room``."""
        x, y = point
        return self.left - room < x < self.right + room and self.top - room < y < self.bottom + room

    def overlaps(self, other: Rectangle) -> bool:
        """Whether the two share more than a border."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True)
class End:
    """One end of an edge: the point where it must be, or the box that it may meet anywhere."""

    point: Point
    box: Rectangle | None = None
    """The box or frame it is at; None at the level's own border."""
    free: bool = False
    """Whether it may meet the box on its side, or be elsewhere on the level's border."""


@dataclass(frozen=True)
class _Segment:
    """A straight part of an edge, across the flow or along it."""

    source: object
    one: Point
    two: Point

    def box(self, room: float) -> Rectangle:
        """What it covers with some room around it."""
        (x1, y1), (x2, y2) = self.one, self.two
        return Rectangle(min(x1, x2) - room, min(y1, y2) - room, max(x1, x2) + room, max(y1, y2) + room)

    def is_along(self) -> bool:
        return self.one[0] == self.two[0]


class Lanes:
    """The lanes of one level.

    Args:
        obstacles: all boxes and frames.
        borders: the ends on the level's own borders, which do not come nearer to each other than `_APART`.
    """

    def __init__(self, obstacles: Sequence[Rectangle], borders: Sequence[Sequence[Point]]) -> None:
        self.obstacles = obstacles
        self.borders = borders
        self.taken: list[tuple[_Segment, Rectangle]] = []

    def line(self, source: object, tail: End, head: End, route: Sequence[Point]) -> tuple[Point, ...] | None:
        """The control points of an edge.

        Args:
            source: what it has in common with the edges that may share its lane.
            tail: where it starts.
            head: where it ends.
            route: the points of the Bézier curves that Graphviz has drawn.

        Returns:
            Control points of Bézier curves, or None where there is no lane.
        """
        top, bottom = tail.point[1], head.point[1]
        others = [
            box
            for box in self.obstacles
            if box.bottom > top - _NEAR and box.top < bottom + _NEAR and box not in (tail.box, head.box)
        ]
        beside = [box for box in others if box.bottom > top + 1 and box.top < bottom - 1]
        drawn = list(sampled(route))
        rooms = [(box, _CLEAR) for box in others] + [(box, -1.0) for box in (tail.box, head.box) if box]
        if not beside and not any(box.holds(point, room) for box, room in rooms for point in drawn):
            return None
        low, high = _between(beside, drawn, top, bottom)
        for x in _lanes(tail.point[0], head.point[0], low, high):
            for start, end in itertools.product(self._ways(x, tail, 1), self._ways(x, head, -1)):
                corners = [*start, *reversed(end)]
                if start[-1][1] < end[-1][1] and self._is_free(source, corners, others, (tail.box, head.box)):
                    self.taken += ((segment, segment.box(0)) for segment in _segments(source, corners))
                    return _rounded(corners)
        return None

    def _ways(self, x: float, end: End, way: int) -> Iterator[list[Point]]:
        """The corners between an end and the lane at ``x``, the best first; ``way`` is -1 against the flow."""
        px, py = end.point
        box = end.box
        if box is None or not end.free:
            if x == px or (box is None and end.free and self._has_room(x, end.point)):
                yield [(x, py)]
                return
            steps = (0.0, 6.0, 12.0) if box is None else (11.0, 5.0, 17.0)
            for step in steps:
                turn = py + way * step
                yield [(px, py), (px, turn), (x, turn)] if step else [(px, py), (x, py)]
        elif box.left + _FROM_CORNER <= x <= box.right - _FROM_CORNER:
            yield [(x, py)]
        elif not box.left - _ARROW < x < box.right + _ARROW:
            side, middle = (box.left if x < box.left else box.right), (box.top + box.bottom) / 2
            most = (box.bottom - box.top) / 2 - _FROM_CORNER
            for aside in (0.0, -_APART, _APART, -2 * _APART, 2 * _APART):
                if abs(aside) <= most:
                    yield [(side, middle + aside), (x, middle + aside)]

    def _has_room(self, x: float, point: Point) -> bool:
        """Whether an end of the level may be at ``x``."""
        (border,) = (border for border in self.borders if point in border)
        return all(other == point or abs(other[0] - x) >= _APART for other in border)

    def _is_free(
        self, source: object, corners: Sequence[Point], others: Sequence[Rectangle], own: Sequence[Rectangle | None]
    ) -> bool:
        for segment in _segments(source, corners):
            wide, narrow, near = segment.box(_CLEAR), segment.box(-0.5), segment.box(_APART - 2)
            if any(wide.overlaps(box) for box in others) or any(box and narrow.overlaps(box) for box in own):
                return False
            if any(
                near.overlaps(box)
                for taken, box in self.taken
                if taken.is_along() == segment.is_along() and taken.source != source
            ):
                return False
        return True


def _between(beside: Sequence[Rectangle], drawn: Sequence[Point], top: float, bottom: float) -> tuple[float, float]:
    """Where a lane may be that passes every box on the same side as the edge does now."""
    low, high = -math.inf, math.inf
    for box in beside:
        level = (max(top, box.top) + min(bottom, box.bottom)) / 2
        if min(drawn, key=lambda point: abs(point[1] - level))[0] < (box.left + box.right) / 2:
            high = min(high, box.left - _BESIDE)
        else:
            low = max(low, box.right + _BESIDE)
    return low, high


def _lanes(tail: float, head: float, low: float, high: float) -> Iterator[float]:
    """Places for a lane, the best first: straight into the target, straight out of the source, near to both."""
    for x in (head, tail):
        if low <= x <= high:
            yield x
    if low <= high:
        near = min(max((tail + head) / 2, low), high)
        outwards = -1 if near == high else 1
        for step in range(12):
            x = near + outwards * step * _APART
            if low <= x <= high:
                yield x


def _segments(source: object, corners: Sequence[Point]) -> list[_Segment]:
    return [_Segment(source, one, two) for one, two in itertools.pairwise(corners) if one != two]


def _rounded(corners: Sequence[Point]) -> tuple[Point, ...]:
    """A line with these corners as Bézier curves, its corners quarters of circles where there is room."""
    points: list[Point] = [corners[0]]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        radius = min(_RADIUS, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        points += straight(points[-1], _towards(corner, before, radius))[1:]
        end = _towards(corner, after, radius)
        points += [_towards(corner, before, 0.45 * radius), _towards(corner, after, 0.45 * radius), end]
    points += straight(points[-1], corners[-1])[1:]
    return tuple(points)


def straight(start: Point, end: Point) -> tuple[Point, Point, Point, Point]:
    """A straight line as a Bézier curve."""
    (x, y), (x2, y2) = start, end
    return start, (x + (x2 - x) / 3, y + (y2 - y) / 3), (x + (x2 - x) * 2 / 3, y + (y2 - y) * 2 / 3), end


def _towards(start: Point, end: Point, far: float) -> Point:
    """The point so far from ``start`` on the way to ``end``."""
    share = far / (math.dist(start, end) or 1)
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def sampled(points: Sequence[Point], steps: int = 12) -> Iterator[Point]:
    """Points along Bézier curves, their ends included."""
    yield points[0]
    for at in range(0, len(points) - 3, 3):
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = points[at : at + 4]
        for step in range(1, steps + 1):
            t = step / steps
            a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            yield a * ax + b * bx + c * cx + d * dx, a * ay + b * by + c * cy + d * dy
