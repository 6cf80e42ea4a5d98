"""One level with the engine's coordinates: what the engine rounded is put right, and edges become lines.

Everything here is in the level's own axes: x runs across the flow of data, y along it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sphinx_fxgraph.layout import route
from sphinx_fxgraph.layout.edge_labels import placed
from sphinx_fxgraph.layout.graphviz import Coordinates
from sphinx_fxgraph.layout.lanes import Point, sampled
from sphinx_fxgraph.layout.level_dot import Extent
from sphinx_fxgraph.layout.positions import Spots
from sphinx_fxgraph.layout.route import Line
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
    """Where a rail is tapped."""
    notes: tuple[tuple[Point, int], ...]
    """The middle of an edge's text, and the index of the edge."""


def place(
    level: Level, extents: Sequence[Extent], notes: Sequence[tuple[float, float]], found: Coordinates, pads: Pads
) -> Placed:
    """Draw the spine straight, lead every edge to where its ends are, and put all that into the frame.

    Args:
        level: what is placed.
        extents: the size of each box.
        notes: the size of the text at each edge.
        found: the engine's coordinates.
        pads: between the frame and what is in it.
    """
    if _leans_left(level, extents, found):
        found = _mirrored(found)
    places: dict[str, Point] = {name: (x, y) for name, (x, y) in found["nodes"].items()}
    was = Spots(
        [places[f"n{index}"] for index in range(len(level.boxes))],
        [places[f"i{k}"] for k in range(level.inputs)],
        [places[f"o{k}"] for k in range(level.outputs)],
        extents,
    )
    spots = was.copy()
    spots.straighten(level)
    lines = route.lines(level, was, spots, found)
    rails, dots = route.rails(level, spots) if level.rails else ([], [])
    lines += rails
    boxes = [spots.rectangle(index) for index in range(len(level.boxes))]
    asked = {int(index): (x, y) for index, (x, y) in found.get("notes", {}).items()}
    texts = placed({index: notes[index] for index in asked}, asked, lines, boxes)
    across = [x for box in (*boxes, *texts.values()) for x in (box.left, box.right)]
    across += [x for line in lines for x, _ in (sampled(line.points) if line.curved else line.points)]
    across += [x for x, _ in (*spots.inputs, *spots.outputs)]
    left, right = min(across, default=0.0), max(across, default=0.0)

    def inside(point: Point) -> Point:
        return point[0] - left + pads.before, point[1] + pads.start

    return Placed(
        2 * math.ceil((right - left + pads.before + pads.after) / 2),
        math.ceil(found["size"][1] + pads.start + pads.end),
        tuple(map(inside, spots.boxes)),
        tuple(inside(point)[0] for point in spots.inputs),
        tuple(inside(point)[0] for point in spots.outputs),
        tuple(replace(line, points=tuple(map(inside, line.points))) for line in lines),
        tuple(map(inside, dots)),
        tuple(
            (inside(((box.left + box.right) / 2, (box.top + box.bottom) / 2)), index) for index, box in texts.items()
        ),
    )


def _leans_left(level: Level, extents: Sequence[Extent], found: Coordinates) -> bool:
    """Whether more of a level is left of its main input than right of it.

    Such a level is mirrored: when all have their main path at the left, those above each other take the least room.
    An open module in it has its ends where they are, so that it cannot be.
    """
    if not level.inputs or any(extent.inputs is not None for extent in extents):
        return False
    return bool(found["nodes"][f"i{level.main_input}"][0] > found["size"][0] / 2 + 1)


def _mirrored(found: Coordinates) -> Coordinates:
    width = found["size"][0]

    def points(flat: Sequence[float]) -> list[float]:
        return [value if number % 2 else width - value for number, value in enumerate(flat)]

    mirrored = {
        kind: {name: points(flat) for name, flat in found.get(kind, {}).items()} for kind in ("nodes", "edges", "notes")
    }
    return {**found, **mirrored}
