"""The main path of a level, the inputs beside it, and U-shapes.

It is drawn as one straight line, and since open modules are entered and left at their own main ends, the residual
stream of a model is one line through all its frames.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence

from sphinx_fxgraph.view.level import BOUNDARY, Edge, Level, Port


def with_spine(level: Level, late: Sequence[int]) -> Level:
    """Return the level with the edges of its main path marked, and its main input and output.

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
    """Return whether an edge meets the main ends of the open boxes it joins, so that it can run on straight inside."""
    for port, of_input in ((edge.tail, False), (edge.head, True)):
        inner = level.boxes[port.box].inner if port.box != BOUNDARY else None
        if inner and port.number != (inner.main_input if of_input else inner.main_output):
            return False
    return True


_MOST_EDGES = 3
"""A side input with more consumers than that gets chips."""


def chips(level: Level) -> Level:
    """Return the level with side inputs that have many consumers as chips."""
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
    """Return the boxes that the main path reaches, and those that follow from them."""
    spine = level.spine()
    found = {edge.head.box for edge in spine} | {edge.tail.box for edge in spine}
    for edge in sorted(level.edges, key=lambda edge: edge.tail.box):
        from_main = edge.tail.number == level.main_input if edge.tail.box == BOUNDARY else edge.tail.box in found
        if from_main and not edge.weak:
            found.add(edge.head.box)
    return found


_LEAST = {"auto": 3, "u": 1}
"""Skips that nest, by the option ``layout``."""


def with_shape(level: Level, layout: str) -> Level:
    """Return the level with the ends of its skips as pairs and the boxes after the turn as upward, if it is a U.

    Args:
        level: a level with its main path.
        layout: the option of this name.
    """
    if layout not in _LEAST or level.inputs or level.outputs:
        return level
    path = [edge.tail.box for edge in level.spine()]
    path += [edge.head.box for edge in level.spine()[-1:]]
    place = {box: number for number, box in enumerate(path)}
    ends = {
        (place[edge.tail.box], place[edge.head.box])
        for edge in level.edges
        if not edge.spine and not edge.weak and edge.tail.box in place and edge.head.box in place
    }
    skips = sorted((tail, head) for tail, head in ends if head - tail > 1)
    tails, heads = Counter(tail for tail, _ in skips), Counter(head for _, head in skips)
    nested = all(one[1] > other[1] for one, other in itertools.pairwise(skips))
    if len(skips) < _LEAST[layout] or not nested or {*tails.values(), *heads.values()} != {1}:
        return level
    turn = skips[-1][1]
    if any(level.boxes[box].inner for box in path[turn:]):  # what is inside an open box goes down
        return level
    return dataclasses.replace(
        level, pairs=tuple((path[tail], path[head]) for tail, head in skips), upward=tuple(path[turn:])
    )


def ranks(level: Level, downward: list[int]) -> list[float]:
    """Return the rank of each box of a U, from those that it would have in a column."""
    found: list[float] = list(downward)
    if not level.pairs:
        return found
    partner = {head: tail for tail, head in level.pairs}
    stops = [number for number, box in enumerate(level.upward) if box in partner]
    for number, box in enumerate(level.upward):
        before = max((stop for stop in stops if stop <= number), default=0)
        after = min((stop for stop in stops if stop > number), default=None)
        below = downward[partner[level.upward[before]]]
        above = downward[partner[level.upward[after]]] if after is not None else below - (number - before)
        share = (number - before) / (after - before) if after is not None else 1.0
        found[box] = below + (above - below) * share
    return found
