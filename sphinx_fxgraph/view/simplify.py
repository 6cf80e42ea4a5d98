"""Simplify a record for a figure: hide shape arithmetic, dead ends and guards; keep what view options ask for."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from msgspec import structs

from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.diff import SIGNS
from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta, join

if TYPE_CHECKING:
    from sphinx_fxgraph.options import ViewOptions


GROUP: Final = "group"
"""The opcode of a node that stands for a stretch of its body: a part of the picture, not of the model."""
ROWS: Final = "rows"
"""The opcode of a node that stands for a straight stretch of operators, drawn as one box with a row for each."""


@dataclass(frozen=True)
class Run:
    """Equal siblings in a row that are drawn once."""

    count: int
    last: str
    """Name of the first node of the last one."""
    weights: str = ""
    """``own`` each, the ``same`` for all, or empty where there are none."""
    tensors: tuple[TensorMeta, ...] = ()
    """The results of members that differ in sizes, as ranges."""
    names: tuple[str, ...] = ()
    """Of the nodes of all members, in the body that they were folded in."""
    carried: tuple[str, ...] = ()
    """The nodes whose results a step of a loop hands to the next: its state."""


@dataclass(frozen=True)
class Stage:
    """Neighbouring blocks of one class that are drawn as one box, which opens to them."""

    count: int
    last: str
    """Name of the last block."""
    difference: str = ""
    """How the first block differs from the others."""


@dataclass(frozen=True)
class Shown:
    """A simplified record, and what was simplified, by name of the body and the node."""

    record: Record
    runs: Mapping[tuple[str, str], Run] = field(default_factory=dict)
    chips: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    rows: Mapping[tuple[str, str], tuple[Node, ...]] = field(default_factory=dict)
    """The operators that a node of opcode `ROWS` stands for."""
    stages: Mapping[tuple[str, str], Stage] = field(default_factory=dict)
    """Of the nodes of opcode `GROUP` that stand for the blocks of a stage."""
    hidden: int = 0
    """How many operators lead to no result and are left out, counted as often as they run."""
    layout: str = "auto"
    """How its levels are arranged, the option of this name."""


def times_run(record: Record, counts: Mapping[str, int]) -> int:
    """Return the sum of ``counts``, which are by body, over all bodies as often as they run."""
    known: dict[str, int] = {}

    def total(name: str) -> int:
        if name not in known:
            inside = (total(node.body) for node in record.bodies[name].nodes if node.body)
            known[name] = counts.get(name, 0) + sum(inside)
        return known[name]

    return total(record.root)


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
    """Return operators without a tensor in their result that no module call and no result of the body needs."""
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
    """Return the chip of a consumer: how the removed chains to it start, ``shape`` or ``size``."""
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


_CHECKS = frozenset(
    {"assert", "assert_async", "check", "bool", "contains", "equal", "float", "index", "int", "item", "numpy", "tolist"}
)
"""Operators whose result, if no operator uses it, was used by Python for a decision."""


def prune(shown: Shown, mode: str) -> Shown:
    """Return the simplified graph without dead ends; ``mode`` ``show`` keeps them, and so does a failed capture.

    An input of a module call that only dead ends inside use is left out with them.
    """
    record = shown.record
    if mode == "show" or record.failure:
        return shown
    bodies: dict[str, Body] = {}
    used: dict[str, tuple[int, ...]] = {}
    removed: dict[str, int] = {}
    for name in _inside_out(record):
        body = _with_inputs(record.bodies[name], used)
        live = _live(body)
        nodes = tuple(node for node in body.nodes if node.name in live)
        removed[name] = len(body.nodes) - len(nodes)
        pruned = structs.replace(body, nodes=nodes)
        used[name] = _used_inputs(record.bodies[name], pruned)
        bodies[name] = _without_inputs(pruned, used[name])
    return dataclasses.replace(
        shown,
        record=structs.replace(record, bodies={name: bodies.get(name, record.bodies[name]) for name in record.bodies}),
        hidden=shown.hidden + (times_run(record, removed) if any(removed.values()) else 0),
    )


def _inside_out(record: Record) -> Iterator[str]:
    """Yield the bodies that are run, each after all that it calls."""
    done: set[str] = set()

    def visit(name: str) -> Iterator[str]:
        if name not in done:
            done.add(name)
            for node in record.bodies[name].nodes:
                if node.body:
                    yield from visit(node.body)
            yield name

    yield from visit(record.root)


def _live(body: Body) -> set[str]:
    """Return the names of the nodes that lead to a result or have another effect."""
    wanted = {value.node for node in body.nodes for value in node.inputs} | {value.node for value in body.outputs}
    live: set[str] = set()
    needed = {value.node for value in body.outputs}
    for node in reversed(body.nodes):
        if node.name in needed or _has_effect(node, is_used=node.name in wanted):
            live.add(node.name)
            needed.update(value.node for value in node.inputs)
    return live


def _has_effect(node: Node, *, is_used: bool) -> bool:
    """Return whether a node is kept though nothing that is kept uses its result."""
    if node.body or node.inplace or node.op in ("placeholder", "output") or {"failed", *SIGNS} & {*node.marks}:
        return True
    # What nothing uses and the capture does not call dead writes somewhere, unless it is a check.
    return not is_used and "dead" not in node.marks and node.kind not in _CHECKS and node.op != "get_attr"


def _with_inputs(body: Body, used: Mapping[str, tuple[int, ...]]) -> Body:
    """Return the body, its calls without the inputs that are not used inside."""
    if all(len(used[node.body]) == len(node.inputs) for node in body.nodes if node.body):
        return body
    nodes = (
        structs.replace(node, inputs=tuple(node.inputs[k] for k in used[node.body])) if node.body else node
        for node in body.nodes
    )
    return structs.replace(body, nodes=tuple(nodes))


def _used_inputs(before: Body, body: Body) -> tuple[int, ...]:
    """Return the numbers of the inputs that remain: all but those that only dead ends used."""
    kept, had = ({v.output for node in each.nodes for v in node.inputs if not v.node} for each in (body, before))
    kept |= {value.output for value in body.outputs if not value.node}
    return tuple(k for k in range(len(body.inputs)) if k in kept or k not in had)


def _without_inputs(body: Body, used: tuple[int, ...]) -> Body:
    if len(used) == len(body.inputs):
        return body
    # An argument of a call may still name an input that is gone.
    new = {Value("", k): Value(given.name) for k, given in enumerate(body.inputs)}
    new |= {Value("", k): Value("", number) for number, k in enumerate(used)}
    return structs.replace(
        body,
        inputs=tuple(body.inputs[k] for k in used),
        nodes=tuple(node.rewired(new) for node in body.nodes),
        outputs=tuple(new.get(value, value) for value in body.outputs),
    )


def unused_options(record: Record, look: ViewOptions) -> Iterator[str]:
    """Return a sentence for each pattern of ``open`` that no module has, and for ``dims`` that fit no input."""
    paths = [join(path, node.name) for path, _, node in record.walk() if node.body] if look.open else []
    for pattern in look.open:
        if not any(fnmatchcase(path, pattern) for path in paths):
            close = difflib.get_close_matches(pattern, paths, 1) or paths[:1]
            hint = f"; for example {close[0]}" if close else "; there is none"
            yield f"open: no module of the graph is called {pattern!r}{hint}"
    root = record.bodies.get(record.root)
    inputs = [node for node in root.nodes if node.op == "placeholder" and node.outputs] if root else []
    if not look.dims or not inputs:
        return
    if len(look.dims) > len(inputs):
        yield f"dims: names for {len(look.dims)} inputs, and the model has {len(inputs)}"
    groups = (
        list(zip(inputs, look.dims, strict=False)) if len(look.dims) > 1 else [(node, look.dims[0]) for node in inputs]
    )
    fits = [any(len(meta.shape) == len(group) for meta in node.outputs) for node, group in groups]
    if len(look.dims) == 1 and not any(fits):
        found = ", ".join(sorted({str(len(meta.shape)) for node in inputs for meta in node.outputs}))
        yield f"dims: {len(look.dims[0])} names, and the inputs have {found} dimensions"
    for (node, group), fit in zip(groups, fits, strict=True):
        if len(look.dims) > 1 and not fit:
            yield f"dims: {len(group)} names for {node.name}, which has {len(node.outputs[0].shape)} dimensions"
