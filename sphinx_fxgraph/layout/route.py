"""Orthogonal edges: every edge of a level as vertical and horizontal parts with round corners.

The engine gives the place of each box and on which side of the others an edge passes. Boxes stand in rows. An edge is
vertical within rows, where no box stands, and horizontal between them, each in a track of its own; so it crosses no
box, whatever the engine drew. Edges from one source, or into one end, share lanes and tracks. The gap between two
rows is as high as its tracks need.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from sphinx_fxgraph.layout.geometry import Point, Positions, Rectangle, around, rounded
from sphinx_fxgraph.layout.graphviz import Coordinates
from sphinx_fxgraph.layout.tracks import Path, Turn, free_intervals, nearest_interval, sampler, set_tracks
from sphinx_fxgraph.view.level import BOUNDARY, Edge, Level, Port

_BESIDE = 8.0
"""From a box to the nearest lane, ..."""
_APART = 7.0
"""... and from lane to lane."""
_ARROW = 13.0
"""From a box to the lane of an edge that enters it at its side."""
_GAP, _GAP_AT_BORDER = 18.0, 8.0
"""Between two rows, and between a row and the border of the level, where no edge turns."""
_TRACK, _ABOVE_TRACKS, _BELOW_TRACKS = 6.0, 7.0, 12.0
"""From track to track, from a row to the first track below, and from the last track to the next row."""
_GAP_AT_TEXT = 5.0
"""Between a row and a row of texts of edges."""
_BESIDE_TEXT = 3.0
"""From a text to its edge."""
_MOVED_TEXT = 24.0
"""The most that a text is moved to its edge."""
_SAME_ROW = 3.0
"""Boxes whose middles are no farther apart along the flow are in one row."""
_SAME = 1.0
"""Two places that are no farther apart count as one."""


@dataclass(frozen=True)
class Line:
    """An edge within a level: the corners of straight lines, or the control points of Bézier curves."""

    points: tuple[Point, ...]
    curved: bool = False
    spine: bool = False
    weak: bool = False
    arrow: bool = False
    enters: bool = False
    leaves: bool = False
    """Whether it comes straight from the frame's border and goes straight on to it, ..."""
    enter: Point | None = None
    leave: Point | None = None
    """... and where that is, once the frame is known."""
    tail: int | None = None
    head: int | None = None
    """The boxes that it joins, ..."""
    source: str | None = None
    target: str | None = None
    """... and their names, once these are known; empty for the frame itself."""


class Router:
    """Routes the edges of one level and sets the heights of its rows.

    Args:
        level: the level.
        positions: its boxes and ends as the engine placed them, the main path made straight. Their places along the
            flow, and those ends that can be moved, are changed.
        drawn: the engine's coordinates.
        sizes: the size of the text at each edge.
    """

    def __init__(
        self, level: Level, positions: Positions, drawn: Coordinates, sizes: Sequence[tuple[float, float]]
    ) -> None:
        self.level, self.positions = level, positions
        self.texts = {int(index): around((x, y), sizes[int(index)]) for index, (x, y) in drawn.get("notes", {}).items()}
        """Of edges, by number of the edge. They stand in rows like boxes; `rows` has the bitwise complement of it."""
        self.rows, self.centres = self._rows()
        self.row = {item: number for number, row in enumerate(self.rows) for item in row}
        self.free = [free_intervals(map(self._block, row)) for row in self.rows]
        self._clear_texts()
        self.drawn = {int(index): flat for index, flat in drawn["edges"].items()}
        self.lanes: dict[int, list[tuple[float, int, int, Port, Port]]] = defaultdict(list)
        self.lanes_of: dict[Port, list[float]] = defaultdict(list)
        """The lanes of edges by their source."""
        self.uses = Counter(edge.tail for edge in level.edges if not edge.spine)
        self.spine_heads = {edge.head for edge in level.edges if edge.spine}
        self.paths: list[Path] = []
        self.tracks: dict[int, int] = {}
        """How many tracks a gap has."""
        self.tops: dict[int, float] = {}

    def lines(self) -> list[Line]:
        """Return a line for each edge."""
        edges = self.level.edges
        paths: dict[int, Path] = {}
        lengths = [self._length(edge) for edge in edges]
        longest: dict[Port, int] = defaultdict(int)
        for edge, length in zip(edges, lengths, strict=True):
            longest[edge.tail] = max(longest[edge.tail], length)
        # Sources of short edges first: they get the inner lanes. Of one source the longest edge makes the lane.
        order = [
            (not edge.spine, longest[edge.tail], edge.tail.box, edge.tail.number, -length, index)
            for index, (edge, length) in enumerate(zip(edges, lengths, strict=True))
        ]
        for *_, index in sorted(order):
            paths[index] = self._path(index, edges[index], self.drawn.get(index, ()))
        self.paths = [paths[index] for index in range(len(edges))]
        self._move_ends()
        self._turns()
        self._set_heights()
        self._set_texts()
        return [self._line(path) for path in self.paths]

    def _rows(self) -> tuple[list[list[int]], list[float]]:
        """Return the boxes and texts of each row, from the top, and where the rows are: those at one height."""
        places = [(y, box) for box, (_, y) in enumerate(self.positions.boxes)]
        places += [(text.middle[1], ~index) for index, text in self.texts.items()]
        rows: list[list[int]] = []
        centres: list[float] = []
        last = -math.inf
        for y, item in sorted(places):
            if y - last > _SAME_ROW:
                rows.append([])
                centres.append(y)
            last = y
            rows[-1].append(item)
        return rows, centres

    def _block(self, item: int) -> tuple[float, float]:
        """Return from where to where a box or a text lets no edge pass."""
        if item < 0:
            text = self.texts[~item]
            return text.left - _BESIDE_TEXT, text.right + _BESIDE_TEXT
        box = self.positions.rectangle(item)
        return box.left - _BESIDE, box.right + _BESIDE

    def _clear_texts(self) -> None:
        """Move texts off the boxes of their row, where the engine has put them onto one."""
        for number, row in enumerate(self.rows):
            boxes = [self._block(item) for item in row if item >= 0]
            for item in row:
                left, right = self._block(item)
                if item < 0 and any(low < right and left < high for low, high in boxes):
                    size = right - left
                    free = free_intervals(map(self._block, set(row) - {item}))
                    fitting = [room for room in free if room[1] - room[0] >= size]
                    places = [min(max(left, low), high - size) for low, high in fitting]
                    move = min(places, key=lambda place: abs(place - left)) - left
                    text = self.texts[~item]
                    self.texts[~item] = Rectangle(text.left + move, text.top, text.right + move, text.bottom)
                    self.free[number] = free_intervals(map(self._block, row))

    def _height(self, item: int) -> float:
        if item < 0:
            return self.texts[~item].bottom - self.texts[~item].top
        return self.positions.extents[item].height

    def junctions(self) -> list[Point]:
        """Return where edges of one source part from a lane that they share."""
        paths: dict[tuple[Port, float], list[float]] = defaultdict(list)
        for path in self.paths:
            if len(path.across) > 2 and not path.edge.spine:
                paths[path.edge.tail, path.across[-2]].append(path.bottom)
        found: set[Point] = set()
        for (_, x), ends in paths.items():
            found |= {(x, y) for y in ends if y < max(ends) - _SAME}
        return sorted(found)

    # -- where an edge runs across the flow

    def _row(self, port: Port, *, head: bool = False) -> int:
        if port.box != BOUNDARY:
            return self.row[port.box]
        return len(self.rows) if head else -1

    def _gaps(self, edge: Edge) -> tuple[int, int]:
        """Return the gap that an edge leaves into and the one that it enters from."""
        first, last = self._row(edge.tail), self._row(edge.head, head=True) - 1
        return first - self.positions.is_upward(edge.tail), last + self.positions.is_upward(edge.head)

    def _length(self, edge: Edge) -> int:
        first, last = self._gaps(edge)
        return abs(last - first)

    def _path(self, index: int, edge: Edge, flat: Sequence[float]) -> Path:
        start, end = self.positions.tail(edge.tail)[0], self.positions.head(edge.head)[0]
        (first, last), head_row = self._gaps(edge), self._row(edge.head, head=True)
        down = first <= last
        if path := self._across(edge, start, end, head_row):
            return path
        x_at = sampler(flat)
        pieces: list[tuple[list[int], float, float]] = []
        for row in range(first + 1, last + 1) if down else range(first, last, -1):
            own = index in self.texts and self.row[~index] == row
            low, high = nearest_interval(self.free[row], self._block(~index)[0] if own else x_at(self.centres[row]))
            if pieces and max(low, pieces[-1][1]) <= min(high, pieces[-1][2]):
                rows, before, after = pieces[-1]
                pieces[-1] = [*rows, row], max(low, before), min(high, after)
            else:
                pieces.append(([row], low, high))
        if side := self._side_entry(edge, pieces, down, start, x_at):
            pieces = [*pieces[:-1], (pieces[-1][0] if pieces else [], *side)]
        path = Path(edge, [start], [])
        for number, (rows, low, high) in enumerate(pieces):
            is_last = number == len(pieces) - 1
            gap = 2 * first + 1 if number == 0 else 2 * pieces[number - 1][0][-1] + (1 if down else -1)
            stop = 2 * head_row if side and is_last else 2 * rows[-1] + (1 if down else -1)
            wanted = ([end] if is_last and not side else []) + ([start] if number == 0 else [])
            path.turns.append(gap)
            path.across.append(self._lane(wanted, (start + end) / 2, (low, high), edge, (gap, stop)))
        path.turns.append(2 * head_row if side else 2 * last + 1)
        path.across.append(end)
        return path

    def _across(self, edge: Edge, start: float, end: float, head_row: int) -> Path | None:
        """Return the path of an edge from the way down of a U to its way up, which leaves its tail at a side.

        It goes across to the side of a box in the same row, or across and up to the lower end of a box.
        """
        tail, head, positions = edge.tail, edge.head, self.positions
        if BOUNDARY in (tail.box, head.box) or positions.is_upward(tail) or not positions.is_upward(head):
            return None
        if positions.is_open(tail) or positions.is_open(head):
            return None
        row, low = self.row[tail.box], positions.rectangle(tail.box).right
        high = positions.rectangle(head.box).left if row == head_row else end
        others = [self._block(item) for item in self.rows[row] if item not in (tail.box, head.box)]
        if row < head_row or low + _ARROW > high or any(left < high and low < right for left, right in others):
            return None
        if row == head_row:
            return Path(edge, [start, end], [2 * row], across_only=True)
        return Path(edge, [start, end, end], [2 * row, 2 * head_row + 1]) if row == head_row + 1 else None

    def _side_entry(
        self,
        edge: Edge,
        pieces: Sequence[tuple[list[int], float, float]],
        down: bool,
        start: float,
        x_at: Callable[[float], float],
    ) -> tuple[float, float] | None:
        """Return where the last lane may be if the edge enters its head at a side; None where it does not.

        An edge enters at a side where another one, the main path, comes from above.
        """
        head, positions = edge.head, self.positions
        is_join = not edge.spine and head in self.spine_heads and not positions.is_open(head)
        if not is_join or head.box == BOUNDARY or down == positions.is_upward(head):
            return None
        box, row = positions.rectangle(head.box), self.row[head.box]
        sides = [(low, box.left - _ARROW) for low, high in self.free[row] if high == box.left - _BESIDE]
        sides += [(box.right + _ARROW, high) for low, high in self.free[row] if low == box.right + _BESIDE]
        low, high = pieces[-1][1:] if pieces else (-math.inf, math.inf)
        wanted = x_at(self.centres[row]) if pieces else start
        sides.sort(key=lambda side: max(side[0] - wanted, wanted - side[1], 0))
        ways = ((max(low, side[0]), min(high, side[1])) for side in sides)
        return next((way for way in ways if way[0] <= way[1]), None)

    def _lane(
        self, wanted: Sequence[float], middle: float, room: tuple[float, float], edge: Edge, rows: tuple[int, int]
    ) -> float:
        """Return the place of a vertical part of an edge, and keep it."""
        low, high = room
        span = min(rows), max(rows)
        near = min(max(middle, low), high)
        outwards = -1 if near == high and high < math.inf else 1
        steps = (near + outwards * k * step for step in (_APART, _APART / 2) for k in range(len(self.lanes_of) + 24))
        places = (x for x in (*wanted, *self.lanes_of[edge.tail], *steps) if low <= x <= high)
        x = next((x for x in places if not self._is_taken(x, span, edge)), near)
        self.lanes[round(x / 16)].append((x, *span, edge.tail, edge.head))
        if x not in self.lanes_of[edge.tail]:
            self.lanes_of[edge.tail].append(x)
        return x

    def _is_taken(self, x: float, span: tuple[int, int], edge: Edge) -> bool:
        """Return whether another edge is near; edges from one source share a lane, so do sole edges into one end."""
        near, is_sole = round(x / 16), self.uses[edge.tail] == 1
        return any(
            abs(other - x) < _APART
            and low < span[1]
            and span[0] < high
            and tail != edge.tail
            and not (is_sole and head == edge.head and self.uses[tail] == 1)
            for bucket in (near - 1, near, near + 1)
            for other, low, high, tail, head in self.lanes.get(bucket, ())
        )

    def _move_ends(self) -> None:
        """Move the ends on the borders of the level to where their edges run, so that these have no turn there."""
        for at, places in ((0, self.positions.inputs), (-1, self.positions.outputs)):
            paths: dict[int, list[Path]] = defaultdict(list)
            for path in self.paths:
                port = path.edge.head if at else path.edge.tail
                if port.box == BOUNDARY:
                    paths[port.number].append(path)
            for number, (path, *others) in paths.items():
                x = path.across[-2 if at else 1]
                is_near = any(abs(other - x) < _APART for k, other in enumerate(places) if k != number)
                if not others and not path.edge.spine and not is_near:
                    path.across[at] = places[number] = x

    # -- where it runs along the flow

    def _turns(self) -> None:
        """Collect the horizontal parts of all edges by their gap and what they have in common, and give them tracks."""
        parts = [
            (gap, path, place)
            for path in self.paths
            for place, gap in enumerate(path.turns)
            if gap % 2 and abs(path.across[place] - path.across[place + 1]) > _SAME
        ]
        uses = Counter((gap, path.edge.tail) for gap, path, _ in parts)
        joins = Counter((gap, path.edge.head) for gap, path, _ in parts)
        by_gap: dict[int, dict[Hashable, Turn]] = defaultdict(dict)
        for gap, path, place in parts:
            edge, before, after = path.edge, path.across[place], path.across[place + 1]
            shares_head = uses[gap, edge.tail] == 1 and joins[gap, edge.head] > 1
            key = ("head", edge.head) if shares_head else ("tail", edge.tail)
            turn = by_gap[gap].setdefault(key, Turn(min(before, after), max(before, after)))
            turn.low, turn.high = min(turn.low, before, after), max(turn.high, before, after)
            first, last = self._gaps(edge)
            is_first, is_last = place == 0, place == len(path.turns) - 1
            from_above = not self.positions.is_upward(edge.tail) if is_first else first <= last
            to_above = self.positions.is_upward(edge.head) if is_last else first > last
            (turn.above if from_above else turn.below).add(before)
            (turn.above if to_above else turn.below).add(after)
            path.shared[place] = turn
        for gap, turns in by_gap.items():
            self.tracks[gap] = set_tracks(list(turns.values()))

    def _set_heights(self) -> None:
        """Set the places of boxes and ends along the flow, and the tops of rows and gaps."""
        y = 0.0
        for number in range(-1, 2 * len(self.rows)):
            self.tops[number] = y
            if number % 2 == 0:
                y += max(map(self._height, self.rows[number // 2]))
                continue
            near_text = any(item < 0 for row in self.rows[max(0, number // 2) : number // 2 + 2] for item in row)
            least = _GAP_AT_TEXT if near_text else _GAP
            if number == -1:
                least = _BELOW_TRACKS if self.positions.inputs else 0.0
            elif number == 2 * len(self.rows) - 1:
                least = _GAP_AT_BORDER if self.positions.outputs else 0.0
            if tracks := self.tracks.get(number, 0):
                least = max(least, _ABOVE_TRACKS + _BELOW_TRACKS + _TRACK * (tracks - 1))
            y += least
        self.positions.height = y
        for number, row in enumerate(self.rows):
            middle = (self.tops[2 * number] + self.tops[2 * number + 1]) / 2
            for item in row:
                if item >= 0:
                    self.positions.boxes[item] = self.positions.boxes[item][0], middle
                else:
                    text = self.texts[~item]
                    size = text.right - text.left, text.bottom - text.top
                    self.texts[~item] = around((text.middle[0], middle), size)

    def _set_texts(self) -> None:
        """Move each text beside its edge, where nothing stands between the two."""
        for index, text in self.texts.items():
            row, path = self.row[~index], self.paths[index]
            passes = [
                x
                for x, (above, below) in zip(path.across[1:-1], itertools.pairwise(path.turns), strict=True)
                if min(above, below) <= 2 * row <= max(above, below)
            ]
            blocks = [self._block(item) for item in self.rows[row] if item != ~index]
            lanes = [place for near in self.lanes.values() for place, *_ in near]
            for x in passes:
                move = x + _BESIDE_TEXT - text.left
                low, high = min(x, text.left), max(text.right, text.right + move)
                is_free = not any(left < high and low < right for left, right in blocks)
                if (
                    abs(move) <= _MOVED_TEXT
                    and is_free
                    and not any(low < place < high for place in lanes if place != x)
                ):
                    self.texts[index] = Rectangle(text.left + move, text.top, text.right + move, text.bottom)

    def _line(self, path: Path) -> Line:
        edge, positions = path.edge, self.positions
        end, bottom = positions.head(edge.head)
        corners: list[Point] = [(path.across[0], positions.tail(edge.tail)[1])]
        leaves_side = path.turns[0] % 2 == 0 and (path.across_only or len(path.turns) > 1)
        if leaves_side:
            tail, head = positions.rectangle(edge.tail.box), positions.rectangle(edge.head.box)
            corners = [(tail.right, tail.middle[1])]
            if path.across_only:
                return _styled(edge, [*corners, (head.left, head.middle[1])], positions)
            corners.append((end, tail.middle[1]))
        for place, (gap, before, after) in enumerate(zip(path.turns, path.across, path.across[1:], strict=False)):
            if leaves_side and place == 0:
                continue
            if gap % 2 == 0:  # it enters its head at a side
                box = positions.rectangle(edge.head.box)
                y = path.bottom = box.middle[1]
                corners += [(before, y), (box.left if before < box.left else box.right, y)]
                return _styled(edge, corners, positions)
            if place in path.shared:
                y = path.bottom = self.tops[gap] + _ABOVE_TRACKS + _TRACK * path.shared[place].track
                corners += [(before, y), (after, y)]
        last = corners[-1][0]
        corners.append((last if abs(last - end) <= _SAME else end, bottom))
        return _styled(edge, corners, positions)


def _styled(edge: Edge, corners: Sequence[Point], positions: Positions) -> Line:
    points = [corners[0]]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        if not (before[0] == corner[0] == after[0] or before[1] == corner[1] == after[1]):
            points.append(corner)
    points.append(corners[-1])
    return Line(
        points=rounded(points) if len(points) > 2 else tuple(points),
        curved=len(points) > 2,
        spine=edge.spine,
        weak=edge.weak,
        arrow=edge.head.box != BOUNDARY and not positions.is_open(edge.head),
        enters=edge.tail.box == BOUNDARY,
        leaves=edge.head.box == BOUNDARY,
        tail=edge.tail.box,
        head=edge.head.box,
    )
