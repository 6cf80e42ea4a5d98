"""Draw the operators that run in a helper function as one box, which opens to them.

A module's ``forward`` often calls functions that prepare masks, paste boxes or look up a correlation. In the default
view such a call is one box with the function's name, and equal calls in a loop can be folded like equal modules.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Hashable, Iterator, Sequence

from msgspec import structs

from sphinx_fxgraph.record.model import Body, Node, Value
from sphinx_fxgraph.view.clusters import group, rewired, uses
from sphinx_fxgraph.view.simplified import Shown
from sphinx_fxgraph.view.structural_hash import Likeness

FEWEST = 6
"""A call with fewer operators is drawn in full, ..."""
_FEWEST_WITH_MACS = 20
"""... and so is a smaller one with matrix products: attention is what a reader looks for."""
_SMALL = 4
"""Calls with fewer operators belong to their neighbour."""


def group_functions(shown: Shown) -> Shown:
    """Return the simplified graph with each call of a helper function as one node."""
    bodies, chips = dict(shown.record.bodies), dict(shown.chips)
    known: dict[Hashable, str] = {}
    for name in list(bodies):
        body = bodies[name]
        calls = [call for call in _calls(body) if len(call) < len(body.nodes) - _ends(body)]
        if not calls:
            continue
        record = structs.replace(shown.record, bodies=bodies)
        likeness, used = Likeness(record, loose=False), uses(body)
        nodes: list[Node] = []
        renamed: dict[Value, Value] = {}
        calls_at = {call[0].name: call for call in calls}
        inside = {node.name for call in calls for node in call[1:]}
        for node in body.nodes:
            if node.name in inside:
                continue
            if not (call := calls_at.get(node.name)):
                nodes.append(node)
                continue
            new = f"{name}/{call[0].name}+{len(call)}"
            made, grouped, values = group(record, body, new, [call], used)
            equal = known.setdefault(_signature(made, likeness), new)
            bodies.setdefault(equal, made)
            function = _largest(call)
            nodes.append(
                structs.replace(
                    grouped, body=equal, kind=function, detail=f"{len(call)} operators", target=call[-1].name
                )
            )
            renamed |= values
            chips |= {(equal, each.name): chips[name, each.name] for each in call if (name, each.name) in chips}
        bodies[name] = rewired(body, nodes, renamed)
    return dataclasses.replace(shown, record=structs.replace(shown.record, bodies=bodies), chips=chips)


def _ends(body: Body) -> int:
    return sum(node.op in ("placeholder", "output") for node in body.nodes)


def _signature(body: Body, likeness: Likeness) -> Hashable:
    """Return what two calls of a function have in common if they do the same."""
    number = {node.name: at for at, node in enumerate(body.nodes)}

    def places(values: Sequence[Value]) -> Hashable:
        return tuple((number.get(value.node, -1), value.output) for value in values)

    nodes = tuple((likeness.key(node), places(node.inputs)) for node in body.nodes)
    return hash((nodes, places(body.outputs), tuple(given.tensors for given in body.inputs)))


def _function(node: Node) -> str:
    """Return the helper function that an operator runs in; empty for a module's ``forward``."""
    if node.body or not node.op.startswith("call_"):
        return ""
    function = node.where.rpartition(":")[0].split(".<", 1)[0].rpartition(".")[2]
    return "" if function in ("forward", "__call__", "<module>") else function


def _calls(body: Body) -> Iterator[list[Node]]:
    """Yield the operators of each call of a helper function, and of those that it calls in turn."""
    for is_helper, found in itertools.groupby(body.nodes, key=lambda node: bool(_function(node))):
        if not is_helper:
            continue
        parts = _merged([list(part) for _, part in itertools.groupby(found, key=_function)])
        for part in parts:
            has_macs = any(node.macs for node in part)
            if len(part) >= (_FEWEST_WITH_MACS if has_macs else FEWEST):
                yield part


def _merged(parts: list[list[Node]]) -> list[list[Node]]:
    """Join what runs between two parts of one function with these, and small parts with their neighbour."""
    nested: list[list[Node]] = []
    for part in parts:
        again = next((at for at, before in enumerate(nested) if _function(before[-1]) == _function(part[0])), None)
        if again is None or _gap(nested[again + 1 :]) > max(len(nested[again]), len(part)) * 4:
            nested.append(part)
        else:
            nested[again:] = [list(itertools.chain(*nested[again:], part))]
    joined: list[list[Node]] = []
    for part in nested:
        if joined and min(len(part), len(joined[-1])) < _SMALL:
            joined[-1] = joined[-1] + part
        else:
            joined.append(part)
    return joined


def _gap(parts: Sequence[Sequence[Node]]) -> int:
    return sum(map(len, parts))


def _largest(call: Sequence[Node]) -> str:
    """Return the function that has most of the operators."""
    counts: dict[str, int] = {}
    for node in call:
        counts[_function(node)] = counts.get(_function(node), 0) + 1
    return max(counts, key=counts.__getitem__)
