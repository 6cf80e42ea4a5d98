"""A stretch of a body as a body of its own: what folds and clusters are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from sphinx_fxgraph.drawing.shown import GROUP, Shown
from sphinx_fxgraph.record import Body, BodyInput, Node, Record, Value

MOST_BOXES = 200
"""Graphviz takes long for larger levels: they are clustered before it sees them."""
_CLUSTER = 40


def group(
    record: Record, body: Body, name: str, members: Sequence[Sequence[Node]]
) -> tuple[Body, Node, dict[Value, Value]]:
    """Make one node of neighbouring nodes: of one stretch, or of a run of alike stretches that is drawn once.

    Returns:
        The body of the first stretch, to be called ``name``; the node that calls it; and what the values that the
        members give to the rest of the body are called now.
    """
    first = members[0]
    own = {node.name for node in first}
    inputs: dict[Value, int] = {}
    nodes = []
    for node in first:
        values = [v if v.node in own else Value("", inputs.setdefault(v, len(inputs))) for v in node.inputs]
        nodes.append(dataclasses.replace(node, inputs=tuple(values)))
    place = {node.name: (member, offset) for member, nodes in enumerate(members) for offset, node in enumerate(nodes)}
    given: dict[Value, int] = {}
    renamed: dict[Value, Value] = {}
    uses = [(node.name, value) for node in body.nodes for value in node.inputs]
    uses += [("", value) for value in body.outputs]
    for user, value in uses:
        if value.node not in place:
            continue
        member, offset = place[value.node]
        if user in place and place[user][0] == member:
            continue
        output = given.setdefault(Value(first[offset].name, value.output), len(given))
        renamed[value] = Value(first[0].name, output)
    made = Body(
        type="",
        inputs=tuple(
            BodyInput(value.node or body.inputs[value.output].name, record.metas(body, value)) for value in inputs
        ),
        nodes=tuple(nodes),
        outputs=tuple(given),
    )
    kinds = list(dict.fromkeys(node.kind for node in first))
    kind = " · ".join(kinds[:3]) + (" …" if len(kinds) > 3 else "")
    return made, Node(first[0].name, GROUP, "", kind, body=name, inputs=tuple(inputs)), renamed


def rewired(body: Body, nodes: Sequence[Node], renamed: Mapping[Value, Value]) -> Body:
    """``body`` with these nodes instead of its own, where values have new names."""

    def inputs(node: Node) -> tuple[Value, ...]:
        values = tuple(renamed.get(value, value) for value in node.inputs)
        # A module call has one input for each of its body's; an operator takes each value once.
        return values if node.body else tuple(dict.fromkeys(values))

    return dataclasses.replace(
        body,
        nodes=tuple(dataclasses.replace(node, inputs=inputs(node)) for node in nodes),
        outputs=tuple(renamed.get(value, value) for value in body.outputs),
    )


def cluster(shown: Shown) -> Shown:
    """Cut bodies with more than `MOST_BOXES` nodes into stretches, and these again, until every level is small."""
    bodies = dict(shown.record.bodies)
    todo = list(bodies)
    while todo:
        name = todo.pop()
        record = dataclasses.replace(shown.record, bodies=bodies)
        if len(bodies[name].nodes) > MOST_BOXES:
            bodies[name], made = _cut(record, name)
            bodies |= made
            todo += [name, *made]
    return dataclasses.replace(shown, record=dataclasses.replace(shown.record, bodies=bodies))


def _cut(record: Record, name: str) -> tuple[Body, dict[str, Body]]:
    body = record.bodies[name]
    ends = ("placeholder", "output")
    nodes: list[Node] = []
    made: dict[str, Body] = {}
    renamed: dict[Value, Value] = {}
    at = 0
    while at < len(body.nodes):
        node = body.nodes[at]
        stretch: list[Node] = []
        while at < len(body.nodes) and body.nodes[at].op not in ends and len(stretch) < _CLUSTER:
            stretch.append(body.nodes[at])
            at += 1
        if not stretch:
            nodes.append(node)
            at += 1
            continue
        inside = f"{name}/{node.name}+{len(stretch)}"
        made[inside], called, values = group(record, body, inside, [stretch])
        nodes.append(dataclasses.replace(called, kind=f"{len(stretch)} operators"))
        renamed |= values
    return rewired(body, nodes, renamed), made
