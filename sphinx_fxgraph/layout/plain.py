"""A layered layout of our own, for levels that the engine cannot lay out in time: plainer, but always there.

Boxes stand in rows, each below all that it takes from. The main path is one column, the rest stands right of it. An
edge that would run through boxes goes around all of them on the right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sphinx_fxgraph.layout.geometry import Point, Rectangle, sampled, straight
from sphinx_fxgraph.layout.graphviz import Coordinates
from sphinx_fxgraph.layout.level_dot import Extent
from sphinx_fxgraph.layout.positions import Positions
from sphinx_fxgraph.view.level import BOUNDARY, Level

_BETWEEN_ROWS, _BETWEEN_BOXES = 30.0, 16.0


def lay_out(level: Level, extents: Sequence[Extent], notes: Sequence[tuple[float, float]]) -> Coordinates:
    """Coordinates as an engine gives them (see `layout`)."""
    rows = _rows(level)
    positions = Positions([(0.0, 0.0)] * len(level.boxes), [], [], extents)
    on_spine = {port.box for edge in level.spine() for port in (edge.tail, edge.head)}
    y = _BETWEEN_ROWS
    for row in rows:
        height = max((extents[box].height for box in row), default=0.0)
        left = _BETWEEN_BOXES
        for box in sorted(row, key=lambda box: box not in on_spine):
            extent = extents[box]
            if box in on_spine:  # its main ends stand above each other
                inner = level.boxes[box].inner
                port = extent.inputs[inner.main_input] if inner and extent.inputs else extent.width / 2
                positions.boxes[box] = (extent.width / 2 - port, y + height / 2)
                left = max(left, extent.width - port + _BETWEEN_BOXES)
            else:
                positions.boxes[box] = (left + extent.width / 2, y + height / 2)
                left += extent.width + _BETWEEN_BOXES
        y += height + _BETWEEN_ROWS
    positions.inputs = [(k - level.main_input) * _BETWEEN_BOXES for k in range(level.inputs)]
    positions.outputs = [(k - level.main_output) * _BETWEEN_BOXES for k in range(level.outputs)]
    positions.height = y
    boxes = [positions.rectangle(box) for box in range(len(level.boxes))]
    right = max((box.right for box in boxes), default=0.0) + _BETWEEN_BOXES
    routes = [_route(positions.tail(edge.tail), positions.head(edge.head), boxes, right) for edge in level.edges]
    return {
        "by": "plain",
        "size": [right, y],
        "nodes": {
            **{f"n{index}": list(point) for index, point in enumerate(positions.boxes)},
            **{f"i{k}": [x, 0.0] for k, x in enumerate(positions.inputs)},
            **{f"o{k}": [x, y] for k, x in enumerate(positions.outputs)},
        },
        "edges": {str(index): [c for point in route for c in point] for index, route in enumerate(routes)},
        "notes": {
            str(index): [route[-1][0] + width / 2 + 4, route[-1][1] - height]
            for index, (route, (width, height)) in enumerate(zip(routes, notes, strict=True))
            if width
        },
    }


def _rows(level: Level) -> list[list[int]]:
    """The boxes by how many steps they are from the start."""
    tails: dict[int, list[int]] = defaultdict(list)
    for edge in level.edges:
        tails[edge.head.box].append(edge.tail.box)
    depth: dict[int, int] = {BOUNDARY: -1}
    for box in range(len(level.boxes)):  # in the order of execution, so that what a box takes from comes before it
        depth[box] = 1 + max((depth[tail] for tail in tails[box]), default=-1)
    rows: list[list[int]] = [[] for _ in range(max(depth.values()) + 1)]
    for box in range(len(level.boxes)):
        rows[depth[box]].append(box)
    return rows


def _route(start: Point, end: Point, boxes: Sequence[Rectangle], right: float) -> tuple[Point, ...]:
    """Straight, or if that would run through boxes around all of them; `lanes` makes the latter a proper line."""
    way = straight(start, end)
    if any(box.holds(point, -1) for point in sampled(way, 40) for box in boxes):
        return (start, (right, start[1]), (right, end[1]), end)
    return way
