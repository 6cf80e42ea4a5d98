"""Sum up a model's numbers: by module, by call, and in depth, with a convention for what counts as a MAC.

A record holds each number once, where it arises: tensors with the module that registers them, operations with the
operator that runs them. Sums are made here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Body, Module, Node, Record, TensorMeta, join


class Counted(Protocol):
    """An operator or a model."""

    @property
    def macs(self) -> int | None:
        """Multiply-accumulate operations."""

    @property
    def extra_macs(self) -> int | None:
        """Return what the convention ``all`` counts in addition."""


def macs_of(counted: Counted, convention: str) -> int | None:
    """The MACs of an operator or a model in a convention; None where there are none."""
    extra = counted.extra_macs if convention == "all" else None
    return counted.macs if extra is None else (counted.macs or 0) + extra


# -- operators that are not counted

NOT_COUNTED = "not counted: "
"""How the mark of a node begins whose MACs are not counted, or not all of them; the operators follow."""


def uncounted(marks: Iterable[str]) -> tuple[str, ...]:
    """Return the operators in the marks of a node that its MACs leave out."""
    found = (mark.removeprefix(NOT_COUNTED) for mark in marks if mark.startswith(NOT_COUNTED))
    return tuple(name for names in found for name in names.split(", "))


def not_counted(names: Collection[str], most: int = 3) -> str:
    """Return what the MACs leave out as text, ``not counted: cholesky, _fft_r2c``; empty if they leave out nothing.

    Args:
        names: the operators.
        most: how many of them to name.
    """
    if not names:
        return ""
    shown = ", ".join(sorted(names)[:most])
    return NOT_COUNTED + shown + (f" and {len(names) - most} more" if len(names) > most else "")


def macs_text(count: str | None, uncounted: Collection[str]) -> str:
    """Return the cell of a number of MACs.

    Args:
        count: the number as text, or None if there is none.
        uncounted: the operators that it leaves out.
    """
    left_out = not_counted(uncounted)
    return f"{count} ({left_out})" if count and left_out else count or left_out


class Measures(NamedTuple):
    """The numbers of a module with all modules in it, of one call, or of a whole model.

    None is unknown, or nothing at all.
    """

    parameters: int = 0
    trainable: int = 0
    buffers: int = 0
    bytes: int = 0
    """Of parameters and buffers."""
    macs: int | None = None
    activation_bytes: int | None = None
    uncounted: frozenset[str] = frozenset()
    """Operators that ``macs`` leaves out."""

    def plus(self, other: Measures) -> Measures:
        """Return the sum of both."""
        return Measures(
            self.parameters + other.parameters,
            self.trainable + other.trainable,
            self.buffers + other.buffers,
            self.bytes + other.bytes,
            _sum(self.macs, other.macs),
            _sum(self.activation_bytes, other.activation_bytes),
            self.uncounted | other.uncounted,
        )


def _sum(one: int | None, two: int | None) -> int | None:
    return one if two is None else two + (one or 0)


_NOTHING = Measures()


def total(record: Record, convention: str = "torchvision") -> Measures:
    """Return the numbers of the whole model."""
    found = record.totals
    macs = macs_of(found, convention)
    left_out = frozenset(found.uncounted)
    return Measures(
        found.parameters, found.trainable, found.buffers, found.bytes, macs, found.activation_bytes, left_out
    )


def by_module(record: Record, convention: str = "torchvision") -> dict[str, Measures]:
    """Return the numbers of every registered module with all modules in it, by path; the empty path is the model.

    A tensor that is registered twice counts where it is registered first, and what a module computes counts for it,
    whoever calls it.
    """
    alone: dict[str, Measures] = {}
    for path, measures in (*map(_own, record.modules), *_spent(record, convention)):
        alone[path] = alone.get(path, _NOTHING).plus(measures)
    sums = dict.fromkeys((module.path for module in record.modules), _NOTHING)
    for path, measures in alone.items():
        for around in _around(path):
            sums[around] = sums.get(around, _NOTHING).plus(measures)
    return sums | {"": total(record, convention)}


def by_call(record: Record, convention: str = "torchvision") -> dict[str, Measures]:
    """Return the numbers of every operator and module call, by path.

    Its cost, and the tensors of the module it calls.
    """
    modules = by_module(record, convention)
    found = {"": modules[""]}

    operators = _Operators(record, convention)

    def visit(name: str, path: str, owner: str) -> Measures:
        within = _NOTHING
        for node, operator in operators.of(name):
            place, module = join(path, node.name), module_path(owner, node)
            spent = visit(node.body, place, module) if node.body else operator
            registered = modules.get(module, _NOTHING) if node.op == "call_module" else _read(record, module, node)
            found[place] = registered._replace(
                macs=spent.macs, activation_bytes=spent.activation_bytes, uncounted=spent.uncounted
            )
            within = within.plus(spent)
        return within

    if record.root:
        visit(record.root, "", "")
    return found


def _read(record: Record, path: str, node: Node) -> Measures:
    """A parameter that a module's own code reads, unless it is counted elsewhere."""
    if node.op != "get_attr" or node.kind != "parameter" or path in record.ties:
        return _NOTHING
    sizes = [[dim for dim in meta.shape if isinstance(dim, int)] for meta in node.outputs]
    return Measures(parameters=sum(map(math.prod, sizes)))


def module_path(owner: str, node: Node) -> str:
    """The path of the module that a node calls, or of the attribute that it reads.

    Args:
        owner: path of the module whose body the node stands in.
        node: a node with the opcode ``call_module`` or ``get_attr``.
    """
    return node.target[1:] if node.target.startswith("/") else join(owner, node.target)


def tied_parameters(record: Record) -> dict[str, str]:
    """The parameters that a module uses but that are counted elsewhere: path -> the path it is counted at."""
    found = {}

    def visit(name: str, owner: str) -> None:
        for node in record.bodies[name].nodes:
            path = module_path(owner, node)
            if node.body:
                visit(node.body, path)
            names = [join(path, meta.path) for meta in node.parameters] if node.op == "call_module" else []
            names += [path] if node.kind == "parameter" and node.op == "get_attr" else []
            found.update({name: record.ties[name] for name in names if name in record.ties})

    if record.root and record.ties:
        visit(record.root, "")
    return found


def _own(module: Module) -> tuple[str, Measures]:
    return module.path, Measures(module.parameters, module.trainable, module.buffers, module.bytes)


def _around(path: str) -> Iterator[str]:
    """A path and those of all modules around it, but for the model's."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _spent(record: Record, convention: str) -> Iterator[tuple[str, Measures]]:
    """Yield the cost of each operator with the path of the innermost module that it belongs to."""
    operators = _Operators(record, convention)

    def visit(name: str, owner: str) -> Iterator[tuple[str, Measures]]:
        for node, operator in operators.of(name):
            if node.body:
                yield from visit(node.body, module_path(owner, node))
            else:
                yield module_path(owner, node) if node.op == "call_module" else owner, operator

    if record.root:
        yield from visit(record.root, "")


class _Operators:
    """The costs of the operators of subgraphs, each subgraph computed once."""

    def __init__(self, record: Record, convention: str) -> None:
        self._record, self._convention = record, convention
        self._known: dict[str, list[tuple[Node, Measures]]] = {}

    def of(self, name: str) -> list[tuple[Node, Measures]]:
        """The nodes of a body, those that are operators with what they compute."""
        if name not in self._known:
            body = self._record.bodies[name]
            self._known[name] = [(node, self._operator(body, node)) for node in body.nodes]
        return self._known[name]

    def _operator(self, body: Body, node: Node) -> Measures:
        if node.body or not node.op.startswith("call_"):
            return _NOTHING
        return Measures(
            macs=macs_of(node, self._convention),
            activation_bytes=_activations(body, node),
            uncounted=frozenset(uncounted(node.marks)),
        )


# -- activations


def _activations(body: Body, node: Node) -> int | None:
    """Bytes of what an operator gives; None for one that gives nothing new, or of open size."""
    if not node.outputs or _hands_on(body, node):
        return None
    sizes = [_bytes(meta) for meta in node.outputs]
    return None if None in sizes else sum(size or 0 for size in sizes)


def _hands_on(body: Body, node: Node) -> bool:
    """Return whether it only takes a tensor out of a tuple, list or dict, or puts tensors into an object."""
    if node.kind == "getitem" and node.inputs and node.inputs[0].node:
        source = body.by_name[node.inputs[0].node]
        return bool(source.result and not source.body)
    return node.kind[:1].isupper() and node.op == "call_function" and node.result.startswith(f"{node.kind}(")


def _bytes(meta: TensorMeta) -> int | None:
    bits = re.search(r"\d+", meta.dtype)
    sizes = [dim for dim in meta.shape if isinstance(dim, int)]
    known = len(sizes) == len(meta.shape)
    return math.prod(sizes) * max(1, int(bits[0]) // 8 if bits else 1) if known else None


# -- depth

_Ways = Mapping[int, int]
"""The longest way to a value from each input of its body, and from `_START`, where a way begins inside."""
_START = -1


def depth(record: Record) -> int:
    """How many operators that have MACs stand on the longest way through the model.

    These are what papers count as layers: 18 in ResNet-18, 121 in DenseNet-121.
    """
    known: dict[str, tuple[list[_Ways], _Ways]] = {}

    def ways_of(name: str) -> tuple[list[_Ways], _Ways]:
        """The ways to each output of a body, and those to wherever they end in it."""
        if name in known:
            return known[name]
        body = record.bodies[name]
        at: dict[Value, _Ways] = {Value("", number): {number: 0} for number in range(len(body.inputs))}
        everywhere: list[_Ways] = []
        for node in body.nodes:
            given = [at[value] for value in node.inputs]
            if node.body:
                outputs, within = ways_of(node.body)
                at |= {Value(node.name, number): _after(ways, given) for number, ways in enumerate(outputs)}
                everywhere.append(_after(within, given))
            else:
                ways = _longest(given) or {_START: 0}
                at[Value(node.name)] = {source: length + bool(node.macs) for source, length in ways.items()}
                everywhere.append(at[Value(node.name)])
        known[name] = [at[value] for value in body.outputs], _longest(everywhere)
        return known[name]

    return max(ways_of(record.root)[1].values(), default=0) if record.root else 0


def _after(ways: _Ways, given: list[_Ways]) -> _Ways:
    """The ways through a call, continued from what it was given."""
    inside = {_START: ways[_START]} if _START in ways else {}
    return _longest(
        [
            inside,
            *(
                {source: before + ways[number] for source, before in each.items()}
                for number, each in enumerate(given)
                if number in ways
            ),
        ]
    )


def _longest(several: list[_Ways]) -> _Ways:
    longest: dict[int, int] = {}
    for ways in several:
        for source, length in ways.items():
            longest[source] = max(length, longest.get(source, length))
    return longest
