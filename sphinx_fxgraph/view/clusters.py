"""Group a stretch of nodes into a subgraph of its own: clusters, helper functions, rows."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from msgspec import structs

from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Body, BodyInput, Node, Record, TensorMeta
from sphinx_fxgraph.view.simplify import GROUP, ROWS, Shown


class Likeness:
    """Keys of nodes and bodies: two with one key are alike, wiring apart.

    ``loose`` asks for the same types in the same order only, so that blocks with other channel counts are alike.
    """

    def __init__(self, record: Record, *, loose: bool) -> None:
        self.record = record
        self.loose = loose
        self._bodies: dict[str, Hashable] = {}

    def key(self, node: Node) -> Hashable:
        """Return the key of a node."""
        if node.op in ("placeholder", "output"):
            return (node.op, node.name)
        if self.loose:
            return (node.op, node.kind, node.type, self.body(node.body))
        target = "" if node.op in ("call_module", "get_attr", GROUP) else node.target  # names, not what is called
        shapes = (node.outputs, _shapes(node.parameters), _shapes(node.buffers))
        marks = [mark for mark in node.marks if mark != "dead"]  # what the last step of a loop leaves unused
        return (node.op, node.kind, node.type, target, node.config, node.body, shapes, tuple(marks), node.inplace)

    def body(self, name: str) -> Hashable:
        """Return the key of a body, which keys of calls use if ``loose``."""
        if not name:
            return ""
        if name not in self._bodies:
            nodes = self.record.bodies[name].nodes
            self._bodies[name] = hash(tuple(self.key(node) for node in nodes))
        return self._bodies[name]


def _shapes(metas: Iterable[TensorMeta]) -> Hashable:
    return tuple((meta.shape, meta.dtype) for meta in metas)


MOST_BOXES = 200
"""Graphviz takes long for larger levels, and readers too: they are clustered before either sees them."""
_SMALLEST, _LARGEST = 25, 60
"""Of a stretch."""

Uses = Mapping[str, Sequence[tuple[str, Value]]]
"""Who takes what from a node: the names of the users (empty for the body's own results) and the values."""


def uses(body: Body) -> Uses:
    """Return the uses of every node of a body."""
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
    calls_first = sorted(first, key=lambda node: node.op != "call_module" or not node.body)
    kinds = list(dict.fromkeys(node.kind for node in calls_first))
    kind = " · ".join(kinds[:3]) + (" …" if len(kinds) > 3 else "")
    return made, Node(first[0].name, GROUP, "", kind, body=name, inputs=tuple(inputs)), renamed


def rewired(body: Body, nodes: Sequence[Node], renamed: Mapping[Value, Value]) -> Body:
    """Return the body with these nodes instead of its own, where values have new names."""
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
    """Return a body as stretches, and their bodies. There are about as many stretches as there are nodes in one."""
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
    """Yield where to cut: about every ``size`` nodes, where the fewest values cross. Inputs and output stand alone."""
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
    """Return how many nodes before each place have a result that is used after it."""
    number = {node.name: at for at, node in enumerate(body.nodes)}
    steps = [0] * (len(body.nodes) + 2)
    for node in body.nodes:
        last = max((number.get(user, len(body.nodes)) for user, _ in used.get(node.name, ())), default=0)
        if last > number[node.name]:
            steps[number[node.name] + 1] += 1
            steps[last + 1] -= 1
    return list(itertools.accumulate(steps))


def _most_common(nodes: Sequence[Node]) -> str:
    """Return the most common kinds with their numbers: ``23 add, 9 relu, …``."""
    counts = Counter(node.kind for node in nodes).most_common()
    return ", ".join(f"{count} {kind}" for kind, count in counts[:2]) + (", …" if len(counts) > 2 else "")


FEWEST = 6
"""A call with fewer operators is drawn in full, ..."""
_FEWEST_WITH_MACS = 20
"""... and so is a smaller one with matrix products: attention is what a reader looks for."""
_SMALL = 4
"""Calls with fewer operators belong to their neighbour."""
_FEWEST_IF_WIDE = 3
"""Operators of a call that becomes one box where the picture would be too wide otherwise."""


def group_functions(shown: Shown, *, short: bool = False) -> Shown:
    """Return the simplified graph with each call of a helper function as one node.

    Args:
        shown: the simplified graph.
        short: whether calls of few operators become one node too.
    """
    bodies, chips = dict(shown.record.bodies), dict(shown.chips)
    known: dict[Hashable, str] = {}
    for name in list(bodies):
        body = bodies[name]
        calls = [call for call in _calls(body, short=short) if len(call) < len(body.nodes) - _ends(body)]
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


def _calls(body: Body, *, short: bool) -> Iterator[list[Node]]:
    """Yield the operators of each call of a helper function, and of those that it calls in turn."""
    for is_helper, found in itertools.groupby(body.nodes, key=lambda node: bool(_function(node))):
        if not is_helper:
            continue
        parts = _merged([list(part) for _, part in itertools.groupby(found, key=_function)])
        for part in parts:
            has_macs = any(node.macs for node in part)
            fewest = _FEWEST_IF_WIDE if short else _FEWEST_WITH_MACS if has_macs else FEWEST
            if len(part) >= fewest:
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


MOST_ROWS = 8
"""Longer stretches are cut into boxes of about equal length."""


def join_rows(shown: Shown) -> Shown:
    """Return the simplified graph with each straight stretch of operators as one node.

    The node has the name and the results of the last operator and the inputs of the first; `Shown.rows` has the
    operators it stands for.
    """
    bodies, rows = dict(shown.record.bodies), dict(shown.rows)
    for name, body in bodies.items():
        stretches = list(_row_stretches(name, body, shown))
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


def _row_stretches(name: str, body: Body, shown: Shown) -> Iterator[tuple[Node, ...]]:
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
