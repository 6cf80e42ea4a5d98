"""A record against the ground facts: what is in one and not in the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from facts import Facts, ModuleCall, Tensors, paths_of

from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta, join

if TYPE_CHECKING:
    from torch import nn


def differences(record: Record, facts: Facts, model: nn.Module) -> list[str]:
    """One sentence for each kind of fact that the record tells otherwise; empty where it is right."""
    drawn = list(_module_calls(record, model))
    leaves = {path for path, _, node in drawn if not node.body}
    seen = list(_outside(facts.call, leaves))
    idle = {(call.path, call.type) for call in seen if not call.outputs and not call.calls}  # such as Identity of None
    return [
        *_counts(
            Counter((path, name) for path, name, _ in drawn if (path, name) not in idle),
            Counter((call.path, call.type) for call in seen if (call.path, call.type) not in idle),
        ),
        *_leaf_outputs(drawn, seen),
        *_outputs(record, facts),
        *_parameters(record, facts),
        *_unreached(record),
    ]


# -- module calls


def _module_calls(record: Record, model: nn.Module) -> Iterator[tuple[str, str, Node]]:
    """The module calls of a record as (path, class, node), by the first path that the module is registered at."""
    paths, modules = paths_of(model), dict(model.named_modules(remove_duplicate=False))

    def inside(body: Body, owner: str) -> Iterator[tuple[str, str, Node]]:
        for node in body.nodes:
            if node.op != "call_module":
                continue
            path = node.target[1:] if node.target.startswith("/") else join(owner, node.target).removesuffix(".")
            name = node.type.rpartition(".")[2]
            module = modules.get(path)
            yield (paths[id(module)] if module is not None else f"?{name}"), name, node
            if node.body:
                yield from inside(record.bodies[node.body], path)

    yield from inside(record.bodies[record.root], "")


def _outside(call: ModuleCall, leaves: set[str]) -> Iterator[ModuleCall]:
    """The calls that a graph shows: all below the model's own, without the inside of what is drawn as one operator."""
    if "" in leaves:
        yield call
        return
    for inner in call.calls:
        yield inner
        if inner.path not in leaves:
            yield from _outside(inner, leaves)


def _counts(drawn: Counter[tuple[str, str]], seen: Counter[tuple[str, str]]) -> Iterator[str]:
    for word, lost in (("calls not drawn", seen - drawn), ("calls drawn that did not run", drawn - seen)):
        if lost:
            (path, name), _ = next(iter(lost.items()))
            yield f"{lost.total()} {word}, first {path or 'the model'} ({name})"


def _leaf_outputs(drawn: list[tuple[str, str, Node]], seen: list[ModuleCall]) -> Iterator[str]:
    """The results of modules that are drawn as one operator."""
    told: dict[str, list[Tensors]] = defaultdict(list)
    real: dict[str, list[Tensors]] = defaultdict(list)
    for path, _, node in drawn:
        if not node.body:
            told[path].append(tuple(map(_written, node.outputs)))
    for call in seen:
        if call.path in told:
            real[call.path].append(call.outputs)
    wrong = [path for path, results in told.items() if len(results) == len(real[path]) and results != real[path]]
    if wrong:
        path = wrong[0]
        which = next(index for index, result in enumerate(told[path]) if result != real[path][index])
        yield f"{len(wrong)} modules' results differ, first {path}: {told[path][which]} is {real[path][which]}"


# -- outputs


def _outputs(record: Record, facts: Facts) -> Iterator[str]:
    last = record.bodies[record.root].nodes[-1]
    told = tuple(map(_written, last.outputs)) if last.op == "output" else ()
    if told != facts.outputs:
        yield f"outputs differ: {len(told)} told, {len(facts.outputs)} returned, {_first_other(told, facts.outputs)}"


def _first_other(told: Tensors, real: Tensors) -> str:
    pairs = ((one, other) for one, other in zip(told, real, strict=False) if one != other)
    one, other = next(pairs, ("", ""))
    return f"first {one} is {other}" if one else "the rest equal"


def _written(meta: TensorMeta) -> str:
    return f"{meta.dtype}[{', '.join(map(str, meta.shape))}]"


def _parameters(record: Record, facts: Facts) -> Iterator[str]:
    if record.totals.parameters != facts.parameters:
        yield f"{record.totals.parameters} parameters told, {facts.parameters} there"


# -- edges


_LOOSE, _MADE, _REACHED = range(3)
_FACTORIES = frozenset({"arange", "empty", "eye", "full", "linspace", "ones", "rand", "randn", "tensor", "zeros"})
"""Operators that make a tensor of nothing. A link that was lost ends at a constant instead, which is no weight."""


def _unreached(record: Record) -> Iterator[str]:
    """The outputs of the model that come neither from an input, by a path along the edges, nor from what it has itself.

    A model may make a tensor of nothing, as the width of a window in a cache, or of its weights alone, as the places
    that a detector's queries start at.
    """
    memo: dict[tuple[str, tuple[int, ...]], tuple[int, ...]] = {}
    last = record.bodies[record.root].nodes[-1]

    def reached(name: str, given: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """For each node of a body, where each of its outputs comes from."""
        known = {"": given}
        for node in record.bodies[name].nodes:
            arriving = tuple(known[value.node][value.output] for value in node.inputs)
            known[node.name] = leaving(node.body, arriving) if node.body else (_source(node, arriving),)
        return known

    def leaving(name: str, given: tuple[int, ...]) -> tuple[int, ...]:
        if (name, given) not in memo:
            known = reached(name, given)
            memo[name, given] = tuple(known[value.node][value.output] for value in record.bodies[name].outputs)
        return memo[name, given]

    known = reached(record.root, ())
    loose = [value.node for value in last.inputs if known[value.node][value.output] == _LOOSE]
    if loose:
        yield f"{len(loose)} outputs not reached from an input, first {loose[0]}"
    elif last.op == "output" and last.outputs and not last.inputs:
        yield "no edge leads to the output"


def _source(node: Node, arriving: tuple[int, ...]) -> int:
    """Where the result of an operator comes from."""
    if node.op == "placeholder" or _REACHED in arriving:
        return _REACHED
    is_made = node.kind in (*_FACTORIES, "parameter", "buffer") if not arriving else _LOOSE not in arriving
    return _MADE if is_made else _LOOSE
