"""Shape arithmetic out of the way: ``size``, ``getattr shape``, ``getitem`` on a size, asserts.

It never carries the model's data, so it must not crowd the picture. A few such operators are shown, dashed; many become
a remark at the operator that uses their result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msgspec import structs

from sphinx_fxgraph.record.model import Body, Node, Value
from sphinx_fxgraph.view.simplified import Shown

MOST_SHOWN = 4
"""``auto`` shows them up to this many in a level."""


def simplify(shown: Shown, mode: str) -> Shown:
    """Take them out of every body as ``mode`` (see `ViewOptions.nontensor`) says."""
    if mode == "show":
        return shown
    record, chips, bodies = shown.record, dict(shown.chips), {}
    for name, body in record.bodies.items():
        removable = _removable(body)
        if mode == "auto" and len(removable) <= MOST_SHOWN:
            removable = {}
        bodies[name] = _without(body, removable)
        for node in body.nodes:
            if mode != "hide" and node.name not in removable and (chip := _chip(node, removable)):
                chips[name, node.name] = (*chips.get((name, node.name), ()), chip)
    return dataclasses.replace(shown, record=structs.replace(record, bodies=bodies), chips=chips)


def _removable(body: Body) -> dict[str, Node]:
    """Operators without a tensor in their result, but for those that a module call or the body's own result needs."""
    found = {
        node.name: node
        for node in body.nodes
        if not node.body and not node.outputs and node.op not in ("placeholder", "output", "get_attr")
    }
    needed = [value for node in body.nodes if node.body for value in node.inputs] + list(body.outputs)
    while needed:
        node = found.pop(needed.pop().node, None)
        needed += node.inputs if node else ()
    return found


def _without(body: Body, removed: Mapping[str, Node]) -> Body:
    if not removed:
        return body
    nodes = tuple(
        structs.replace(node, inputs=tuple(value for value in node.inputs if value.node not in removed))
        for node in body.nodes
        if node.name not in removed
    )
    return structs.replace(body, nodes=nodes)


def _chip(node: Node, removed: Mapping[str, Node]) -> str:
    """What stands at a consumer: what the removed chains to it start with, ``shape`` or ``size``."""
    kinds: dict[str, None] = {}
    todo: list[Value] = [value for value in node.inputs if value.node in removed]
    seen = set(todo)
    while todo:
        source = removed[todo.pop().node]
        more = [value for value in source.inputs if value.node in removed and value not in seen]
        if not any(value.node in removed for value in source.inputs):
            kinds[source.detail if source.kind == "getattr" else source.kind] = None
        seen.update(more)
        todo += more
    names = list(kinds)[::-1]
    return " ".join(names[:2]) + ("…" if len(names) > 2 else "") if seen else ""
