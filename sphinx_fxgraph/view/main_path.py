"""The main path of a level: the longest path of tensors from its main input to its main output.

It is drawn as one straight line, and since open modules are entered and left at their own main ends, the residual
stream of a model is one line through all its frames.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence

from sphinx_fxgraph.view.level import BOUNDARY, Edge, Level


def with_spine(level: Level, late: Sequence[int]) -> Level:
    """The level with the edges of its main path marked, and the pin and the output that the path leads from and to.

    A path is as long as the operators on it are many. Among pins from which it is equally long the one made last
    (``late``) wins: of all the maps that a dense layer takes, the one from the layer above. If it can, it keeps to the
    main ends of open boxes, where it runs on straight inside. The main path of a whole model starts at an input.
    """
    strong = [edge for edge in level.edges if not edge.weak]
    aligned = [edge for edge in strong if _aligned(level, edge)]
    inputs = {index for index, box in enumerate(level.boxes) if box.node.op == "placeholder"}
    for edges, starts in ((aligned, inputs), (strong, inputs), (strong, set(range(len(level.boxes))))):
        if path := _longest(level, edges, late, starts):
            first, last = path[0].tail, path[-1].head
            on_path = set(path)
            return dataclasses.replace(
                level,
                edges=tuple(dataclasses.replace(edge, spine=True) if edge in on_path else edge for edge in level.edges),
                main_input=first.number if first.box == BOUNDARY else 0,
                main_output=last.number if last.box == BOUNDARY else 0,
            )
    return level


def _longest(level: Level, edges: Iterable[Edge], late: Sequence[int], starts: Container[int]) -> tuple[Edge, ...]:
    into: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        into[edge.head.box].append(edge)
    reached: dict[int, tuple[int, int]] = {}  # box -> operators on the way, how late the input was made
    before: dict[int, Edge] = {}

    def length(edge: Edge) -> tuple[int, int]:
        return (0, late[edge.tail.number]) if edge.tail.box == BOUNDARY else reached[edge.tail.box]

    def arriving(box: int) -> list[Edge]:
        return [edge for edge in into[box] if edge.tail.box == BOUNDARY or edge.tail.box in reached]

    for index, box in enumerate(level.boxes):
        if ways := arriving(index):
            before[index] = max(ways, key=length)
            operators, made = length(before[index])
            reached[index] = (operators + box.weight, made)
        elif not level.inputs and index in starts:
            reached[index] = (box.weight, 0)
    if level.outputs:
        step = max(arriving(BOUNDARY), key=length, default=None)
    else:
        step = before.get(max(reached, key=reached.__getitem__, default=BOUNDARY))
    path = []
    while step:
        path.append(step)
        step = before.get(step.tail.box) if step.tail.box != BOUNDARY else None
    return tuple(reversed(path))


def _aligned(level: Level, edge: Edge) -> bool:
    """Whether an edge meets the main ends of the open boxes it joins, so that it can run on straight inside."""
    for port, of_input in ((edge.tail, False), (edge.head, True)):
        inner = level.boxes[port.box].inner if port.box != BOUNDARY else None
        if inner and port.number != (inner.main_input if of_input else inner.main_output):
            return False
    return True
