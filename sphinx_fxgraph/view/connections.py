"""Lines of open modules that lead nowhere, and bundles of those that lead to the same places.

A result that nothing takes has no line. An input that is only named at its module, because it has no edge around it, is
only named inside too. Results that go to the same places are one line with a count (``×24``), such as the keys and
values that each layer of a language model returns, instead of a comb of lines through every frame.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from sphinx_fxgraph.view.level import BOUNDARY, Edge, Level, Port

_LEAST = 4
"""Results that go to the same places are bundled from this number on."""


def connect(root: Level) -> Level:
    """Return the level of a whole model in which every line of an open module goes on outside.

    Equal levels that are connected alike stay one object.
    """
    return _Connector().level(root, tuple(range(root.inputs)), tuple(range(root.outputs)))


Numbers = tuple[int | None, ...]
"""The new number of each input or output; None where it has no line."""


class _Connector:
    def __init__(self) -> None:
        self.finished: dict[tuple[int, Numbers, Numbers], Level] = {}

    def level(self, level: Level, inputs: Numbers, outputs: Numbers) -> Level:
        """Return a level whose ends have other numbers."""
        key = id(level), inputs, outputs
        if key not in self.finished:
            self.finished[key] = self._level(level, inputs, outputs)
        return self.finished[key]

    def _level(self, level: Level, inputs: Numbers, outputs: Numbers) -> Level:
        edges = _renumbered(level.edges, BOUNDARY, outputs, of_head=True)
        boxes = list(level.boxes)
        for edge in edges:
            if edge.tail.box == BOUNDARY and inputs[edge.tail.number] is None and edge.head.box != BOUNDARY:
                boxes[edge.head.box] = boxes[edge.head.box].with_chips([level.names[edge.tail.number]])
        edges = _renumbered(edges, BOUNDARY, inputs, of_head=False)
        for index, box in enumerate(boxes):
            if not box.inner:
                continue
            heads = {edge.head.number for edge in edges if edge.head.box == index}
            pins = iter(range(box.inner.inputs))
            entered = tuple(next(pins) if pin in heads else None for pin in range(box.inner.inputs))
            edges = _renumbered(edges, index, entered, of_head=True)
            left = _numbers([edge for edge in edges if edge.tail.box == index], box.inner)
            edges = _renumbered(edges, index, left, of_head=False)
            inner = self.level(box.inner, entered, left)
            boxes[index] = box if inner is box.inner else dataclasses.replace(box, inner=inner)
        if edges == level.edges and all(one is other for one, other in zip(boxes, level.boxes, strict=True)):
            return level
        return dataclasses.replace(
            level,
            boxes=tuple(boxes),
            edges=edges,
            names=tuple(name for name, number in zip(level.names, inputs, strict=True) if number is not None),
            pins=tuple(inputs[pin] or 0 for pin in level.pins),
            outputs=max((number for number in outputs if number is not None), default=-1) + 1,
            main_input=(inputs[level.main_input] if inputs else 0) or 0,
            main_output=(outputs[level.main_output] if outputs else 0) or 0,
        )


def _numbers(edges: Sequence[Edge], inner: Level) -> Numbers:
    """Return the new number of each output of an open box; None where nothing takes it."""
    heads: dict[int, set[Port]] = defaultdict(set)
    for edge in edges:
        heads[edge.tail.number].add(edge.head)
    alike: dict[frozenset[Port], list[int]] = defaultdict(list)
    for number in range(inner.outputs):
        if number != inner.main_output:
            alike[frozenset(heads[number])].append(number)
    found: list[int | None] = []
    numbers: dict[object, int] = {}
    for number in range(inner.outputs):
        places = frozenset(heads[number])
        is_bundled = number != inner.main_output and len(alike[places]) >= _LEAST
        key: object = places if is_bundled else number
        found.append(numbers.setdefault(key, len(numbers)) if places else None)
    return tuple(found)


def _renumbered(edges: tuple[Edge, ...], box: int, numbers: Numbers, *, of_head: bool) -> tuple[Edge, ...]:
    """Return the edges with new numbers of the ports of a box; those that become one are one with a count."""
    if numbers == tuple(range(len(numbers))):
        return edges
    found: dict[tuple[Port, Port], Edge] = {}
    for edge in edges:
        port = edge.head if of_head else edge.tail
        if port.box != box:
            found[edge.tail, edge.head] = edge
            continue
        number = numbers[port.number]
        if number is None:
            continue
        port = Port(box, number)
        ends = (edge.tail, port) if of_head else (port, edge.head)
        one = found.get(ends)
        found[ends] = dataclasses.replace(
            edge,
            tail=ends[0],
            head=ends[1],
            weak=edge.weak and (one is None or one.weak),
            spine=edge.spine or (one is not None and one.spine),
            count=edge.count + (one.count if one else 0),
        )
    return tuple(found.values())
