"""Turn a flat trace with its module stack into subgraphs: one for each distinct module call, equal ones shared.

The method, in four steps. Build the tree of calls from the stacks. Carry each value from the call that makes it to
the calls that use it, so that every call knows its inputs and outputs. Write each call from the inside out as a `Body`
in names of its own. Bodies that are then equal are one, since nothing in them says which call they were written for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace
from torch import fx, nn

from sphinx_fxgraph.capture import call_tree, formatting
from sphinx_fxgraph.capture.call_tree import Scope, Tree, is_mark
from sphinx_fxgraph.capture.labels import function_detail, module_detail
from sphinx_fxgraph.capture.trace import WRITTEN_TO, Trace
from sphinx_fxgraph.record.arguments import Argument, Value
from sphinx_fxgraph.record.metrics import NOT_COUNTED
from sphinx_fxgraph.record.model import Body, BodyInput, Node, Op

ValueOf = Callable[[fx.Node], Value]
"""The value that a node stands for in a scope."""


@dataclass(frozen=True)
class Bodies:
    """The bodies by name, the root's name, and the body of each module call by path."""

    bodies: dict[str, Body]
    root: str
    used: dict[str, str]


def find_bodies(model: nn.Module, trace: Trace) -> Bodies:
    """The bodies of a traced model, equal ones once, named after their class in order of first appearance."""
    tree = Tree(trace)
    tree.connect()
    return _Writer(model, tree, trace).write()


class _Writer:
    """Writes scopes as bodies, from the inside out."""

    def __init__(self, model: nn.Module, tree: Tree, trace: Trace) -> None:
        self._model, self._tree, self._whole = model, tree, trace.error is None
        self._modules = {**dict(model.named_modules(remove_duplicate=False)), **trace.unregistered}
        self._known: dict[bytes, tuple[str, Body]] = {}
        """By what a body is in a file: there 1, 1.0 and true are three things."""
        self._alike: dict[object, str] = {}
        self._used: dict[str, str] = {}

    def write(self) -> Bodies:
        root = self._scope(self._tree.root)
        self._used[""] = root
        drafts = dict(self._known.values())
        names: dict[str, str] = {}
        taken: dict[str, int] = {}

        def visit(draft: str) -> None:
            if draft not in names:
                short = drafts[draft].type.rpartition(".")[2]
                taken[short] = taken.get(short, 0) + 1
                names[draft] = short if taken[short] == 1 else f"{short}.{taken[short]}"
                for node in drafts[draft].nodes:
                    if node.body:
                        visit(node.body)

        visit(root)
        bodies = {}
        for draft, name in names.items():
            nodes = tuple(replace(node, body=names[node.body]) if node.body else node for node in drafts[draft].nodes)
            bodies[name] = replace(drafts[draft], nodes=nodes)
        return Bodies(bodies, names[root], {path: names[draft] for path, draft in self._used.items()})

    # -- one scope

    def _scope(self, scope: Scope) -> str:
        """Write a scope and return the draft name of its body."""
        inner = {item: self._scope(item) for item in scope.items if isinstance(item, Scope)}
        self._name_inputs(scope)
        self._name_items(scope)
        key = call_tree.key(scope, self._tree, inner, functools.partial(_target, owner=scope.path), self._module)
        if key not in self._alike:
            self._alike[key] = self._write(scope, inner)
        self._used.setdefault(scope.path, self._alike[key])
        return self._alike[key]

    def _write(self, scope: Scope, inner: Mapping[Scope, str]) -> str:
        """Write the body of a scope whose items have names."""
        value_of = functools.partial(self._tree.value, scope=scope)
        nodes: list[Node] = []
        read: set[fx.Node] = set()
        for item in scope.items:
            given = list(item.inputs) if isinstance(item, Scope) else [self._tree.same(n) for n in item.all_input_nodes]
            for attribute in given:
                if attribute in scope.attributes and attribute not in read:
                    read.add(attribute)
                    nodes.append(self._attribute(attribute, scope))
            if isinstance(item, Scope):
                nodes.append(self._call(item, scope, inner[item], value_of))
            elif not is_mark(item):
                nodes.append(self._operator(item, scope, value_of))
        outputs = tuple(self._tree.value(node, scope) for node in scope.outputs)
        if self._whole:
            nodes = _mark_dead(nodes, outputs)
        inputs = tuple(BodyInput(name, node.meta.get("outputs", ())) for node, name in scope.inputs.items())
        body = Body(scope.frame.type or formatting.dotted(type(self._model)), inputs, tuple(nodes), outputs)
        return self._known.setdefault(msgspec.msgpack.encode(body), (f"#{len(self._known)}", body))[0]

    def _name_inputs(self, scope: Scope) -> None:
        """Name the inputs that no parameter of ``forward`` names ``input``, ``input_1``."""
        taken = {name for name in scope.inputs.values() if name}
        for node, name in scope.inputs.items():
            scope.inputs[node] = name or _unused("input", taken, "_", 1)
            taken.add(scope.inputs[node])

    def _name_items(self, scope: Scope) -> None:
        """Modules and attributes by their path from here, functions by their name; the former come first."""
        taken = set(scope.inputs.values())
        items = [item for item in scope.items if not (isinstance(item, fx.Node) and is_mark(item))]
        for item in items:
            if isinstance(item, Scope) or item.op == "call_module":
                path = item.path if isinstance(item, Scope) else str(item.target)
                name = _below(path, scope.path) or path.rpartition(".")[2] or type(self._model).__name__.lower()
                scope.names[item] = _unused(name, taken, "@", 2)
        for node in scope.attributes:
            name = _below(_attribute_path(node), scope.path) or _attribute_path(node).rpartition(".")[2]
            scope.names[node] = _unused(name, taken, "_", 1)
        for item in items:
            if isinstance(item, fx.Node) and item.op != "call_module":
                name = formatting.short_name(item.target)
                plain = name.lstrip("_") if not name.endswith("__") else name.strip("_")
                scope.names[item] = _unused(plain or name, taken, "_", 1)

    # -- one node

    def _operator(self, node: fx.Node, scope: Scope, value_of: ValueOf) -> Node:
        args, kwargs = _arguments(node.args, formatting.given(node), value_of)
        values = dict.fromkeys(self._tree.value(source, scope) for source in node.all_input_nodes)
        calls = node.op in ("call_function", "call_method")
        written = Node(
            name=scope.names[node],
            op=msgspec.convert(node.op, Op),
            target=node.target if isinstance(node.target, str) else formatting.function_name(node.target),
            kind=formatting.kind_of(formatting.short_name(node.target)) if calls else _KINDS.get(node.op, ""),
            detail=function_detail(node) if calls else "",
            args=args,
            kwargs=kwargs,
            inputs=tuple(values),
            outputs=node.meta.get("outputs", ()),
            result=node.meta.get("result", ""),
            inplace=node.meta.get("inplace", False),
            macs=node.meta.get("macs"),
            extra_macs=node.meta.get("extra_macs"),
            where=node.meta.get("where", ""),
            marks=_marks(node),
        )
        return self._leaf(written, str(node.target), scope) if node.op == "call_module" else written

    def _leaf(self, written: Node, path: str, scope: Scope) -> Node:
        module = self._module(path)
        return replace(
            written,
            target=_target(path, scope.path),
            kind=getattr(module, "original_name", formatting.plain_class(type(module)).__name__),
            type=formatting.dotted(type(module)),
            base=formatting.base_name(type(module)),
            detail=module_detail(module),
            config=formatting.config_text(module),
            marks=(*written.marks, *_parametrizations(module)),
            parameters=tuple(formatting.meta_of(tensor, name) for name, tensor in module.named_parameters()),
            buffers=tuple(formatting.meta_of(tensor, name) for name, tensor in module.named_buffers()),
        )

    def _attribute(self, node: fx.Node, scope: Scope) -> Node:
        path = _attribute_path(node)
        return Node(
            name=scope.names[node],
            op="get_attr",
            target=_target(path, scope.path),
            kind=node.meta.get("kind") or self._kind(path),
            outputs=node.meta.get("outputs", ()),
            result=node.meta.get("result", ""),
        )

    def _module(self, path: str) -> nn.Module:
        found = self._modules.get(path)
        return self._model.get_submodule(path) if found is None else found

    def _kind(self, path: str) -> str:
        owner, _, name = path.rpartition(".")
        module = self._module(owner)
        return "parameter" if name in module._parameters else "buffer" if name in module._buffers else "constant"

    def _call(self, call: Scope, scope: Scope, body: str, value_of: ValueOf) -> Node:
        """The node of a module call whose inside is a body."""
        module = self._module(call.path)
        noted = call.noted
        args, kwargs = _arguments(noted.args, noted.kwargs, value_of) if noted else ((), {})
        returned = noted.returned if noted else None
        kind = formatting.plain_class(type(module)).__name__
        return Node(
            name=scope.names[call],
            op="call_module",
            target=_target(call.path, scope.path),
            kind=kind if call.frame.method == "forward" else f"{kind}.{call.frame.method}",
            type=call.frame.type,
            base=formatting.base_name(type(module)),
            body=body,
            args=args,
            kwargs=kwargs,
            inputs=tuple(self._tree.value(node, scope) for node in call.inputs),
            where=noted.where if noted else "",
            marks=(*(noted.marks if noted else ()), *_parametrizations(module)),
            result="" if returned is None or isinstance(returned, fx.Node) else formatting.text(returned),
        )


def _arguments(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], value_of: ValueOf
) -> tuple[tuple[Argument, ...], dict[str, Argument]]:
    return (
        tuple(formatting.argument_of(arg, value_of) for arg in args),
        {key: formatting.argument_of(arg, value_of) for key, arg in kwargs.items()},
    )


def _parametrizations(module: nn.Module) -> tuple[str, ...]:
    """Return a mark for each tensor of a module that is computed from others: ``weight by WeightNorm``."""
    if formatting.plain_class(type(module)) is type(module):
        return ()
    steps = {name: list(made.children()) for name, made in module.get_submodule("parametrizations").named_children()}
    names = {name: ", ".join(type(each).__name__.lstrip("_") for each in made) for name, made in steps.items()}
    return tuple(f"{name} by {classes}" for name, classes in names.items())


_KINDS = {"placeholder": "input", "output": "output"}


def _marks(node: fx.Node) -> tuple[str, ...]:
    marks: tuple[str, ...] = node.meta.get("marks", ())
    names = node.meta.get("uncounted")
    return (*marks, NOT_COUNTED + ", ".join(sorted(names))) if names else marks


def _below(path: str, owner: str) -> str:
    """The part of a path below its owner's; empty where it does not stand there."""
    if not owner:
        return path
    return path.removeprefix(f"{owner}.") if path.startswith(f"{owner}.") else ""


def _target(path: str, owner: str) -> str:
    return _below(path, owner) or (f"/{path}" if path else "")


def _attribute_path(node: fx.Node) -> str:
    """The path of an attribute; a constant of the model's code has none but what torch.fx calls it, without number."""
    path = str(node.target)
    return "constant" if path.startswith("_tensor_constant") else path


def _unused(name: str, taken: set[str], mark: str, first: int) -> str:
    """The name, or where it is taken the name with the next number."""
    number, free = first, name
    while free in taken:
        free = f"{name}{mark}{number}"
        number += 1
    taken.add(free)
    return free


def _mark_dead(nodes: list[Node], outputs: tuple[Value, ...]) -> list[Node]:
    """Mark the operators whose result nothing in their body uses."""
    used = {value.node for value in outputs}
    marked = []
    for node in reversed(nodes):
        keeps = node.body or node.inplace or node.op in ("placeholder", "output") or node.kind in _CHECKS
        keeps = keeps or any(mark.startswith(WRITTEN_TO) for mark in node.marks)
        if node.name not in used and not keeps:
            node = replace(node, marks=(*node.marks, "dead"))
        else:
            used.update(value.node for value in node.inputs)
        marked.append(node)
    return marked[::-1]


_CHECKS = frozenset(
    {"assert", "assert_async", "check", "bool", "contains", "equal", "float", "index", "int", "item", "numpy", "tolist"}
)
"""Operators that are run for what they raise, or for what Python then does."""
