"""Fold the blocks of a stage loosely: neighbours of one class that follow each other become one node.

The node opens to its members, so that what differs between them can be seen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Sequence

from msgspec import structs

from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta, Value
from sphinx_fxgraph.view.clusters import group, rewired, uses
from sphinx_fxgraph.view.contents import WRAPPERS, last_name
from sphinx_fxgraph.view.repeats import FEWEST
from sphinx_fxgraph.view.simplified import Run, Shown, Stage


def fold_stages(shown: Shown, *, across_sizes: bool) -> Shown:
    """Return the simplified graph with neighbouring blocks of one class as one node.

    Args:
        shown: the graph, its runs of equal siblings already folded.
        across_sizes: whether blocks whose results have other sizes are folded too; if not, each stage is.
    """
    bodies, runs, stages, chips = dict(shown.record.bodies), dict(shown.runs), dict(shown.stages), dict(shown.chips)
    for name in list(bodies):
        body = bodies[name]
        record = structs.replace(shown.record, bodies=bodies)
        members_of = []
        for members in _stages(record, body, across_sizes=across_sizes):
            counts = [run.count if (run := runs.get((name, member.name))) else 1 for member in members]
            if sum(counts) >= FEWEST and len(members) < _calls(body):
                members_of.append(members)
        used = uses(body) if members_of else {}
        nodes = list(body.nodes)
        renamed: dict[Value, Value] = {}
        for members in members_of:
            inside = f"{name}/{members[0].name}+{len(members)}"
            bodies[inside], node, values = group(record, body, inside, [members], used)
            kind = members[0].kind
            nodes[nodes.index(members[0])] = structs.replace(node, kind=kind, target=members[-1].name)
            nodes = [node for node in nodes if node not in members[1:]]
            renamed |= values
            counts = [run.count if (run := runs.get((name, member.name))) else 1 for member in members]
            last = runs[name, members[-1].name].last if (name, members[-1].name) in runs else members[-1].name
            stages[name, node.name] = Stage(sum(counts), last, _difference(record, members))
            for mapping in (runs, chips):
                _move(mapping, name, inside, members)
        if members_of:
            bodies[name] = rewired(body, nodes, renamed)
    return dataclasses.replace(
        shown, record=structs.replace(shown.record, bodies=bodies), runs=runs, stages=stages, chips=chips
    )


def _move(
    mapping: dict[tuple[str, str], Run] | dict[tuple[str, str], tuple[str, ...]],
    old: str,
    new: str,
    members: Sequence[Node],
) -> None:
    for member in members:
        if (old, member.name) in mapping:
            mapping[new, member.name] = mapping[old, member.name]  # type: ignore[assignment]  # of one mapping


def _calls(body: Body) -> int:
    """Return the number of nodes; a stage that is all of its body needs no node of its own."""
    return sum(node.op != "output" for node in body.nodes)


def _stages(record: Record, body: Body, *, across_sizes: bool) -> Iterator[list[Node]]:
    members: list[Node] = []
    key: Hashable = None
    for node in body.nodes:
        found = _key(record, body, node, across_sizes=across_sizes)
        follows = members and found == key and any(value.node == members[-1].name for value in node.inputs)
        if not follows:
            if len(members) > 1:
                yield members
            members, key = [], found
        if found is not None:
            members.append(node)
    if len(members) > 1:
        yield members


def _key(record: Record, body: Body, node: Node, *, across_sizes: bool) -> Hashable:
    """Return what the blocks of a stage have in common; None for what is no block."""
    if node.op != "call_module" or not node.body or node.kind in WRAPPERS:
        return None
    count = len(record.bodies[node.body].outputs)
    results = tuple(meta for k in range(count) for meta in record.metas(body, Value(node.name, k)))
    return (node.type, () if across_sizes else _shapes(results))


def _shapes(metas: Sequence[TensorMeta]) -> Hashable:
    return tuple((meta.shape, meta.dtype) for meta in metas)


def _difference(record: Record, members: Sequence[Node]) -> str:
    """Say how the first block differs from the others: ``first with downsample``."""
    first, *others = (
        {last_name(node) for node in record.bodies[member.body].nodes if node.op == "call_module"} for member in members
    )
    if any(other != others[0] for other in others) or first == others[0]:
        return ""
    more, less = sorted(first - others[0]), sorted(others[0] - first)
    return f"first with {more[0]}" if more else f"first without {less[0]}"
