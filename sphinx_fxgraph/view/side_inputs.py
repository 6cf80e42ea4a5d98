"""What is not on the main path and would crowd it: names in chips instead of long edges.

A side input with many consumers (a mask, a rotary table, a parameter) keeps its edge to the first of them and is named
in a chip at the others.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict

from sphinx_fxgraph.view.level import BOUNDARY, Edge, Level, Port

_MOST_EDGES = 3
"""A side input with more consumers than that gets chips."""


def chips(level: Level) -> Level:
    """Side inputs with many consumers as chips."""
    main = _reached_by_spine(level)
    consumers: dict[Port, list[Edge]] = defaultdict(list)
    for edge in level.edges:
        side = edge.tail.number != level.main_input if edge.tail.box == BOUNDARY else edge.tail.box not in main
        if side and edge.head.box != BOUNDARY:
            consumers[edge.tail].append(edge)
    named: dict[int, list[str]] = defaultdict(list)
    gone = set()
    for tail, edges in consumers.items():
        if len(edges) > _MOST_EDGES:
            name = level.names[tail.number] if tail.box == BOUNDARY else level.boxes[tail.box].node.name
            for edge in sorted(edges, key=lambda edge: edge.head.box)[1:]:
                named[edge.head.box].append(name)
                gone.add(edge)
    boxes = (box.with_chips(named[index]) if index in named else box for index, box in enumerate(level.boxes))
    return dataclasses.replace(level, boxes=tuple(boxes), edges=tuple(edge for edge in level.edges if edge not in gone))


def _reached_by_spine(level: Level) -> set[int]:
    """The boxes that the main path leads to or goes through, and what follows from them."""
    spine = level.spine()
    found = {edge.head.box for edge in spine} | {edge.tail.box for edge in spine}
    for edge in sorted(level.edges, key=lambda edge: edge.tail.box):
        from_main = edge.tail.number == level.main_input if edge.tail.box == BOUNDARY else edge.tail.box in found
        if from_main and not edge.weak:
            found.add(edge.head.box)
    return found
