"""What tells the inside of a module call from all others before it is written: calls of one key have one body.

Most calls of a deep model are like one before, and a key takes a fraction of the time that texts for all operators do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import fx, nn

from sphinx_fxgraph.capture.formatting import config_text, meta_of
from sphinx_fxgraph.capture.pytree import PLAIN
from sphinx_fxgraph.capture.subgraphs.call_tree import Scope, Tree, is_mark
from sphinx_fxgraph.capture.trace import Call

_TOLD = ("outputs", "result", "inplace", "macs", "extra_macs", "where", "marks")
"""What a node says in its meta that stands in a record."""


def key(
    scope: Scope,
    tree: Tree,
    inner: Mapping[Scope, str],
    below: Callable[[str], str],
    module: Callable[[str], nn.Module],
) -> object:
    """All that the body of a call is written from. Two that are equal may still have different keys.

    Args:
        scope: the call, with names for what stands in it.
        tree: where it stands.
        inner: the bodies of the calls in it.
        below: how the path of a module or an attribute is written in the call.
        module: the module at a path.
    """

    def like(value: Any) -> object:
        kind = type(value)
        if isinstance(value, fx.Node):
            return tree.value(value, scope)
        if isinstance(value, PLAIN):
            return kind, value
        if isinstance(value, tuple | list):
            return kind, tuple(map(like, value))
        if isinstance(value, dict):
            return kind, tuple(value), tuple(map(like, value.values()))
        if isinstance(value, slice):
            return kind, like(value.start), like(value.stop), like(value.step)
        return kind, id(value)  # it is alive as long as the trace is

    def call(item: Scope, noted: Call | None) -> object:
        told = (like(noted.args), like(noted.kwargs), like(noted.returned), noted.where, noted.marks) if noted else None
        given = tuple(tree.value(node, scope) for node in item.inputs)
        return inner[item], below(item.path), type(module(item.path)), given, told

    def operator(node: fx.Node) -> object:
        target = leaf(str(node.target)) if node.op == "call_module" else node.target
        told = (*map(node.meta.get, _TOLD), *sorted(node.meta.get("uncounted") or ()))
        return scope.names[node], node.op, target, like(node.args), like(node.kwargs), told

    def leaf(path: str) -> object:
        found = module(path)
        held = (*found.named_parameters(), *found.named_buffers())
        return below(path), type(found), config_text(found), tuple(meta_of(tensor, name) for name, tensor in held)

    def attribute(node: fx.Node) -> object:
        told = tuple(map(node.meta.get, ("kind", "outputs", "result")))
        return scope.names[node], below(str(node.target)), told

    return (
        scope.frame.type,
        tuple((name, node.meta.get("outputs")) for node, name in scope.inputs.items()),
        tuple(map(attribute, scope.attributes)),
        tuple(
            call(item, item.noted) if isinstance(item, Scope) else None if is_mark(item) else operator(item)
            for item in scope.items
        ),
        tuple(tree.value(node, scope) for node in scope.outputs),
    )
