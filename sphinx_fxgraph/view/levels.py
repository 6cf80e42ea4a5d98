"""What to show: a record becomes levels of boxes and edges, still without coordinates.

A level is a body drawn on its own. A box in it is an operator or a module call; an open module call holds the level of
its own body. Equal bodies give one and the same level, so it is laid out once however often it stands in the model.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta, Value
from sphinx_fxgraph.view import (
    clusters,
    contents,
    dead_ends,
    expansion,
    functions,
    nontensor,
    repeats,
    rows,
    side_inputs,
    stages,
)
from sphinx_fxgraph.view.estimate import Estimator, Size
from sphinx_fxgraph.view.expansion import Key, Trials
from sphinx_fxgraph.view.level import BOUNDARY, Box, Edge, Level, Port
from sphinx_fxgraph.view.main_path import with_spine
from sphinx_fxgraph.view.simplified import GROUP, ROWS, Shown


def root_level(record: Record, look: ViewOptions) -> Level:
    """Return the level of the whole model as ``look`` shows it, with the levels of all open modules in it."""
    return overview(record, look).root


@dataclass(frozen=True)
class Overview:
    """The default view of a model: the simplified graph, and the level of the whole model."""

    shown: Shown
    root: Level

    def closed_levels(self) -> dict[str, Level]:
        """Return the level of every body that the view shows closed, by name; everything in them is closed."""
        builder = _Builder(self.shown)
        todo = list(_closed(self.root))
        found: dict[str, Level] = {}
        while todo:
            name = todo.pop()
            if name not in found:
                found[name] = builder.level(name, (), [0] * len(self.shown.record.bodies[name].inputs))
                todo += _closed(found[name])
        return dict(sorted(found.items()))


def _closed(level: Level) -> Iterator[str]:
    for box in level.boxes:
        if box.inner:
            yield from _closed(box.inner)
        elif box.node.body:
            yield box.node.body


def overview(record: Record, look: ViewOptions) -> Overview:
    """Choose what the default view of a model shows.

    The blocks of a stage are folded; where even that is too high, blocks of one class are, whatever their sizes.
    """
    if look.depth is not None:
        shown = simplified(record, look)
        return Overview(shown, _Builder(shown).root(expansion.asked(shown, look)))
    estimator = Estimator(turned=look.direction == "LR")
    pictures = [_Picture(record, look, estimator, across_sizes=across) for across in _STAGES[look.fold]]
    ways = ((picture, tallest) for tallest in (expansion.HEIGHT, expansion.TALLEST) for picture in pictures)
    picture = next((picture for picture, tallest in ways if expansion.fits(picture.closed, tallest)), pictures[-1])
    trials = Trials(picture.shown, picture.size, picture.asked, picture.builder.body_weight)
    trials.run()
    return Overview(picture.shown, picture.builder.root(trials.opened, trials.examples))


_STAGES: dict[str, tuple[bool | None, ...]] = {"auto": (False, True), "loose": (True,), "off": (None,)}
"""By the option ``fold``: how the blocks of stages are folded, see `simplified`."""


class _Picture:
    """One way to simplify a model, and how large pictures of it are."""

    def __init__(self, record: Record, look: ViewOptions, estimator: Estimator, *, across_sizes: bool | None) -> None:
        self.shown = simplified(record, look, across_sizes=across_sizes)
        self.builder = _Builder(self.shown)
        self.estimator = estimator
        self.asked = expansion.asked(self.shown, look)
        self.closed = self.size(self.asked)

    def size(self, opened: Collection[Key]) -> Size:
        """Return the size of the picture with these calls open."""
        return self.estimator.picture(self.builder.root(opened))


def simplified(record: Record, look: ViewOptions, *, across_sizes: bool | None = None) -> Shown:
    """Return the record as ``look`` shows it.

    Args:
        record: the model.
        look: how it is shown.
        across_sizes: whether blocks that follow each other are folded though their sizes differ; None folds equal
            blocks only.
    """
    shown = dead_ends.prune(Shown(record), look.nontensor)
    shown = nontensor.simplify(shown, look.nontensor)
    if across_sizes is not None:
        shown = functions.group_functions(shown)
    if look.fold != "off":
        shown = repeats.fold(shown, loose=look.fold == "loose")
    if across_sizes is not None:
        shown = stages.fold_stages(shown, across_sizes=across_sizes)
    if look.rows == "auto":
        shown = rows.join_rows(shown)
    return clusters.cluster(shown)


class _Builder:
    """Builds levels; equal levels are one object, also of different pictures of one graph."""

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.record = shown.record
        self.opened: Collection[Key] = ()
        self.examples: Collection[Key] = ()
        self.weights: dict[str, int] = {}
        self.built: dict[tuple[str, tuple[Level | None, ...], tuple[str, ...]], Level] = {}

    def root(self, opened: Collection[Key], examples: Collection[Key] = ()) -> Level:
        """Return the level of the whole model.

        Args:
            opened: the calls that are open.
            examples: those of them whose like are closed.
        """
        self.opened, self.examples = opened, examples
        return self.level(self.record.root, (), ())

    def level(self, name: str, key: Key, ages: Sequence[int]) -> Level:
        """Return the level of body ``name``, called at ``key``.

        ``ages`` tells of each input how late its first caller made it.
        """
        body = self.record.bodies[name]
        order = {node.name: index for index, node in enumerate(body.nodes)}
        inner: list[Level | None] = []
        for node in body.nodes:
            if (*key, node.name) in self.opened:
                made = [order.get(value.node, BOUNDARY) for value in node.inputs]
                inner.append(self.level(node.body, (*key, node.name), made))
            else:
                inner.append(None)
        examples = tuple(node.name for node in body.nodes if (*key, node.name) in self.examples)
        built = (name, tuple(inner), examples)
        if built not in self.built:
            level = self._build(name, inner, order, ages)
            boxes = tuple(
                dataclasses.replace(box, example=True) if box.node.name in examples else box for box in level.boxes
            )
            self.built[built] = dataclasses.replace(level, boxes=boxes) if examples else level
        return self.built[built]

    def _build(self, name: str, inner: Sequence[Level | None], order: Mapping[str, int], ages: Sequence[int]) -> Level:
        body = self.record.bodies[name]
        boxes = tuple(self._box(body, name, node, level) for node, level in zip(body.nodes, inner, strict=True))
        edges = self._edges(body, boxes, order)
        pins, edges = _pins(len(body.inputs), edges)
        level = Level(
            body=name,
            boxes=boxes,
            edges=edges,
            names=tuple(
                ", ".join(body.inputs[k].name for k, pin in enumerate(pins) if pin == p)
                for p in range(max(pins, default=-1) + 1)
            ),
            pins=pins,
            outputs=len(body.outputs),
        )
        late = [max(ages[k] for k, pin in enumerate(pins) if pin == p) for p in range(level.inputs)]
        return side_inputs.rails(side_inputs.chips(with_spine(level, late)))

    def _box(self, body: Body, name: str, node: Node, inner: Level | None) -> Box:
        if node.op == ROWS:
            members = self.shown.rows[name, node.name]
            boxes = tuple(self._box(body, name, member, None) for member in members)
            names = tuple(member.name for member in members)
            return Box(node, node.outputs, weight=len(members), names=names, rows=boxes)
        run = self.shown.runs.get((name, node.name))
        results = (run.tensors if run else ()) or self._results(body, node)
        said = change = ""
        if node.body and inner is None:
            is_wrapper = node.kind in contents.WRAPPERS
            said = (contents.contents if is_wrapper else contents.repeated)(self.shown, node.body)
            change = contents.change_of_call(self.shown, body, node, results)
        return Box(
            node,
            results,
            inner,
            run,
            self.shown.chips.get((name, node.name), ()),
            self._weight(name, node),
            tuple(self._names(name, node)),
            stage=self.shown.stages.get((name, node.name)),
            contents=said,
            change=change,
        )

    def _names(self, name: str, node: Node) -> Iterator[str]:
        """The nodes of the record that a node stands for."""
        if run := self.shown.runs.get((name, node.name)):
            yield from run.names
        elif node.op == ROWS:
            yield from (member.name for member in self.shown.rows[name, node.name])
        elif node.op == GROUP:
            for inner in self.record.bodies[node.body].nodes:
                yield from self._names(node.body, inner)
        else:
            yield node.name

    def _weight(self, name: str, node: Node) -> int:
        if node.op == ROWS:
            return len(self.shown.rows[name, node.name])
        run = self.shown.runs.get((name, node.name))
        return (self.body_weight(node.body) if node.body else 1) * (run.count if run else 1)

    def body_weight(self, name: str) -> int:
        """Return how many operators run in a body."""
        if name not in self.weights:
            self.weights[name] = sum(self._weight(name, inner) for inner in self.record.bodies[name].nodes)
        return self.weights[name]

    def _results(self, body: Body, node: Node) -> tuple[TensorMeta, ...]:
        if not node.body:
            return node.outputs
        count = len(self.record.bodies[node.body].outputs)
        return tuple(meta for k in range(count) for meta in self.record.metas(body, Value(node.name, k)))

    def _edges(self, body: Body, boxes: Sequence[Box], order: Mapping[str, int]) -> tuple[Edge, ...]:
        """One edge for each pair of ends; it is weak if no value on it has a tensor at both ends."""
        values: dict[tuple[Port, Port], list[tuple[Value, bool]]] = defaultdict(list)

        def tail(value: Value) -> Port:
            if not value.node:
                return Port(BOUNDARY, value.output)
            box = order[value.node]
            return Port(box, value.output if boxes[box].inner else 0)

        for index, box in enumerate(boxes):
            takes = box.node.op == "output" or bool(box.tensors)
            for number, value in enumerate(box.node.inputs):
                head = Port(index, box.inner.pins[number] if box.inner else 0)
                values[tail(value), head].append((value, takes))
        for number, value in enumerate(body.outputs):
            values[tail(value), Port(BOUNDARY, number)].append((value, True))
        edges = []
        for (start, end), carried in values.items():
            strong = [value for value, takes in carried if takes and self.record.metas(body, value)]
            edges.append(Edge(start, end, weak=not strong, tensors=self._unsaid(body, boxes, start, strong)))
        return tuple(edges)

    def _unsaid(self, body: Body, boxes: Sequence[Box], tail: Port, values: Sequence[Value]) -> tuple[TensorMeta, ...]:
        """The tensors on an edge, where no box says so: those out of a closed module that has several results."""
        box = None if tail.box == BOUNDARY else boxes[tail.box]
        if box is None or box.inner or not box.node.body or len(box.tensors) < 2:
            return ()
        return tuple(meta for value in values for meta in self.record.metas(body, value))


def _pins(count: int, edges: tuple[Edge, ...]) -> tuple[tuple[int, ...], tuple[Edge, ...]]:
    """Inputs that go to the very same places enter by one pin: all the maps that a dense layer concatenates.

    Returns:
        The pin of each input, and the edges from pins instead of from inputs.
    """
    uses = [frozenset((edge.head, edge.weak) for edge in edges if edge.tail == Port(BOUNDARY, k)) for k in range(count)]
    numbers: dict[object, int] = {}
    pins = tuple(numbers.setdefault(use, len(numbers)) for use in uses)
    renamed = (
        dataclasses.replace(edge, tail=Port(BOUNDARY, pins[edge.tail.number])) if edge.tail.box == BOUNDARY else edge
        for edge in edges
    )
    return pins, tuple(dict.fromkeys(renamed))
