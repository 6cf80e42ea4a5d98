"""The parts of a level: boxes, and edges between their ports; bundles of edges that lead to the same places."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sphinx_fxgraph.record.model import Node, TensorMeta
from sphinx_fxgraph.view.simplify import Run, Stage

BOUNDARY = -1
"""Index of the level itself where an edge starts at one of its inputs or ends at one of its outputs."""


@dataclass(frozen=True, eq=False)
class Box:
    """One thing in a level: a node of the body, open if it shows the level of its own body inside."""

    node: Node
    tensors: tuple[TensorMeta, ...]
    """The tensors in its results: all that a closed box says of its inside."""
    inner: Level | None = None
    run: Run | None = None
    chips: tuple[str, ...] = ()
    """Names of side inputs that have no edge."""
    weight: int = 1
    """How many operators it stands for, be it open or closed."""
    names: tuple[str, ...] = ()
    """Of all nodes of the record that it stands for: those of a run, those of a stretch of operators."""
    arguments: str = ""
    """The arguments of the call, as text."""
    stage: Stage | None = None
    contents: str = ""
    """What a closed module consists of, or which block it repeats."""
    change: str = ""
    """How a closed module changes channels and resolution."""
    shared: str = ""
    """With which other calls it shares its weights, in words."""
    example: bool = False
    """Whether it is open as the example of its kind, while the others are closed."""
    rows: tuple[Box, ...] = ()
    """The operators of a straight stretch that is drawn as one box, from top to bottom."""

    def row(self, number: int) -> Box:
        """Return a row by its number, or the box itself if it has no rows."""
        return self.rows[number] if self.rows else self

    def with_chips(self, names: Iterable[str]) -> Box:
        """Return the box with the names of further side inputs, which belong to its first row if it has rows."""
        chips = (*self.chips, *dict.fromkeys(names))
        rows = (self.rows[0].with_chips(names), *self.rows[1:]) if self.rows else ()
        return dataclasses.replace(self, chips=chips, rows=rows)


@dataclass(frozen=True)
class Port:
    """One end of an edge: output or pin ``number`` of box ``box``."""

    box: int
    number: int = 0


@dataclass(frozen=True)
class Edge:
    """A value that flows from one port to another."""

    tail: Port
    head: Port
    weak: bool = False
    """One of its ends holds no tensor."""
    spine: bool = False
    """It is part of the level's main path."""
    tensors: tuple[TensorMeta, ...] = ()
    """What flows, where no box says so."""
    count: int = 1
    """How many results it stands for, where results that go to the same places are one line."""


@dataclass(frozen=True, eq=False)
class Level:
    """A body as boxes in execution order and the edges between them."""

    body: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    names: tuple[str, ...]
    """What enters at each pin."""
    pins: tuple[int, ...]
    """The pin at which each input of the body enters."""
    outputs: int
    """How many ends it has."""
    outs: tuple[int, ...]
    """The end at which each output of the body leaves."""
    main_input: int = 0
    main_output: int = 0
    pairs: tuple[tuple[int, int], ...] = ()
    """The boxes side by side where the level is drawn as a U: the ends of each skip, the outermost first."""
    upward: tuple[int, ...] = ()
    """The boxes of the main path that data goes up through, in the order of execution."""

    @property
    def inputs(self) -> int:
        """Return the number of pins."""
        return len(self.names)

    def spine(self) -> tuple[Edge, ...]:
        """Return the edges of the main path, from its start to its end."""
        return tuple(edge for edge in self.edges if edge.spine)


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


def bundled(boxes: Sequence[Box | None]) -> tuple[int, ...]:
    """Return the end at which each output leaves: three or more of one closed box leave together.

    Args:
        boxes: the box that each output comes from.
    """
    counts = Counter(boxes)
    ends: dict[object, int] = {}
    return tuple(
        ends.setdefault(box if box and not box.inner and counts[box] > 2 else number, len(ends))
        for number, box in enumerate(boxes)
    )


def pinned(count: int, edges: tuple[Edge, ...]) -> tuple[tuple[int, ...], tuple[Edge, ...]]:
    """Let inputs that go to the same places enter by one pin: all the maps that a dense layer concatenates.

    Returns:
        The pin of each input, and the edges from pins instead of from inputs.
    """
    uses: list[set[tuple[Port, bool]]] = [set() for _ in range(count)]
    for edge in edges:
        if edge.tail.box == BOUNDARY:
            uses[edge.tail.number].add((edge.head, edge.weak))
    numbers: dict[object, int] = {}
    pins = tuple(numbers.setdefault(frozenset(use), len(numbers)) for use in uses)
    renamed = (
        dataclasses.replace(edge, tail=Port(BOUNDARY, pins[edge.tail.number])) if edge.tail.box == BOUNDARY else edge
        for edge in edges
    )
    return pins, tuple(dict.fromkeys(renamed))
