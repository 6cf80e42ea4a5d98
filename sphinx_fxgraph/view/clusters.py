"""A stretch of a body as a body of its own: what folds and clusters are made of."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs

from sphinx_fxgraph.record.model import Body, BodyInput, Node, Record, Value
from sphinx_fxgraph.view.simplified import GROUP, Shown

MOST_BOXES = 200
"""Graphviz takes long for larger levels, and readers too: they are clustered before either sees them."""
_SMALLEST, _LARGEST = 25, 60
"""Of a stretch."""

Uses = Mapping[str, Sequence[tuple[str, Value]]]
"""Who takes what from a node: the names of the users (empty for the body's own results) and the values."""


def uses(body: Body) -> Uses:
    """The uses of every node of a body."""
    found: dict[str, list[tuple[str, Value]]] = defaultdict(list)
    for node in body.nodes:
        for value in node.inputs:
            found[value.node].append((node.name, value))
    for value in body.outputs:
        found[value.node].append(("", value))
    return found


def group(
    record: Record, body: Body, name: str, members: Sequence[Sequence[Node]], used: Uses
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
        outer = [value for value in node.inputs if value.node not in own]
        nodes.append(node.rewired({value: Value("", inputs.setdefault(value, len(inputs))) for value in outer}))
    home = {node.name: number for number, member in enumerate(members) for node in member}
    given: dict[Value, int] = {}
    renamed: dict[Value, Value] = {}
    for offset, alike in enumerate(zip(*members, strict=True)):
        for node in alike:
            for user, value in used.get(node.name, ()):
                if home.get(user) != home[node.name]:
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
    return structs.replace(
        body,
        nodes=tuple(node.rewired(renamed) for node in nodes),
        outputs=tuple(renamed.get(value, value) for value in body.outputs),
    )


def cluster(shown: Shown) -> Shown:
    """Cut bodies with more than `MOST_BOXES` nodes into stretches, and these again, until every level is small."""
    bodies, runs, chips, rows = dict(shown.record.bodies), dict(shown.runs), dict(shown.chips), dict(shown.rows)
    todo = list(bodies)
    while todo:
        name = todo.pop()
        record = structs.replace(shown.record, bodies=bodies)
        if len(bodies[name].nodes) > MOST_BOXES:
            cut, made = _cut(record, name)
            if len(cut.nodes) >= len(bodies[name].nodes):
                continue  # inputs and outputs alone: nothing in it can be put together
            bodies[name] = cut
            bodies |= made
            for inside, body in made.items():  # what is known of a node goes with it
                names = [node.name for node in body.nodes]
                runs |= {(inside, node): runs[name, node] for node in names if (name, node) in runs}
                rows |= {(inside, node): rows[name, node] for node in names if (name, node) in rows}
                # Of a node of rows, each row has its own.
                names += [row.name for node in names for row in rows.get((name, node), ())]
                chips |= {(inside, node): chips[name, node] for node in names if (name, node) in chips}
            todo += [name, *made]
    record = structs.replace(shown.record, bodies=bodies)
    return dataclasses.replace(shown, record=record, runs=runs, chips=chips, rows=rows)


def _cut(record: Record, name: str) -> tuple[Body, dict[str, Body]]:
    """A body as stretches, and their bodies. There are about as many stretches as there are nodes in one."""
    body, used = record.bodies[name], uses(record.bodies[name])
    size = min(_LARGEST, max(_SMALLEST, round(math.sqrt(len(body.nodes)))))
    crossing = _crossing(body, used)
    nodes: list[Node] = []
    made: dict[str, Body] = {}
    renamed: dict[Value, Value] = {}
    for start, end in _stretches(body, size, crossing):
        stretch = body.nodes[start:end]
        if len(stretch) == 1:
            nodes += stretch
            continue
        inside = f"{name}/{stretch[0].name}+{len(stretch)}"
        made[inside], called, values = group(record, body, inside, [stretch], used)
        nodes.append(
            structs.replace(
                called, kind=f"{len(stretch)} operators", detail=_most_common(stretch), target=stretch[-1].name
            )
        )
        renamed |= values
    return rewired(body, nodes, renamed), made


def _stretches(body: Body, size: int, crossing: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where to cut: about every ``size`` nodes, where the fewest values cross. Inputs and output stand alone."""
    alone = [number for number, node in enumerate(body.nodes) if node.op in ("placeholder", "output")]
    for before, end in itertools.pairwise((-1, *alone, len(body.nodes))):
        start = before + 1
        while end - start > 3 * size // 2:
            ways = range(start + size // 2, start + 3 * size // 2)
            cut = min(ways, key=lambda at: (crossing[at], abs(at - start - size)))
            yield start, cut
            start = cut
        if start < end:
            yield start, end
        if end < len(body.nodes):
            yield end, end + 1


def _crossing(body: Body, used: Uses) -> list[int]:
    """How many nodes before each place have a result that is used after it."""
    number = {node.name: at for at, node in enumerate(body.nodes)}
    steps = [0] * (len(body.nodes) + 2)
    for node in body.nodes:
        last = max((number.get(user, len(body.nodes)) for user, _ in used.get(node.name, ())), default=0)
        if last > number[node.name]:
            steps[number[node.name] + 1] += 1
            steps[last + 1] -= 1
    return list(itertools.accumulate(steps))


def _most_common(nodes: Sequence[Node]) -> str:
    """``23 add, 9 relu, …``."""
    counts = Counter(node.kind for node in nodes).most_common()
    return ", ".join(f"{count} {kind}" for kind, count in counts[:2]) + (", …" if len(counts) > 2 else "")
