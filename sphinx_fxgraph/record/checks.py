"""Checks of a record that was read from a file, which anyone may have written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sphinx_fxgraph.record.arguments import Value, values_in
from sphinx_fxgraph.record.header import RecordError

if TYPE_CHECKING:
    from sphinx_fxgraph.record.model import Body, Record

_MOST_OPERATORS = 10_000_000
"""More than any model has: a hostile file of nested bodies must not keep a reader busy for ever."""
_DEEPEST = 200
"""Likewise: readers go through the levels by recursion."""


def check_references(record: Record) -> None:
    """See that all values and bodies that are named are there, and that bodies do not nest for ever.

    Raises:
        ValueError: something leads nowhere, in a circle or on and on.
        RecursionError: the bodies nest deeper still.
    """
    if record.root and record.root not in record.bodies:
        raise ValueError(f"no body {record.root!r}")
    sizes: dict[str, tuple[int, int]] = {}
    for name in record.bodies:
        _size(name, record.bodies, sizes)


def check_calls(record: Record) -> None:
    """Check that each call gives a body as many values as it has inputs, and that the root has none.

    Every record of a capture satisfies this, and code that follows calls relies on it.

    Raises:
        RecordError: a call does not fit.
    """
    if record.root and record.bodies[record.root].inputs:
        raise RecordError(f"{record.root!r} takes values, and nothing calls it")
    for name, body in record.bodies.items():
        for node in body.nodes:
            if node.body and len(node.inputs) != len(record.bodies[node.body].inputs):
                raise RecordError(f"{name}: {node.name!r} gives {node.body!r} more or fewer values than it takes")


def _size(name: str, bodies: Mapping[str, Body], sizes: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """Return the number of operators in one run of a body and its levels; check the body on the way."""
    if name in sizes:
        if not sizes[name][0]:
            raise ValueError(f"body {name!r} contains itself")
        return sizes[name]
    sizes[name] = 0, 0
    body = bodies[name]
    size, depth = 1, 1
    known = {"": len(body.inputs)}
    for node in body.nodes:
        _check_values(name, node.inputs, known)
        _check_values(name, values_in(node.args, node.kwargs.values()), known)
        if node.name in known:
            raise ValueError(f"{name}: two nodes are called {node.name!r}")
        if node.body and node.body not in bodies:
            raise ValueError(f"{name}: no body {node.body!r}")
        inner_size, inner_depth = _size(node.body, bodies, sizes) if node.body else (1, 0)
        size, depth = size + inner_size, max(depth, inner_depth + 1)
        known[node.name] = len(bodies[node.body].outputs) if node.body else 1
    _check_values(name, body.outputs, known)
    if size > _MOST_OPERATORS or depth > _DEEPEST:
        raise ValueError(f"body {name!r} runs more than {_MOST_OPERATORS:,} operators or {_DEEPEST} levels")
    sizes[name] = size, depth
    return size, depth


def _check_values(name: str, values: tuple[Value, ...], known: Mapping[str, int]) -> None:
    for value in values:
        if not 0 <= value.output < known.get(value.node, 0):
            raise ValueError(f"{name}: no such value {(value.node, value.output)!r}")
