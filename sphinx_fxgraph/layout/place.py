"""Place one level: boxes at the engine's coordinates, orthogonal edges, and texts beside them.

Everything here is in the level's own axes: x runs across the flow of data, y along it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sphinx_fxgraph.layout.geometry import Point, Positions
from sphinx_fxgraph.layout.graphviz import Coordinates, Extent
from sphinx_fxgraph.layout.route import Line, Router
from sphinx_fxgraph.view.level import Level


@dataclass(frozen=True)
class Pads:
    """Room around the inside of a frame: before and after it across the flow, and along it."""

    before: float
    after: float
    start: float
    end: float


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
    """Where edges of one source part."""
    notes: tuple[tuple[Point, int], ...]
    """The middle of an edge's text, and the index of the edge."""


def place(
    level: Level, extents: Sequence[Extent], notes: Sequence[tuple[float, float]], found: Coordinates, pads: Pads
) -> Placed:
    """Place the boxes of a level, route its edges, and put all that into the frame.

    Args:
        level: what is placed.
        extents: the size of each box.
        notes: the size of the text at each edge.
        found: the engine's coordinates.
        pads: between the frame and what is in it.
    """
    if _leans_left(level, extents, found) or _turns_left(level, found):
        found = _mirrored(found)
    places: dict[str, Point] = {name: (x, y) for name, (x, y) in found["nodes"].items()}
    positions = Positions(
        [places[f"n{index}"] for index in range(len(level.boxes))],
        [places[f"i{k}"][0] for k in range(level.inputs)],
        [places[f"o{k}"][0] for k in range(level.outputs)],
        extents,
        upward=frozenset(level.upward),
    )
    positions.straighten(level)
    router = Router(level, positions, found, notes)
    lines = router.lines()
    boxes = [positions.rectangle(index) for index in range(len(level.boxes))]
    texts = router.texts
    across = [x for box in (*boxes, *texts.values()) for x in (box.left, box.right)]
    across += [x for line in lines for x, _ in line.points]
    across += [*positions.inputs, *positions.outputs]
    left, right = min(across, default=0.0), max(across, default=0.0)

    def inside(point: Point) -> Point:
        return point[0] - left + pads.before, point[1] + pads.start

    return Placed(
        2 * math.ceil((right - left + pads.before + pads.after) / 2),
        math.ceil(positions.height + pads.start + pads.end),
        tuple(map(inside, positions.boxes)),
        tuple(x - left + pads.before for x in positions.inputs),
        tuple(x - left + pads.before for x in positions.outputs),
        tuple(replace(line, points=tuple(map(inside, line.points))) for line in lines),
        tuple(map(inside, router.junctions())),
        tuple((inside(box.middle), index) for index, box in texts.items()),
    )


def _leans_left(level: Level, extents: Sequence[Extent], found: Coordinates) -> bool:
    """Return whether more of a level is left of its main input than right of it.

    Such a level is mirrored: when all have their main path at the left, those above each other take the least room.
    An open module in it has its ends where they are, so that it cannot be.
    """
    if not level.inputs or any(extent.inputs is not None for extent in extents):
        return False
    return bool(found["nodes"][f"i{level.main_input}"][0] > found["size"][0] / 2 + 1)


def _turns_left(level: Level, found: Coordinates) -> bool:
    """Return whether the way up of a U is left of the way down."""
    return any(found["nodes"][f"n{one}"][0] > found["nodes"][f"n{other}"][0] for one, other in level.pairs)


def _mirrored(found: Coordinates) -> Coordinates:
    width = found["size"][0]

    def points(flat: Sequence[float]) -> list[float]:
        return [value if number % 2 else width - value for number, value in enumerate(flat)]

    return {
        **found,
        **{kind: {name: points(flat) for name, flat in found[kind].items()} for kind in ("nodes", "edges")},
    }
