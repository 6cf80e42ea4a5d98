"""When two parts of a model are the same thing to a reader."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from sphinx_fxgraph.record.model import Node, Record, TensorMeta
from sphinx_fxgraph.view.simplified import GROUP


class Likeness:
    """Keys of nodes and bodies: two with one key are alike, wiring apart.

    ``loose`` asks for the same types in the same order only, so that blocks with other channel counts are alike.
    """

    def __init__(self, record: Record, *, loose: bool) -> None:
        self.record = record
        self.loose = loose
        self._bodies: dict[str, Hashable] = {}

    def key(self, node: Node) -> Hashable:
        """What ``node`` has in common with those like it."""
        if node.op in ("placeholder", "output"):
            return (node.op, node.name)
        if self.loose:
            return (node.op, node.kind, node.type, self.body(node.body))
        target = "" if node.op in ("call_module", "get_attr", GROUP) else node.target  # names, not what is called
        shapes = (node.outputs, _shapes(node.parameters), _shapes(node.buffers))
        marks = [mark for mark in node.marks if mark != "dead"]  # what the last step of a loop leaves unused
        return (node.op, node.kind, node.type, target, node.config, node.body, shapes, tuple(marks), node.inplace)

    def body(self, name: str) -> Hashable:
        """What the body called ``name`` has in common with those like it; of use with ``loose``."""
        if not name:
            return ""
        if name not in self._bodies:
            nodes = self.record.bodies[name].nodes
            self._bodies[name] = hash(tuple(self.key(node) for node in nodes))
        return self._bodies[name]


def _shapes(metas: Iterable[TensorMeta]) -> Hashable:
    return tuple((meta.shape, meta.dtype) for meta in metas)
