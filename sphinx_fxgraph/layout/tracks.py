"""Lanes and tracks: the intervals in which an edge may pass a row, and the tracks of horizontal parts in a gap."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sphinx_fxgraph.layout.geometry import sampled
from sphinx_fxgraph.view.level import Edge

FAR_RIGHT = 1e6
"""Where an edge is wanted that the engine has not drawn."""
_CURVE = 8
"""Numbers of the control points of one Bézier curve."""


@dataclass
class Turn:
    """The horizontal parts of edges from one source, or into one end, in one gap."""

    low: float
    high: float
    above: set[float] = field(default_factory=set)
    """Where edges come from above or go there, ..."""
    below: set[float] = field(default_factory=set)
    """... and the same below."""
    track: int = 0


@dataclass
class Path:
    """An edge on its way: the places of its vertical parts, and the rows or gaps of the horizontal parts between.

    Heights are counted in half rows: row 3 is at 6, and the gap below it at 7. There is one turn less than places.
    """

    edge: Edge
    across: list[float]
    turns: list[int]
    shared: dict[int, Turn] = field(default_factory=dict)
    across_only: bool = False
    """Whether it runs from the side of a box to the side of another one."""
    bottom: float = 0.0
    """Where its last vertical part but one ends, along the flow."""


def sampler(flat: Sequence[float], otherwise: float = FAR_RIGHT) -> Callable[[float], float]:
    """Return a function that gives the place across of a line of the engine by its place along the flow.

    Where the engine has drawn no line, it is right of all boxes.
    """
    points: list[tuple[float, float]] = []

    def place(y: float) -> float:
        if not points and len(flat) >= _CURVE:  # most edges go to the next row, and nobody asks
            points.extend(sorted((y, x) for x, y in sampled(list(zip(flat[::2], flat[1::2], strict=True)))))
        at = bisect.bisect_left(points, (y, -math.inf))
        near = points[max(0, at - 1) : at + 1]
        return min(near, key=lambda point: abs(point[0] - y))[1] if near else otherwise

    return place


def free_intervals(blocks: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return where an edge may pass a row, from left to right; the first and the last have no end."""
    found, low = [], -math.inf
    for left, right in sorted(blocks):
        if low <= left:
            found.append((low, left))
        low = max(low, right)
    return [*found, (low, math.inf)]


def nearest_interval(free: Sequence[tuple[float, float]], x: float) -> tuple[float, float]:
    """Return the interval that a place is in, or else the nearest."""
    at = bisect.bisect_right(free, (x, math.inf))
    return min(free[max(0, at - 1) : at + 1], key=lambda room: max(room[0] - x, x - room[1], 0))


def set_tracks(turns: Sequence[Turn]) -> int:
    """Give the turns of a gap tracks, so that no two of them lie on each other, and return how many tracks there are.

    Where one turn comes from above at a place from which another goes on below, the first has the higher track.
    """
    comes: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        for x in turn.above:
            comes[round(x / 4)].append(turn)
    before: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        for x in turn.below:
            near = round(x / 4)
            before[id(turn)] += [
                other for k in (near - 1, near, near + 1) for other in comes.get(k, ()) if other is not turn
            ]
    tracks: list[list[tuple[float, float]]] = []
    for turn in _ordered(turns, before):
        least = max((other.track + 1 for other in before[id(turn)] if other.low < turn.high + 4), default=0)
        for number in itertools.count(least):
            while len(tracks) <= number:
                tracks.append([])
            if all(turn.high + 2 < low or high + 2 < turn.low for low, high in tracks[number]):
                break
        turn.track = number
        tracks[number].append((turn.low, turn.high))
    return len(tracks)


def _ordered(turns: Sequence[Turn], before: dict[int, list[Turn]]) -> Iterator[Turn]:
    """Yield turns after those that come before them; where that goes round in a circle, in their own order."""
    finished: set[int] = set()
    for root in sorted(turns, key=lambda turn: turn.high - turn.low):
        stack = [(root, iter(before[id(root)]))]
        seen = {id(root)}
        while stack:
            turn, rest = stack[-1]
            following = next((other for other in rest if id(other) not in finished and id(other) not in seen), None)
            if following is not None:
                seen.add(id(following))
                stack.append((following, iter(before[id(following)])))
                continue
            stack.pop()
            if id(turn) not in finished:
                finished.add(id(turn))
                yield turn
