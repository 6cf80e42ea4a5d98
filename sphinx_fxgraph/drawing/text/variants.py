"""Several models side by side: the stages of each, equal names in one row, as papers print a family of networks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sphinx_fxgraph.drawing.text.rows import format_shapes
from sphinx_fxgraph.record import Body, Node, Record, TensorMeta, Value, join

_MOST_PARTS = 2
"""Kinds that a stage is said to be made of; one of more is called by its own."""


@dataclass(frozen=True)
class Stage:
    """A part of a model that a reader would name: what it is made of and what it gives."""

    name: str
    content: str
    """``BasicBlock ×2``, ``Conv2d 7×7 s2``."""
    shape: str


def stages(record: Record) -> list[Stage]:
    """The stages of a model: what its outermost ``forward`` calls, without what gives no tensor."""
    if not record.root:
        return []
    path, body = _innermost(record)
    found = []
    for node in body.nodes:
        tensors = format_shapes(_results(record, body, node))
        if node.op.startswith("call_") and tensors:
            found.append(Stage(join(path, node.name), _content(record, node), tensors))
    return found


def aligned(models: Sequence[Sequence[Stage]]) -> list[tuple[str, list[Stage | None]]]:
    """A row for each name: the stage of that name in each model, None where it has none.

    The order is that of the first model; what only others have stands where it stands in them.
    """
    order: list[str] = []
    for stages_ in models:
        place = 0
        for stage in stages_:
            if stage.name in order:
                place = max(place, order.index(stage.name) + 1)
            else:
                order.insert(place, stage.name)
                place += 1
    by_name = [{stage.name: stage for stage in stages_} for stages_ in models]
    return [(name, [known.get(name) for known in by_name]) for name in order]


def _innermost(record: Record) -> tuple[str, Body]:
    """The body of the model, or, if all that does is to call one module, of that one."""
    path, body = "", record.bodies[record.root]
    while True:
        inner = [node for node in body.nodes if node.op.startswith("call_")]
        if len(inner) != 1 or not inner[0].body:
            return path, body
        path, body = join(path, inner[0].name), record.bodies[inner[0].body]


def _results(record: Record, body: Body, node: Node) -> tuple[TensorMeta, ...]:
    count = len(record.bodies[node.body].outputs) if node.body else 1
    return tuple(meta for number in range(count) for meta in record.metas(body, Value(node.name, number)))


def _content(record: Record, node: Node) -> str:
    if not node.body:
        return f"{node.kind} {node.detail}".rstrip()
    kinds = [inner.kind for inner in record.bodies[node.body].nodes if inner.op == "call_module"]
    runs = [(kind, len(list(run))) for kind, run in itertools.groupby(kinds)]
    if not runs or len(runs) > _MOST_PARTS or any(inner.op != "call_module" for inner in _calls(record, node)):
        return node.kind
    return ", ".join(f"{kind} ×{count}" if count > 1 else kind for kind, count in runs)


def _calls(record: Record, node: Node) -> list[Node]:
    return [inner for inner in record.bodies[node.body].nodes if inner.op.startswith("call_")]
