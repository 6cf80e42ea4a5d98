"""Lay out many graphs in few runs of the engine, and those that it cannot lay out with a plain layout of our own.

A graph that fails by itself is tried again with less effort (https://graphviz.org/docs/attrs/nslimit/). What then has
no coordinates is left to `plain`.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from sphinx_fxgraph.layout.geometry import Point, Positions, Rectangle, sampled, straight
from sphinx_fxgraph.layout.graphviz import Coordinates, Engine, EngineFailedError, Extent
from sphinx_fxgraph.view.level import BOUNDARY, Level

_BETWEEN_ROWS, _BETWEEN_BOXES = 30.0, 16.0


def lay_out_plain(level: Level, extents: Sequence[Extent], notes: Sequence[tuple[float, float]]) -> Coordinates:
    """Return coordinates as an engine gives them."""
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
    """Return the boxes by their number of steps from the start."""
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
    """Return a straight line, or one around all boxes if that would run through some."""
    way = straight(start, end)
    if any(box.holds(point, -1) for point in sampled(way, 40) for box in boxes):
        return (start, (right, start[1]), (right, end[1]), end)
    return way


_LESS_EFFORT = "nslimit=2 nslimit1=2 mclimit=0.2 splines=line"
"""Fewer rounds for ranks, order and places, and straight edges, which cost no search for a way."""
_TOGETHER = 60
"""Graphs in one run: the start of the engine is little of its time, and the cores share the runs."""
_SHARE = 4
"""A graph by itself may take that part of the time that all together may."""


def lay_out(engine: Engine, graphs: Mapping[str, str], timeout: float) -> tuple[dict[str, Coordinates], dict[str, str]]:
    """Return coordinates of the graphs that the engine can lay out, and its complaints, both by key.

    Args:
        engine: what lays out.
        graphs: DOT by key.
        timeout: seconds for each run of many. One by one they may take as long once more, all in all.

    Raises:
        EngineMissingError: the program is not there.
    """
    found: dict[str, Coordinates] = {}
    said: dict[str, str] = {}
    keys = list(graphs)
    parts = [{key: graphs[key] for key in keys[at : at + _TOGETHER]} for at in range(0, len(keys), _TOGETHER)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for coordinates, complaints in pool.map(lambda part: _lay_out(engine, part, timeout), parts):
            found |= coordinates
            said |= complaints
    return found, said


def _lay_out(
    engine: Engine, graphs: Mapping[str, str], timeout: float
) -> tuple[dict[str, Coordinates], dict[str, str]]:
    """Lay out the graphs of one run."""
    found: dict[str, Coordinates] = {}
    said: dict[str, str] = {}
    try:
        coordinates, complaint = engine.lay_out(list(graphs.values()), timeout)
        if not complaint:
            return dict(zip(graphs, coordinates, strict=True)), {}
    except EngineFailedError:
        pass
    end = time.monotonic() + timeout
    for key, dot in graphs.items():
        for effort, text in (("", dot), ("; drawn with less effort", dot.replace("{\n", f"{{\n{_LESS_EFFORT}\n", 1))):
            left = min(timeout / _SHARE, end - time.monotonic())
            if left <= 0:
                said[key] = "; ".join(filter(None, (said.get(key), "there was no time left")))
                break
            try:
                (coordinate,), complaint = engine.lay_out([text], left)
            except EngineFailedError as error:
                said.setdefault(key, str(error))
                continue
            found[key] = coordinate | ({"by": "less effort"} if effort else {})
            if complaint or effort:
                said[key] = said.get(key, complaint) + effort
            break
    return found, said
