"""Compare two architectures: align their nodes, and list the changes as plain data and as text."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from sphinx_fxgraph.record.arguments import Text, Value, format_call, leaves
from sphinx_fxgraph.record.metrics import macs_text
from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta, join


class Pair(NamedTuple):
    """A node of both graphs, or one that only one of them has."""

    before: Node | None
    after: Node | None


class Alignment:
    """The matched bodies of two records."""

    def __init__(self, before: Record, after: Record) -> None:
        self.before, self.after = before, after
        self._contents: dict[int, dict[str, str]] = {id(before): {}, id(after): {}}
        self._pairs: dict[tuple[str, str], tuple[Pair, ...]] = {}

    def pairs(self, before: str, after: str) -> tuple[Pair, ...]:
        """The nodes of two bodies, in an order that is right for both."""
        key = before, after
        if key not in self._pairs:
            nodes = self.before.bodies[before].nodes, self.after.bodies[after].nodes
            if self._content(self.before, before) == self._content(self.after, after):
                self._pairs[key] = tuple(map(Pair, *nodes))
            else:
                looks = self._looks(self.before.bodies[before], self.after.bodies[after])
                self._pairs[key] = tuple(_matched(*nodes, looks))
        return self._pairs[key]

    def _looks(self, before: Body, after: Body) -> list[_Look]:
        """Return the keys by which nodes are aligned, from the strictest to the loosest."""

        def everything(node: Node, is_after: bool) -> Hashable:
            record, body = (self.after, after) if is_after else (self.before, before)
            shapes = tuple((meta.shape, meta.dtype) for meta in results(record, body, node))
            inside = self._content(record, node.body) if node.body else ""
            return (*_kind(node), node.config, shapes, inside)

        return [
            lambda node, is_after: (node.name, everything(node, is_after)),
            everything,
            lambda node, _: (*_kind(node), node.name),
            lambda node, _: _kind(node),
            # The module of one attribute may be of another class: an activation that was exchanged.
            lambda node, _: (node.op, node.name) if node.op in _NAMED else id(node),
        ]

    def _content(self, record: Record, name: str) -> str:
        """A digest of all that is in a body, so that equal ones need no comparison."""
        known = self._contents[id(record)]
        if name not in known:
            body = record.bodies[name]
            inside = [self._content(record, node.body) if node.body else "" for node in body.nodes]
            nodes = [replace(node, body="", where="") for node in body.nodes]
            told = msgspec.msgpack.encode([body.type, body.inputs, body.outputs, nodes, inside])
            known[name] = hashlib.sha256(told).hexdigest()
        return known[name]


def results(record: Record, body: Body, node: Node) -> tuple[TensorMeta, ...]:
    """The tensors that a node gives, be it an operator or a module call."""
    if not node.body:
        return node.outputs
    count = len(record.bodies[node.body].outputs)
    return tuple(meta for k in range(count) for meta in record.metas(body, Value(node.name, k)))


_Look = Callable[[Node, bool], Hashable]
_NAMED = ("call_module", "placeholder", "get_attr", "output")


def _kind(node: Node) -> tuple[str, ...]:
    """Return what a node is: of functions and methods the kind, so that ``+``, ``+=`` and ``torch.add`` are one."""
    return "call" if node.op in ("call_function", "call_method") else node.op, node.kind, node.type


def _matched(before: Sequence[Node], after: Sequence[Node], looks: Sequence[_Look]) -> list[Pair]:
    if not (before and after and looks):
        return [*(Pair(node, None) for node in before), *(Pair(None, node) for node in after)]
    look, *weaker = looks
    matcher = SequenceMatcher(
        None, [look(node, False) for node in before], [look(node, True) for node in after], autojunk=False
    )
    found: list[Pair] = []
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            found += map(Pair, before[i:i_end], after[j:j_end])
        else:
            found += _matched(before[i:i_end], after[j:j_end], weaker)
    return found


SIGNS = {"added": "+", "removed": "−", "changed": "~"}
"""What a kind of change is marked with."""


@dataclass(frozen=True)
class Fact:
    """Something that is said of a whole model, before and after."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Change:
    """An operator or a module call that is new, gone, or no longer what it was."""

    kind: str
    """``added``, ``removed`` or ``changed``."""
    path: str
    """Of the first place, in the new model; of what is removed, in the old one."""
    operator: str
    """``Conv2d``, ``add``."""
    before: str
    after: str
    """What differs; of what is added or removed, what it is."""
    parameters: int = 0
    """How many more elements one place has now."""
    places: int = 1
    """In how many places: equal modules have equal changes."""
    last: str = ""
    """Path of the last of several such siblings in a row."""
    old_path: str = ""
    """Where it stood, if that is another path."""
    drawn: str = ""
    """Its path in the graph of both models, if that is another: the new model may use the name of what is gone."""


@dataclass(frozen=True)
class Difference:
    """All that differs between two architectures."""

    facts: tuple[Fact, ...]
    changes: tuple[Change, ...]

    def lines(self) -> Iterator[str]:
        """The difference as text: what the models say of themselves, then one change a line."""
        for fact in self.facts:
            yield f"  {fact.name}: {fact.before or 'unknown'} → {fact.after or 'unknown'}"
        for change in self.changes:
            yield f"{SIGNS[change.kind]} {sentence(change)}"


def compare(before: Record, after: Record) -> Difference:
    """Compare two records. Records of equal architectures have no difference."""
    return Difference(tuple(_facts(before, after)), tuple(_rows(Comparison(before, after).changes())))


def sentence(change: Change) -> str:
    """A change in one line."""
    path = f"{change.path} … {change.last}" if change.last else change.path
    moved = f" (was {change.old_path})" if change.old_path else ""
    told = f"{change.before} → {change.after}" if change.kind == "changed" else change.before or change.after
    parameters = f"{change.parameters:+,} parameters".replace("-", "−") if change.parameters else ""
    places = f"×{change.places}" if change.places > 1 else ""
    return "  ".join(part for part in (path + moved, change.operator, told, parameters, places) if part)


def _facts(before: Record, after: Record) -> Iterator[Fact]:
    drawn = bool(before.root and after.root)
    for (name, was), now in zip(_totals(before).items(), _totals(after).values(), strict=True):
        if was != now and (drawn or name == "failure"):  # of a model that failed its numbers are not known
            yield Fact(name, was, now)


def _totals(record: Record) -> dict[str, str]:
    totals, known = record.totals, bool(record.modules)
    return {
        "operators": f"{record.operators:,}",
        "parameters": f"{totals.parameters:,}" if known else "",
        "buffers": f"{totals.buffers:,}" if known else "",
        "MACs": macs_text(None if totals.macs is None else f"{totals.macs:,}", totals.uncounted),
        "output": record.output,
        "failure": record.failure.message if record.failure else "none",
    }


def _rows(changes: Iterable[Change]) -> Iterator[Change]:
    """Equal changes of siblings in a row become one."""

    def content(change: Change) -> Change:
        parent = change.path.rpartition(".")[0]
        return dataclasses.replace(change, path=change.old_path or parent, drawn="")

    for _, group in itertools.groupby(changes, content):
        first, *others = group
        if others:
            yield dataclasses.replace(first, places=first.places * (len(others) + 1), last=others[-1].path)
        else:
            yield first


@dataclass(frozen=True)
class _Side:
    """A node in its own model."""

    record: Record
    body: Body
    node: Node
    path: str

    @property
    def result(self) -> str:
        """Return the result of the node as text, ``1×64×56×56 f32``."""
        tensors = results(self.record, self.body, self.node)
        shapes = (f"{'×'.join(map(str, meta.shape)) or 'scalar'} {meta.dtype}" for meta in tensors)
        return ", ".join(shapes) or self.node.result

    @property
    def told(self) -> str:
        """Return the facts about the node, apart from its kind."""
        return " · ".join(part for part in (self.node.detail, self.result) if part)

    @property
    def parameters(self) -> int:
        """Elements of its own parameters; of a module call those of all modules in it, once each."""
        if not self.node.body:
            return sum(math.prod(dim for dim in meta.shape if isinstance(dim, int)) for meta in self.node.parameters)
        inside = f"{self.path}."
        modules = self.record.modules
        return sum(each.parameters for each in modules if each.path == self.path or each.path.startswith(inside))

    def call(self, names: Mapping[str, str]) -> str:
        """Its arguments, in the names of the other model."""

        def name(value: Value) -> str:
            own = self.record.name(self.body, value)
            return names.get(value.node, value.node) + own.removeprefix(value.node) if value.node else own

        return format_call(self.node.args, self.node.kwargs, name)


class Comparison:
    """Goes through each pair of bodies once, however often it stands in the models."""

    def __init__(self, before: Record, after: Record) -> None:
        self.before, self.after = before, after
        self.alignment = Alignment(before, after)
        self._names: dict[Bodies, tuple[_Names, _Names]] = {}
        self._differ: dict[Bodies, bool] = {}
        self._same_tracer = before.tracer == after.tracer

    def changes(self) -> Iterator[Change]:
        """All changes, in order of execution, each once."""
        root = self.before.root, self.after.root
        if all(root):
            places: Counter[Bodies] = Counter({root: 1})
            for bodies in reversed(list(self._inside_out(root, set()))):
                for inner in map(inside, self.alignment.pairs(*bodies)):
                    if inner:
                        places[inner] += places[bodies]
            yield from self._changes(root, ("", ""), places, set())

    def change(self, bodies: Bodies, pair: Pair, paths: tuple[str, str] = ("", "")) -> Change | None:
        """Return the change of one node, apart from its inside; None if it is the same.

        Args:
            bodies: what it stands in.
            pair: the node in both models.
            paths: of the bodies.
        """
        alone = None if pair.before and pair.after else pair.before or pair.after
        if alone and not alone.body and not alone.has_tensor and alone.result and not self._same_tracer:
            return None  # only a trace has shape arithmetic
        if bodies not in self._names:
            self._names[bodies] = _names(*self._bodies(bodies), self.alignment.pairs(*bodies))
        sides = [
            _Side(record, body, node, join(path, node.name)) if node else None
            for record, body, node, path in zip(
                (self.before, self.after), self._bodies(bodies), pair, paths, strict=True
            )
        ]
        return _change(sides[0], sides[1], self._names[bodies])

    def differ(self, bodies: Bodies) -> bool:
        """Return whether anything in two bodies differs, at any depth."""
        if bodies not in self._differ:
            self._differ[bodies] = any(
                self.change(bodies, pair) or ((inner := inside(pair)) and self.differ(inner))
                for pair in self.alignment.pairs(*bodies)
            )
        return self._differ[bodies]

    def _bodies(self, bodies: Bodies) -> tuple[Body, Body]:
        return self.before.bodies[bodies[0]], self.after.bodies[bodies[1]]

    def _inside_out(self, bodies: Bodies, seen: set[Bodies]) -> Iterator[Bodies]:
        """Pairs of bodies, each after all that it contains."""
        if bodies not in seen:
            seen.add(bodies)
            for inner in map(inside, self.alignment.pairs(*bodies)):
                if inner:
                    yield from self._inside_out(inner, seen)
            yield bodies

    def _changes(
        self, bodies: Bodies, paths: tuple[str, str], places: Counter[Bodies], seen: set[Bodies]
    ) -> Iterator[Change]:
        if bodies in seen:
            return
        seen.add(bodies)
        pairs = self.alignment.pairs(*bodies)
        gone = names_of_gone(pairs)
        for pair in pairs:
            if change := self.change(bodies, pair, paths):
                drawn = join(paths[1], gone[pair.before.name]) if pair.before and not pair.after else change.path
                yield dataclasses.replace(change, places=places[bodies], drawn=drawn if drawn != change.path else "")
            if inner := inside(pair):
                old, new = (join(path, node.name) for path, node in zip(paths, pair, strict=True) if node)
                yield from self._changes(inner, (old, new), places, seen)


Bodies = tuple[str, str]
"""A body of the old model and one of the new, by name."""


def inside(pair: Pair) -> Bodies | None:
    """The bodies of a module call that both models have."""
    old, new = pair
    return (old.body, new.body) if old and new and old.body and new.body else None


def names_of_gone(pairs: Iterable[Pair]) -> dict[str, str]:
    """Return names for the nodes that only the old subgraph has; those of the new one keep their names."""
    pairs = list(pairs)
    taken = {pair.after.name for pair in pairs if pair.after}
    names = {}
    for old, new in pairs:
        if old and not new:
            name = old.name
            while name in taken:
                name += "′"
            taken.add(name)
            names[old.name] = name
    return names


_Names = Mapping[str, str]


def _change(old: _Side | None, new: _Side | None, names: tuple[_Names, _Names]) -> Change | None:
    if not old:
        assert new is not None, "a node of one model at least"
        return Change("added", new.path, new.node.kind, "", new.told, new.parameters)
    if not new:
        return Change("removed", old.path, old.node.kind, old.told, "", -old.parameters)
    alike = old.node.detail == new.node.detail and old.node.kind == new.node.kind
    sides = [
        (old.node.kind, new.node.kind) if old.node.kind != new.node.kind else (old.node.type, new.node.type),
        (old.node.detail, new.node.detail) if old.node.kind == new.node.kind else ("", ""),
        _settings(old.node, new.node) if alike else ("", ""),
        (old.result, new.result),
        _calls(old, new, names) if alike else ("", ""),
        (", ".join(old.node.marks), ", ".join(new.node.marks)),
        _attributes(old.node, new.node),
    ]
    differing = [pair for pair in sides if pair[0] != pair[1]]
    if not differing:
        return None
    before, after = (" · ".join(text or "none" for text in side) for side in zip(*differing, strict=True))
    size = new.parameters - old.parameters if not new.node.body else 0  # what a module has inside is told there
    moved = old.path if old.path != new.path and new.node.op == "call_module" else ""
    return Change("changed", new.path, new.node.kind, before, after, size, old_path=moved)


def _calls(old: _Side, new: _Side, names: tuple[_Names, _Names]) -> tuple[str, str]:
    """Return the arguments of both. Those that a record of an earlier schema has as text cannot be compared."""
    if old.record.schema != new.record.schema:
        arguments = (*old.node.args, *old.node.kwargs.values(), *new.node.args, *new.node.kwargs.values())
        if any(isinstance(leaf, Text) for argument in arguments for leaf in leaves(argument)):
            return "", ""
    return old.call(names[0]), new.call(names[1])


def _attributes(old: Node, new: Node) -> tuple[str, str]:
    """The attributes of a module that has been renamed; numbers shift with every insertion before them."""
    if new.op != "call_module" or (old.name.isdecimal() and new.name.isdecimal()):
        return "", ""
    return old.name, new.name


def _settings(old: Node, new: Node) -> tuple[str, str]:
    """The settings of a module that differ, of those that its ``extra_repr`` lists."""
    before, after = (re.split(r", (?![^(\[{]*[)\]}])", node.config) for node in (old, new))
    if len(before) != len(after):
        return old.config, new.config
    differing = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    return ", ".join(pair[0] for pair in differing), ", ".join(pair[1] for pair in differing)


def _names(before: Body, after: Body, pairs: Sequence[Pair]) -> tuple[_Names, _Names]:
    """The names that the nodes of both bodies are compared by.

    What is only in one of them counts as its first input, so that what comes behind is not told to have changed too.
    """
    same = {old.name: new.name for old, new in pairs if old and new}
    both = same, {name: name for name in same.values()}
    for body, names in zip((before, after), both, strict=True):
        for node in body.nodes:
            if node.name not in names and node.inputs:
                first = node.inputs[0]
                names[node.name] = names.get(first.node, first.node) if first.node else body.inputs[first.output].name
    return both
