"""One level with the engine's coordinates: what the engine rounded is put right, and edges become lines.

Everything here is in the level's own axes: x runs across the flow of data, y along it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sphinx_fxgraph.drawing import routing
from sphinx_fxgraph.drawing.lanes import Point, Rectangle, sampled
from sphinx_fxgraph.drawing.layout import Coordinates
from sphinx_fxgraph.drawing.level import Level
from sphinx_fxgraph.drawing.level_dot import Extent
from sphinx_fxgraph.drawing.routing import Line
from sphinx_fxgraph.drawing.spots import Spots


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
    places: dict[str, Point] = {name: (x, y) for name, (x, y) in found["nodes"].items()}
    was = Spots(
        [places[f"n{index}"] for index in range(len(level.boxes))],
        [places[f"i{k}"] for k in range(level.inputs)],
        [places[f"o{k}"] for k in range(level.outputs)],
        extents,
    )
    spots = was.copy()
    spots.straighten(level)
    texts = [((x, y), int(index)) for index, (x, y) in found.get("notes", {}).items()]
    covered = [_around(point, notes[index]) for point, index in texts]
    lines = routing.lines(level, was, spots, found, covered)
    rails, dots = routing.rails(level, spots) if level.rails else ([], [])
    lines += rails

    boxes = [spots.rectangle(index) for index in range(len(level.boxes))] + covered
    across = [x for box in boxes for x in (box.left, box.right)]
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
        tuple((inside(point), index) for point, index in texts),
    )


def _around(middle: Point, size: tuple[float, float]) -> Rectangle:
    (x, y), (width, height) = middle, size
    return Rectangle(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
