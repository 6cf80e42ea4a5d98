"""Fold runs of equal siblings, and the blocks of a stage, into one node each.

Siblings are equal if they are calls of equal bodies or equal operators, and are wired alike: each takes from the one
before what that took from the one before it, and all take the same from elsewhere. A run may have a period:
convolution, norm, activation, and again. What one member gives to anything outside the run keeps it out of the fold,
except for the last, since the drawing would otherwise tell less than the truth.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Sequence

from msgspec import structs

from sphinx_fxgraph.record.arguments import Argument, Name, Value, format_call, map_argument
from sphinx_fxgraph.record.model import Body, Dim, Node, Record, TensorMeta
from sphinx_fxgraph.view.clusters import Likeness, Uses, group, rewired, uses
from sphinx_fxgraph.view.labels import WRAPPERS, last_name
from sphinx_fxgraph.view.simplify import Run, Shown, Stage

FEWEST = 3
"""Shorter runs are not folded."""
LONGEST_PERIOD = 64
LONGEST_PARALLEL = 4
"""Nodes of each of several siblings that stand side by side."""
_SELECTS = ("getitem", "select", "narrow")
"""Operators that pick a step of a sequence: in a loop over time their index counts up."""


def fold(shown: Shown, *, loose: bool = False) -> Shown:
    """Fold every body, also the periods that folding itself makes bodies of."""
    record, runs = shown.record, dict(shown.runs)
    bodies, todo = dict(record.bodies), list(record.bodies)
    likeness = Likeness(record, loose=loose)
    while todo:
        name = todo.pop()
        folder = _Folder(structs.replace(record, bodies=bodies), name, likeness, loose=loose)
        body, made = folder.folded()
        bodies[name] = body
        bodies |= made
        runs |= {(name, node): run for node, run in folder.runs.items()}
        # A period is shorter than the stretch it was found in, so this ends.
        todo += made
    return dataclasses.replace(shown, record=structs.replace(record, bodies=bodies), runs=runs)


class _Folder:
    def __init__(self, record: Record, name: str, likeness: Likeness, *, loose: bool) -> None:
        self.record, self.name, self.body, self.loose = record, name, record.bodies[name], loose
        self.nodes = self.body.nodes
        self.index = {node.name: number for number, node in enumerate(self.nodes)}
        numbers: dict[Hashable, int] = {}
        self.keys = [numbers.setdefault(likeness.key(node), len(numbers)) for node in self.nodes]
        self.used = uses(self.body)
        """By name of a node: who takes its results."""
        self.users = [[self.index[user] for user, _ in self.used.get(node.name, ()) if user] for node in self.nodes]
        """For each node the nodes of the body that take its results."""
        self.sources = [[(self.index.get(value.node, -1), value) for value in node.inputs] for node in self.nodes]
        """For each node the nodes that its inputs come from, -1 for the inputs of the body."""
        self.returned = {value.node for value in self.body.outputs}
        self.runs: dict[str, Run] = {}
        self.constants: dict[int, str] = {}
        """The arguments of each operator without the values in them."""

    def folded(self) -> tuple[Body, dict[str, Body]]:
        """Return the body with its runs folded, and the bodies of their periods."""
        nodes: list[Node] = []
        made: dict[str, Body] = {}
        renamed: dict[Value, Value] = {}
        at = 0
        while at < len(self.nodes):
            period, count = self._run(at)
            first = self.nodes[at]
            if count < FEWEST:
                nodes.append(first)
                at += 1
                continue
            members = [self.nodes[at + k * period : at + (k + 1) * period] for k in range(count)]
            members[0] = tuple(map(_alive, members[0], zip(*members, strict=True)))
            if period == 1:
                node = members[0][0]
                for member in members[1:]:
                    outputs = len(self.record.bodies[first.body].outputs) if first.body else 1
                    renamed |= {Value(member[0].name, k): Value(first.name, k) for k in range(outputs)}
            else:
                name = f"{self.name}/{first.name}+{period}"
                made[name], node, values = group(self.record, self.body, name, members, self.used)
                renamed |= values
            nodes.append(node)
            results = [self._results(member[-1]) for member in members] if self.loose else []
            names = tuple(each.name for member in members for each in member)
            weights = _weights(members)
            carried = self._carried(at, period) if weights == "same" else ()
            self.runs[node.name] = Run(count, members[-1][0].name, weights, _spread(results), names, carried)
            at += period * count
        return (rewired(self.body, nodes, renamed) if self.runs else self.body), made

    def _results(self, node: Node) -> tuple[TensorMeta, ...]:
        outputs = len(self.record.bodies[node.body].outputs) if node.body else 1
        return tuple(meta for k in range(outputs) for meta in self.record.metas(self.body, Value(node.name, k)))

    def _run(self, at: int) -> tuple[int, int]:
        """Return period and count of the run at ``at`` that covers most, of two the one with the shorter period."""
        best = (1, 1)
        for period in range(1, min(LONGEST_PERIOD, (len(self.keys) - at) // FEWEST) + 1):
            if self.keys[at] != self.keys[at + period] or (best[1] > 1 and not period % best[0]):
                continue
            keys = self.keys[at : at + period]
            # Two comparisons are cheap, and leave few places whose wiring is worth a look.
            if any(keys != self.keys[at + k * period : at + (k + 1) * period] for k in range(1, FEWEST)):
                continue
            count = self._count(at, period, keys)
            if count >= FEWEST and count * period > best[0] * best[1]:
                best = (period, count)
        return best

    def _count(self, at: int, period: int, keys: Sequence[int]) -> int:
        if not (self.loose or self._starts(at, period)):
            return 1
        count = 2
        while self.keys[at + count * period : at + (count + 1) * period] == keys:
            if not (self.loose or self._is_wired_alike(at + period, at + count * period, period)):
                break
            count += 1
        chained = not self.loose and any(self._carried(at, period))
        while count >= FEWEST and not (self.loose or self._closed(at, period, count, chained=chained)):
            count -= 1
        return count

    def _is_wired_alike(self, one: int, other: int, period: int) -> bool:
        """Return whether two members, neither the first, take alike from themselves and from the member before.

        What they take from elsewhere has to be the same.

        Args:
            one: the first node of a member.
            other: the first node of the other.
            period: how many nodes a member has.
        """
        if not self._take_equally_many(one, other, period):
            return False
        for number in range(period):
            for (where, value), (where2, value2) in self._pairs(one + number, other + number):
                if where >= one - period or where2 >= other - period:
                    if where - one != where2 - other or value.output != value2.output:
                        return False
                elif value != value2:
                    return False
            if self._constants(one + number) != self._constants(other + number):
                return False
        return True

    def _pairs(self, one: int, other: int) -> Iterator[tuple[tuple[int, Value], tuple[int, Value]]]:
        """Return the inputs of two nodes that take equally many side by side."""
        return zip(self.sources[one], self.sources[other], strict=True)

    def _take_equally_many(self, one: int, other: int, period: int) -> bool:
        """Return whether each node of a member has as many inputs as that of the other; equal states are one input."""
        pairs = zip(self.sources[one : one + period], self.sources[other : other + period], strict=True)
        return all(len(first) == len(second) for first, second in pairs)

    def _constants(self, number: int) -> str:
        """Return the arguments of an operator without the values in them; empty for a module."""
        if number not in self.constants:
            node = self.nodes[number]
            is_call = not node.body and node.op.startswith("call_")
            self.constants[number] = _constants(node) if is_call else ""
        return self.constants[number]

    def _carried(self, at: int, period: int) -> tuple[str, ...]:
        """Return the names of what the second member of a run takes from the first."""
        second = at + period
        taken = (where for number in range(second, second + period) for where, _ in self.sources[number])
        return tuple(dict.fromkeys(self.nodes[where].name for where in taken if at <= where < second))

    def _starts(self, at: int, period: int) -> bool:
        """Return whether the first member is wired as the second.

        What the second takes from the first, the first has to take from one place elsewhere.
        """
        second = at + period
        if not self._take_equally_many(at, second, period):
            return False
        taken: dict[tuple[int, int], Value] = {}
        for number in range(period):
            for (where, value), (where2, value2) in self._pairs(at + number, second + number):
                if where2 >= second:
                    if where - at != where2 - second or value.output != value2.output:
                        return False
                elif where >= at:
                    return False
                elif where2 >= at:
                    if taken.setdefault((where2, value2.output), value) != value:
                        return False
                elif value != value2:
                    return False
            if self._constants(at + number) != self._constants(second + number):
                return False
        # Side by side, only modules fold: three projections of one tensor are three things with names of their own.
        return bool(taken) or (period == 1 and bool(self.nodes[at].body))

    def _closed(self, at: int, period: int, count: int, *, chained: bool) -> bool:
        """Return whether only results and the run itself take from members other than the last."""
        end = at + count * period
        last = end - period if chained else end
        if not chained:
            # Side by side they all go to the same place.
            alike = all(users == self.users[at] for users in self.users[at:end])
            return alike and not any(node.name in self.returned for node in self.nodes[at:end])
        return all(
            at <= user < end or self.nodes[user].op == "output" for users in self.users[at:last] for user in users
        )


def fold_parallel(shown: Shown, *, calls: bool, pairs: bool = False) -> Shown:
    """Return the simplified graph with alike siblings that stand side by side as one node.

    They take from one node, each perhaps another of its results, and go to one node; their sizes may differ.

    Args:
        shown: the simplified graph.
        calls: whether siblings that hold calls are folded; if not, only operators that select one of several results
            are.
        pairs: whether two siblings are folded too.
    """
    fewest = 2 if pairs else FEWEST
    bodies, runs = dict(shown.record.bodies), dict(shown.runs)
    for name, body in shown.record.bodies.items():
        record = structs.replace(shown.record, bodies=bodies)
        used = uses(body)
        nodes: list[Node] = []
        renamed: dict[Value, Value] = {}
        at = 0
        while at < len(body.nodes):
            members = _parallel(body, used, at, calls=calls, fewest=fewest)
            if len(members) < fewest or any((name, node.name) in runs for member in members for node in member):
                nodes.append(body.nodes[at])
                at += 1
                continue
            inside = f"{name}/{members[0][0].name}+{len(members[0])}"
            made, node, values = group(record, body, inside, members, used)
            if len(members[0]) == 1:
                node = members[0][0]
            else:
                bodies[inside] = made
            results = [
                tuple(
                    meta
                    for value in dict.fromkeys(value for _, value in used[member[-1].name])
                    for meta in record.metas(body, value)
                )
                for member in members
            ]
            names = tuple(each.name for member in members for each in member)
            runs[name, node.name] = Run(len(members), members[-1][0].name, _weights(members), _spread(results), names)
            renamed |= values
            nodes.append(node)
            at += len(names)
        if renamed:
            bodies[name] = rewired(body, nodes, renamed)
    return dataclasses.replace(shown, record=structs.replace(shown.record, bodies=bodies), runs=runs)


def _parallel(body: Body, used: Uses, at: int, *, calls: bool, fewest: int) -> list[tuple[Node, ...]]:
    """Return the siblings from a place on that `fold_parallel` folds, with the shortest period that has enough."""
    nodes = body.nodes
    for period in range(1, LONGEST_PARALLEL + 1 if calls else 2):
        first = nodes[at : at + period]
        source, target = _ends(first, used)
        holds_call = any(node.body for node in first)
        if source is None or target is None or not (holds_call if calls else first[0].kind in _SELECTS):
            continue
        members = [first]
        while True:
            start = at + len(members) * period
            member = nodes[start : start + period]
            if [_class(node) for node in member] != [_class(node) for node in first]:
                break
            if _ends(member, used) != (source, target):
                break
            members.append(member)
        if len(members) >= fewest:
            return members
    return []


def _ends(member: Sequence[Node], used: Uses) -> tuple[str | None, str | None]:
    """Return the one node that a sibling takes from, and the one that takes from it; None for several.

    A sibling may take from no node.
    """
    own = {node.name for node in member}
    sources = {value.node for node in member for value in node.inputs} - own
    targets = {user for node in member for user, _ in used.get(node.name, ())} - own
    inner = {user for node in member[:-1] for user, _ in used.get(node.name, ())}
    source = next(iter(sources), "") if len(sources) < 2 else None
    target = targets.pop() if len(targets) == 1 and inner <= own else None
    return source, target or None


def _class(node: Node) -> Hashable:
    return node.op, node.kind, node.type


def _spread(results: Sequence[tuple[TensorMeta, ...]]) -> tuple[TensorMeta, ...]:
    """Return the results of a loose run as one: sizes that differ are a range, ``64…512``."""
    if len(set(results)) < 2 or len({(len(metas), *(len(meta.shape) for meta in metas)) for metas in results}) > 1:
        return ()

    def dim(sizes: tuple[Dim, ...]) -> Dim:
        numbers = [size for size in sizes if isinstance(size, int)]
        return sizes[0] if len(set(sizes)) == 1 else f"{min(numbers)}…{max(numbers)}" if numbers else "…"

    return tuple(
        structs.replace(same[0], shape=tuple(dim(sizes) for sizes in zip(*(meta.shape for meta in same), strict=True)))
        for same in zip(*results, strict=True)
    )


def _alive(first: Node, alike: Sequence[Node]) -> Node:
    """Return a node that is drawn for others, dead only if all of them are."""
    if all("dead" in node.marks for node in alike):
        return first
    return structs.replace(first, marks=tuple(mark for mark in first.marks if mark != "dead"))


def _constants(node: Node) -> str:
    """Return the arguments without the values in them, and of an operator that picks a step without the step too."""
    step = node.kind in _SELECTS

    def constant(argument: Argument) -> Argument:
        number = isinstance(argument, int) and not isinstance(argument, bool)
        return Name("#") if isinstance(argument, Value) or (step and number) else argument

    arguments = (map_argument(argument, constant) for argument in node.args)
    keywords = {key: map_argument(argument, constant) for key, argument in node.kwargs.items()}
    return format_call(arguments, keywords, lambda value: value.node)


def _weights(members: Sequence[Sequence[Node]]) -> str:
    targets = [tuple(node.target for node in member if node.op == "call_module") for member in members]
    if not targets[0] or not any(node.parameters or node.body for node in members[0]):
        return ""
    return "same" if len(set(targets)) == 1 else "own"


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
    return (node.type, () if across_sizes else _result_shapes(results))


def _result_shapes(metas: Sequence[TensorMeta]) -> Hashable:
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
