"""Models whose data goes down and up again: a U, found by skips that nest, not by names.

A skip joins two boxes of the main path. Skips nest where each begins after the one before and ends before it. Then the
two ends of each skip stand at one height, what comes after the innermost skip goes up, and the skips go across.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter

from sphinx_fxgraph.view.level import Level

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
