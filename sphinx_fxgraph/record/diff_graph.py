"""Merge two architectures into one graph, with marks on the nodes that differ.

What comes out is a record, so that whatever draws a record draws a difference too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from sphinx_fxgraph.record.arguments import Value, values_in
from sphinx_fxgraph.record.diff import Bodies, Comparison, Pair, inside, names_of_gone
from sphinx_fxgraph.record.model import Body, BodyInput, Node, Record


def merge(before: Record, after: Record) -> Record:
    """One record of both; what differs bears ``added``, ``removed`` or ``changed`` among its marks.

    A module call with a difference anywhere inside counts as changed.
    """
    if not before.root or not after.root:
        return after if after.root else before
    merger = _Merger(Comparison(before, after))
    root = merger.merge((before.root, after.root)).name
    return replace(after, spec={}, root=root, bodies=merger.bodies, sources=(), distributions={}, made_by={})


@dataclass(frozen=True)
class _Merged:
    """A merged body, and where the inputs and outputs of the old one are in it, by number."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class _Merger:
    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.bodies: dict[str, Body] = {}
        self._done: dict[Bodies, _Merged] = {}
        self._copies: dict[tuple[int, str], str] = {}

    def merge(self, bodies: Bodies) -> _Merged:
        """The body of two that stand in the same place."""
        if bodies not in self._done:
            old, new = self.comparison.before.bodies[bodies[0]], self.comparison.after.bodies[bodies[1]]
            inputs, input_numbers = _inputs(old, new)
            nodes = _Nodes(self, bodies, input_numbers)
            lost = [nodes.value(value) for value in old.outputs[len(new.outputs) :]]
            self._done[bodies] = _Merged(
                self._keep(bodies[1], Body(new.type, inputs, tuple(nodes.merge()), (*new.outputs, *lost))),
                input_numbers,
                tuple(range(len(old.outputs))),
            )
        return self._done[bodies]

    def copy(self, record: Record, name: str) -> str:
        """A body that only one of the models has."""
        key = id(record), name
        if key not in self._copies:
            body = record.bodies[name]
            nodes = (replace(node, body=self.copy(record, node.body)) if node.body else node for node in body.nodes)
            self._copies[key] = self._keep(name, replace(body, nodes=tuple(nodes)))
        return self._copies[key]

    def _keep(self, name: str, body: Body) -> str:
        while name in self.bodies:
            name += "′"
        self.bodies[name] = body
        return name


class _Nodes:
    """The nodes of a merged body. They are in the new model's names; what is gone has a name of its own."""

    def __init__(self, merger: _Merger, bodies: Bodies, inputs: tuple[int, ...]) -> None:
        self.merger, self.bodies, self.inputs = merger, bodies, inputs
        self.comparison = merger.comparison
        self.pairs = self.comparison.alignment.pairs(*bodies)
        gone = names_of_gone(self.pairs)
        self.gone = set(gone.values())
        self.names = gone | {pair.before.name: pair.after.name for pair in self.pairs if pair.before and pair.after}

    def value(self, value: Value) -> Value:
        """A value of the old body."""
        return Value(self.names[value.node], value.output) if value.node else Value("", self.inputs[value.output])

    def merge(self) -> Iterator[Node]:
        """All nodes, in an order that is right for both models."""
        for pair in self.pairs:
            old, new = pair
            if new is None:
                assert old is not None, "a node of one model at least"
                renamed = {
                    value: self.value(value) for value in (*old.inputs, *values_in(old.args, old.kwargs.values()))
                }
                yield self._alone(replace(old.rewired(renamed), name=self.names[old.name]), "removed")
            elif old is None:
                yield self._alone(new, "added")
            elif inner := inside(pair):
                changed = self.comparison.change(self.bodies, pair) or self.comparison.differ(inner)
                body = self.merger.merge(inner)
                count = len(self.merger.bodies[body.name].inputs)
                given = {number: self.value(value) for number, value in zip(body.inputs, old.inputs, strict=True)}
                inputs = (*new.inputs, *(given[number] for number in range(len(new.inputs), count)))
                yield replace(_marked(new, "changed") if changed else new, body=body.name, inputs=inputs)
            else:
                yield self._changed(old, new)

    def _alone(self, node: Node, mark: str) -> Node:
        record = self.comparison.after if mark == "added" else self.comparison.before
        return replace(_marked(node, mark), body=self.merger.copy(record, node.body) if node.body else "")

    def _changed(self, old: Node, new: Node) -> Node:
        # What is gone would hang in the air if nothing took its result.
        lost = [value for value in map(self.value, old.inputs) if value.node in self.gone and not new.body]
        body = self.merger.copy(self.comparison.after, new.body) if new.body else ""
        node = replace(new, body=body, inputs=tuple(dict.fromkeys((*new.inputs, *lost))))
        if self.comparison.change(self.bodies, Pair(old, new)) is None:
            return node
        detail = new.detail
        if old.kind != new.kind:
            detail = f"was {old.kind}"
        elif old.detail != new.detail:
            detail = f"{old.detail or 'none'} → {new.detail or 'none'}"
        return replace(_marked(node, "changed"), detail=detail)


def _inputs(old: Body, new: Body) -> tuple[tuple[BodyInput, ...], tuple[int, ...]]:
    """The inputs of both, those of the new body first, and the number of each of the old body's among them."""
    names = [given.name for given in new.inputs]
    free = [number for number, name in enumerate(names) if name not in {given.name for given in old.inputs}]
    inputs, numbers = list(new.inputs), []
    for given in old.inputs:
        if given.name in names:
            numbers.append(names.index(given.name))
        elif free:  # renamed
            numbers.append(free.pop(0))
        else:
            numbers.append(len(inputs))
            inputs.append(given)
    return tuple(inputs), tuple(numbers)


def _marked(node: Node, mark: str) -> Node:
    return replace(node, marks=(*node.marks, mark))
