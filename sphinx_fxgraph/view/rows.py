"""Join straight stretches of operators: each becomes one node, drawn as one box with a row for each operator.

An operator hands its result to the next row alone, and the next takes nothing else. The first row of a box may take
several values.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping

from msgspec import structs

from sphinx_fxgraph.record.model import Body, Node
from sphinx_fxgraph.view.clusters import Uses, uses
from sphinx_fxgraph.view.simplified import ROWS, Shown

MOST_ROWS = 8
"""Longer stretches are cut into boxes of about equal length."""


def join_rows(shown: Shown) -> Shown:
    """Return the simplified graph with each straight stretch of operators as one node.

    The node has the name and the results of the last operator and the inputs of the first; `Shown.rows` has the
    operators it stands for.
    """
    bodies, rows = dict(shown.record.bodies), dict(shown.rows)
    for name, body in bodies.items():
        stretches = list(_stretches(name, body, shown))
        if not stretches:
            continue
        joined = {stretch[-1].name: _joined(stretch) for stretch in stretches}
        inside = {node.name for stretch in stretches for node in stretch[:-1]}
        nodes = tuple(joined.get(node.name, node) for node in body.nodes if node.name not in inside)
        bodies[name] = structs.replace(body, nodes=nodes)
        rows |= {(name, stretch[-1].name): stretch for stretch in stretches}
    return dataclasses.replace(shown, record=structs.replace(shown.record, bodies=bodies), rows=rows)


def _joined(stretch: tuple[Node, ...]) -> Node:
    first, last = stretch[0], stretch[-1]
    kind = " · ".join(node.kind for node in stretch)
    return Node(last.name, ROWS, "", kind, inputs=first.inputs, outputs=last.outputs)


def _stretches(name: str, body: Body, shown: Shown) -> Iterator[tuple[Node, ...]]:
    """Yield the stretches of a body that have at least two operators."""
    following = _following(name, body, shown)
    continued = set(following.values())
    for node in body.nodes:
        if node.name not in following or node.name in continued:
            continue
        stretch = [node]
        while following_name := following.get(stretch[-1].name):
            stretch.append(body.by_name[following_name])
        parts = math.ceil(len(stretch) / MOST_ROWS)
        size = math.ceil(len(stretch) / parts)
        for start in range(0, len(stretch), size):
            part = tuple(stretch[start : start + size])
            if len(part) > 1:
                yield part


def _following(name: str, body: Body, shown: Shown) -> Mapping[str, str]:
    """Map the name of each operator to that of the operator that can stand in the row below it."""
    used: Uses = uses(body)
    found = {}
    for node in body.nodes:
        users = {user for user, _ in used.get(node.name, ())}
        if len(users) != 1 or not _can_be_row(name, node, shown):
            continue
        user = body.by_name.get(next(iter(users)))  # none where the body itself returns the result
        takes_nothing_else = user and all(value.node == node.name for value in user.inputs)
        if user and takes_nothing_else and _can_be_row(name, user, shown):
            found[node.name] = user.name
    return found


def _can_be_row(name: str, node: Node, shown: Shown) -> bool:
    is_operator = node.op.startswith("call_") and not node.body
    return is_operator and bool(node.outputs) and (name, node.name) not in shown.runs
