"""What to show: a record becomes levels of boxes and edges, still without coordinates.

A level is a body drawn on its own. A box in it is an operator or a module call; an open module call holds the level of
its own body. Equal bodies give one and the same level, so it is laid out once however often it stands in the model.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sphinx_fxgraph.drawing import folds, groups, nontensor
from sphinx_fxgraph.drawing.opening import Key, opened
from sphinx_fxgraph.drawing.shown import Look, Run, Shown
from sphinx_fxgraph.record import Body, Node, Record, TensorMeta, Value

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

    @property
    def weight(self) -> int:
        """How many operators it stands for."""
        return (self.inner.weight if self.inner else 1) * (self.run.count if self.run else 1)


@dataclass(frozen=True)
class Port:
    """One end of an edge: output or input ``number`` of box ``box``."""

    box: int
    number: int = 0


@dataclass(frozen=True)
class Edge:
    """A value on its way. ``weak``: one of its ends holds no tensor. ``spine``: it is part of the level's main path."""

    tail: Port
    head: Port
    weak: bool = False
    spine: bool = False


@dataclass(frozen=True, eq=False)
class Level:
    """A body as boxes in execution order and the edges between them."""

    body: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    inputs: int
    outputs: int
    main_input: int = 0
    main_output: int = 0
    weight: int = 1

    def spine(self) -> tuple[Edge, ...]:
        """The edges of the main path, from its start to its end."""
        return tuple(edge for edge in self.edges if edge.spine)


def root_level(record: Record, look: Look) -> Level:
    """The level of the whole model as ``look`` shows it, with the levels of all open modules in it."""
    shown = simplified(record, look)
    return _Builder(shown, opened(shown, look)).level(shown.record.root, (), ())


def simplified(record: Record, look: Look) -> Shown:
    """The record as ``look`` shows it."""
    shown = nontensor.simplify(Shown(record), look.nontensor)
    if look.fold != "off":
        shown = folds.fold(shown, loose=look.fold == "loose")
    return groups.cluster(shown)


class _Builder:
    def __init__(self, shown: Shown, opened: frozenset[Key]) -> None:
        self.shown = shown
        self.record = shown.record
        self.opened = opened
        self.built: dict[tuple[str, tuple[Level | None, ...]], Level] = {}

    def level(self, name: str, key: Key, latest: tuple[int, ...]) -> Level:
        """The level of body ``name``, called at ``key``; equal levels are one object.

        ``latest`` are its inputs in the order in which its first caller made them.
        """
        body = self.record.bodies[name]
        order = {node.name: index for index, node in enumerate(body.nodes)}
        inner: list[Level | None] = []
        for node in body.nodes:
            if (*key, node.name) in self.opened:
                ages = sorted(range(len(node.inputs)), key=lambda k: order.get(node.inputs[k].node, BOUNDARY))
                inner.append(self.level(node.body, (*key, node.name), tuple(ages)))
            else:
                inner.append(None)
        built = (name, tuple(inner))
        if built not in self.built:
            self.built[built] = self._build(name, inner, order, latest)
        return self.built[built]

    def _build(self, name: str, inner: list[Level | None], order: Mapping[str, int], latest: tuple[int, ...]) -> Level:
        body = self.record.bodies[name]
        boxes = tuple(
            Box(
                node,
                self._results(body, node),
                level,
                self.shown.runs.get((name, node.name)),
                self.shown.chips.get((name, node.name), ()),
            )
            for node, level in zip(body.nodes, inner, strict=True)
        )
        edges = tuple(self._edges(body, order))
        weight = sum(box.weight for box in boxes)
        level = Level(name, boxes, edges, len(body.inputs), len(body.outputs), weight=weight)
        path, main_input, main_output = _main_path(level, latest)
        edges = tuple(dataclasses.replace(edge, spine=edge in path) for edge in edges)
        return dataclasses.replace(level, edges=edges, main_input=main_input, main_output=main_output)

    def _results(self, body: Body, node: Node) -> tuple[TensorMeta, ...]:
        if not node.body:
            return node.outputs
        count = len(self.record.bodies[node.body].outputs)
        return tuple(meta for k in range(count) for meta in self.record.metas(body, Value(node.name, k)))

    def _edges(self, body: Body, order: Mapping[str, int]) -> Iterable[Edge]:
        def tail(value: Value) -> Port:
            return Port(order[value.node] if value.node else BOUNDARY, value.output)

        seen = set()
        for index, node in enumerate(body.nodes):
            ends = node.op == "output" or bool(self._results(body, node))
            for number, value in enumerate(node.inputs):
                weak = not (ends and self.record.metas(body, value))
                edge = Edge(tail(value), Port(index, number if node.body else 0), weak)
                if edge not in seen:
                    seen.add(edge)
                    yield edge
        for number, value in enumerate(body.outputs):
            yield Edge(tail(value), Port(BOUNDARY, number), not self.record.metas(body, value))


def _main_path(level: Level, latest: tuple[int, ...]) -> tuple[frozenset[Edge], int, int]:
    """The longest path of tensors through a level, the input it starts at and the output it ends at.

    It is as long as the operators on it are many. Inside another level it leads from an input to an output. Among
    inputs from which it is equally long the one made last wins: of all the maps that a dense layer takes, the one from
    the layer above. If it can, it keeps to the main inputs and outputs of open boxes, where it runs on straight inside.
    """
    strong = [edge for edge in level.edges if not edge.weak]
    for edges in ([edge for edge in strong if _aligned(level, edge)], strong):
        if path := _longest(level, edges, {number: rank for rank, number in enumerate(latest)}):
            first, last = path[0].tail, path[-1].head
            return (
                frozenset(path),
                first.number if first.box == BOUNDARY else 0,
                last.number if last.box == BOUNDARY else 0,
            )
    return frozenset(), 0, 0


def _longest(level: Level, edges: Iterable[Edge], age: Mapping[int, int]) -> tuple[Edge, ...]:
    into: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        into[edge.head.box].append(edge)
    reached: dict[int, tuple[int, int]] = {}  # box -> operators on the way, how late the input was made
    before: dict[int, Edge] = {}

    def length(edge: Edge) -> tuple[int, int]:
        return (0, age.get(edge.tail.number, 0)) if edge.tail.box == BOUNDARY else reached[edge.tail.box]

    for index, box in enumerate(level.boxes):
        ways = [edge for edge in into[index] if edge.tail.box == BOUNDARY or edge.tail.box in reached]
        if ways:
            before[index] = max(ways, key=length)
            operators, late = length(before[index])
            reached[index] = (operators + box.weight, late)
        elif not level.inputs:
            reached[index] = (box.weight, 0)
    if level.outputs:
        ends = [edge for edge in into[BOUNDARY] if edge.tail.box == BOUNDARY or edge.tail.box in reached]
        step = max(ends, key=length, default=None)
    else:
        step = before.get(max(reached, key=reached.__getitem__, default=BOUNDARY))
    path = []
    while step:
        path.append(step)
        step = before.get(step.tail.box) if step.tail.box != BOUNDARY else None
    return tuple(reversed(path))


def _aligned(level: Level, edge: Edge) -> bool:
    """Whether an edge meets the main ports of the open boxes at its ends, so that it can run on straight inside."""
    for port, of_input in ((edge.tail, False), (edge.head, True)):
        inner = level.boxes[port.box].inner if port.box != BOUNDARY else None
        if inner and port.number != (inner.main_input if of_input else inner.main_output):
            return False
    return True
