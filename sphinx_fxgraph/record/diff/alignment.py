"""Which nodes of two graphs are the same: bodies of one and of the other, matched level by level.

Names of operators are numbers and shift with every insertion, so nodes are matched by what they are, in order of
execution: first those that are alike in everything, then, in the gaps between them, those that are alike in less.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta, Value


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
        """What nodes are compared by, from everything to hardly anything."""

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
