"""Leave out what leads to no result: guards and checks, results that nothing uses, and what only these use."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from msgspec import structs

from sphinx_fxgraph.record.diff import SIGNS
from sphinx_fxgraph.record.model import Body, Node, Record, Value
from sphinx_fxgraph.view.simplified import Shown, times_run

_CHECKS = frozenset(
    {"assert", "assert_async", "check", "bool", "contains", "equal", "float", "index", "int", "item", "numpy", "tolist"}
)
"""Operators whose result, if no operator uses it, was used by Python for a decision."""


def prune(shown: Shown, mode: str) -> Shown:
    """Return the simplified graph without dead ends; ``mode`` ``show`` keeps them, and so does a failed capture.

    An input of a module call that only dead ends inside use is left out with them.
    """
    record = shown.record
    if mode == "show" or record.failure:
        return shown
    bodies: dict[str, Body] = {}
    used: dict[str, tuple[int, ...]] = {}
    removed: dict[str, int] = {}
    for name in _inside_out(record):
        body = _with_inputs(record.bodies[name], used)
        live = _live(body)
        nodes = tuple(node for node in body.nodes if node.name in live)
        removed[name] = len(body.nodes) - len(nodes)
        pruned = structs.replace(body, nodes=nodes)
        used[name] = _used_inputs(record.bodies[name], pruned)
        bodies[name] = _without_inputs(pruned, used[name])
    return dataclasses.replace(
        shown,
        record=structs.replace(record, bodies={name: bodies.get(name, record.bodies[name]) for name in record.bodies}),
        hidden=shown.hidden + (times_run(record, removed) if any(removed.values()) else 0),
    )


def _inside_out(record: Record) -> Iterator[str]:
    """Yield the bodies that are run, each after all that it calls."""
    done: set[str] = set()

    def visit(name: str) -> Iterator[str]:
        if name not in done:
            done.add(name)
            for node in record.bodies[name].nodes:
                if node.body:
                    yield from visit(node.body)
            yield name

    yield from visit(record.root)


def _live(body: Body) -> set[str]:
    """Return the names of the nodes that lead to a result or have another effect."""
    wanted = {value.node for node in body.nodes for value in node.inputs} | {value.node for value in body.outputs}
    live: set[str] = set()
    needed = {value.node for value in body.outputs}
    for node in reversed(body.nodes):
        if node.name in needed or _has_effect(node, is_used=node.name in wanted):
            live.add(node.name)
            needed.update(value.node for value in node.inputs)
    return live


def _has_effect(node: Node, *, is_used: bool) -> bool:
    """Return whether a node is kept though nothing that is kept uses its result."""
    if node.body or node.inplace or node.op in ("placeholder", "output") or {"failed", *SIGNS} & {*node.marks}:
        return True
    # What nothing uses and the capture does not call dead writes somewhere, unless it is a check.
    return not is_used and "dead" not in node.marks and node.kind not in _CHECKS and node.op != "get_attr"


def _with_inputs(body: Body, used: Mapping[str, tuple[int, ...]]) -> Body:
    """Return the body, its calls without the inputs that are not used inside."""
    if all(len(used[node.body]) == len(node.inputs) for node in body.nodes if node.body):
        return body
    nodes = (
        structs.replace(node, inputs=tuple(node.inputs[k] for k in used[node.body])) if node.body else node
        for node in body.nodes
    )
    return structs.replace(body, nodes=tuple(nodes))


def _used_inputs(before: Body, body: Body) -> tuple[int, ...]:
    """Return the numbers of the inputs that remain: all but those that only dead ends used."""
    kept, had = ({v.output for node in each.nodes for v in node.inputs if not v.node} for each in (body, before))
    kept |= {value.output for value in body.outputs if not value.node}
    return tuple(k for k in range(len(body.inputs)) if k in kept or k not in had)


def _without_inputs(body: Body, used: tuple[int, ...]) -> Body:
    if len(used) == len(body.inputs):
        return body
    # An argument of a call may still name an input that is gone.
    new = {Value("", k): Value(given.name) for k, given in enumerate(body.inputs)}
    new |= {Value("", k): Value("", number) for number, k in enumerate(used)}
    return structs.replace(
        body,
        inputs=tuple(body.inputs[k] for k in used),
        nodes=tuple(node.rewired(new) for node in body.nodes),
        outputs=tuple(new.get(value, value) for value in body.outputs),
    )
