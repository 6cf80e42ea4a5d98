"""Sort the module calls of a trace into a tree, with the values that pass their borders and a structural hash."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import fx, nn

from sphinx_fxgraph.capture.formatting import config_text, meta_of
from sphinx_fxgraph.capture.pytree import PLAIN
from sphinx_fxgraph.capture.trace import Call, Frame, Trace, leaves, passed_through
from sphinx_fxgraph.record.arguments import Value


@dataclass(eq=False)
class Scope:
    """A module call (the root is one): what stands in it, and the values that pass its border."""

    frame: Frame
    parent: Scope | None = None
    noted: Call | None = None
    items: list[fx.Node | Scope] = field(default_factory=list)
    inputs: dict[fx.Node, str] = field(default_factory=dict)
    """What comes from outside -> the parameter it arrives by, or nothing."""
    outputs: dict[fx.Node, None] = field(default_factory=dict)
    attributes: dict[fx.Node, None] = field(default_factory=dict)
    """The get_attr nodes that are written here: each scope that uses a parameter has a node of its own."""
    names: dict[fx.Node | Scope, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The module's path; empty for the root."""
        return self.frame.path

    @functools.cached_property
    def places(self) -> dict[fx.Node, int]:
        """The number of each input; to be asked when all are known."""
        return {node: number for number, node in enumerate(self.inputs)}

    def outward(self) -> Iterator[Scope]:
        """This scope and those it stands in, without the root."""
        scope = self
        while scope.parent is not None:
            yield scope
            scope = scope.parent


class Tree:
    """The calls of a trace as a tree, and what flows between them."""

    def __init__(self, trace: Trace) -> None:
        self.root = Scope(Frame("", "", 0))
        self.home: dict[fx.Node, Scope] = {}
        self._nodes = list(trace.graph.nodes)
        self._scopes: dict[tuple[Frame, ...], Scope] = {(): self.root}
        self._noted = {call.stack: call for call in trace.calls}
        self._attributes: dict[str, fx.Node] = {}
        for node in self._nodes:
            if node.op == "get_attr":
                self._attributes.setdefault(str(node.target), node)
            else:
                self.home[node] = self._scope(node.meta["stack"])
                self.home[node].items.append(node)

    def _scope(self, stack: tuple[Frame, ...]) -> Scope:
        if stack not in self._scopes:
            parent = self._scope(stack[:-1])
            self._scopes[stack] = Scope(stack[-1], parent, self._noted.get(stack))
            parent.items.append(self._scopes[stack])
        return self._scopes[stack]

    def same(self, node: fx.Node) -> fx.Node:
        """The one node that stands for all that read the same attribute."""
        return self._attributes[str(node.target)] if node.op == "get_attr" else node

    def connect(self) -> None:
        """Carry every value to where it is used: what is returned first, then arguments, then what is left.

        So the outputs of a call have the order in which it returns them, be they used or not, and calls of one module
        that differ only in what becomes of their results have equal bodies.
        """
        scopes = [scope for scope in self._scopes.values() if scope.parent is not None]
        for scope in scopes:
            for node, name in scope.noted.names.items() if scope.noted else ():
                scope.inputs.setdefault(self.same(node), name)
        for scope in reversed(scopes):  # the innermost first
            for node in _nodes_in(scope.noted.returned) if scope.noted else ():
                self._use(node, scope.parent)
        for scope in scopes:
            for node in _nodes_in(scope.noted.args, scope.noted.kwargs) if scope.noted else ():
                self._use(node, scope.parent)
        for node in self._nodes:
            if node.op != "get_attr":
                for source in node.all_input_nodes:
                    self._use(source, self.home[node])

    def _use(self, node: fx.Node, user: Scope | None) -> None:
        """Make a value available to what stands in ``user``."""
        assert user is not None
        node = self.same(node)
        if node.op == "get_attr":
            self._use_attribute(node, user)
            return
        around = set(self.home[node].outward())
        for scope in user.outward():
            if scope in around:
                break
            scope.inputs.setdefault(node, "")
        inside = set(user.outward())
        for scope in self.home[node].outward():
            if scope in inside:
                break
            scope.outputs.setdefault(node)

    def _use_attribute(self, node: fx.Node, user: Scope) -> None:
        """A parameter comes in by the argument it was given as; else the scope reads it itself."""
        crossed = []
        for scope in user.outward():
            if scope is user and f"{node.target}.".startswith(f"{scope.path}.") and node not in scope.inputs:
                break
            crossed.append(scope)
            if scope.noted and node in scope.inputs and scope.inputs[node]:
                for each in crossed:
                    each.inputs.setdefault(node, "")
                self._use_attribute(node, scope.parent or self.root)
                return
        user.attributes.setdefault(node)

    def value(self, node: fx.Node, scope: Scope) -> Value:
        """Return the name of a node in a scope that uses it."""
        node = self.same(node)
        if node in scope.places:
            return Value("", scope.places[node])
        if node.op == "get_attr":
            return Value(scope.names[node])
        if self.home[node] is scope:
            return self.value(node.args[0], scope) if is_mark(node) else Value(scope.names[node])  # type: ignore[arg-type]  # a mark has a node as its argument
        child = next(each for each in self.home[node].outward() if each.parent is scope)
        return Value(scope.names[child], list(child.outputs).index(node))


def is_mark(node: fx.Node) -> bool:
    """Return whether a node only marks a value that a call returns as it was given."""
    return node.target is passed_through


def _nodes_in(*values: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    for _, leaf in leaves(values):
        fx.node.map_arg(leaf, found.append)  # also what stands in a slice
    return found


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
        return inner[item], below(item.path), type(module(item.path)), item.frame.method, given, told

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
