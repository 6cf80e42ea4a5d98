"""Say which calls share their weights: a module that is called again, and tensors that are registered twice."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property

from sphinx_fxgraph.record.model import Node, Record, join


class Sharing:
    """Knows what shares its weights with what.

    Args:
        record: the model.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self._weighty: dict[str, bool] = {}
        self._calls: dict[str, Counter[str]] = {}

    def words(self, name: str, node: Node) -> str:
        """Return ``shared with backbone``, ``shared by 2 calls``, ``weight of embed``, or nothing.

        Args:
            name: of the body that the call is in.
            node: the call.
        """
        if node.op != "call_module" or not self._has_weights(node):
            return ""
        module = _module(node)
        if module != node.name:
            return f"shared with {module}"
        if name not in self._calls:
            self._calls[name] = Counter(map(_module, self.record.bodies[name].nodes))
        if self._calls[name][module] > 1:
            return f"shared by {self._calls[name][module]} calls"
        return f"weight of {other}" if (other := self._tied(name, node)) else ""

    def _has_weights(self, node: Node) -> bool:
        if not node.body:
            return bool(node.parameters)
        if node.body not in self._weighty:
            self._weighty[node.body] = any(map(self._has_weights, self.record.bodies[node.body].nodes))
        return self._weighty[node.body]

    def _tied(self, name: str, node: Node) -> str:
        """Return the last name of the module that a leaf's weight is counted at, if that is another one."""
        if not self.record.ties or node.body or name not in self._paths:
            return ""
        path = join(self._paths[name], node.name)
        for meta in node.parameters:
            if tensor := self.record.ties.get(join(path, meta.path)):
                return tensor.rpartition(".")[0].rpartition(".")[2]
        return ""

    @cached_property
    def _paths(self) -> dict[str, str]:
        """The paths of the bodies that run once."""
        found = {self.record.root: [""]}
        for path, _, node in self.record.walk():
            if node.body:
                found.setdefault(node.body, []).append(join(path, node.name))
        return {name: paths[0] for name, paths in found.items() if len(paths) == 1}


def _module(node: Node) -> str:
    """Return the name of the module that is called, without the number of the call."""
    return re.sub(r"@\d+$", "", node.name) if node.op == "call_module" else ""
