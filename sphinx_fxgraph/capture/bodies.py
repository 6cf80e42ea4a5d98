"""From flat traced nodes with their module stack to bodies: the inside of each module call, equal ones shared.

The method, in four steps. Build the tree of calls from the stacks. Carry each value from the call that makes it to
the calls that use it, so that every call knows its inputs and outputs. Write each call from the inside out as a `Body`
in names of its own. Bodies that are then equal are one, since nothing in them says which call they were written for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from torch import fx, nn

from sphinx_fxgraph.capture import naming
from sphinx_fxgraph.capture.details import function_detail, module_detail
from sphinx_fxgraph.capture.flat import Call, Frame, Trace, leaves, passed_through
from sphinx_fxgraph.record import Body, BodyInput, Node, TensorMeta, Value


@dataclass(frozen=True)
class Bodies:
    """The bodies by name, the root's name, and the body of each module call by path."""

    bodies: dict[str, Body]
    root: str
    used: dict[str, str]


def find_bodies(model: nn.Module, trace: Trace) -> Bodies:
    """The bodies of a traced model, equal ones once, named after their class in order of first appearance."""
    tree = _Tree(trace)
    tree.connect()
    return _Writer(model, tree, whole=trace.error is None).write()


@dataclass(eq=False)
class _Scope:
    """A module call (the root is one): what stands in it, and the values that pass its border."""

    frame: Frame
    parent: _Scope | None = None
    noted: Call | None = None
    items: list[fx.Node | _Scope] = field(default_factory=list)
    inputs: dict[fx.Node, str] = field(default_factory=dict)
    """What comes from outside -> the parameter it arrives by, or nothing."""
    outputs: dict[fx.Node, None] = field(default_factory=dict)
    attributes: dict[fx.Node, None] = field(default_factory=dict)
    """The get_attr nodes that are written here: each scope that uses a parameter has a node of its own."""
    names: dict[fx.Node | _Scope, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return self.frame.path

    def outward(self) -> Iterator[_Scope]:
        """This scope and those it stands in, without the root."""
        scope = self
        while scope.parent is not None:
            yield scope
            scope = scope.parent


class _Tree:
    """The calls of a trace as a tree, and what flows between them."""

    def __init__(self, trace: Trace) -> None:
        self.root = _Scope(Frame("", "", 0))
        self.home: dict[fx.Node, _Scope] = {}
        self._nodes = list(trace.graph.nodes)
        self._scopes: dict[tuple[Frame, ...], _Scope] = {(): self.root}
        self._noted = {call.stack: call for call in trace.calls}
        self._attributes: dict[str, fx.Node] = {}
        for node in self._nodes:
            if node.op == "get_attr":
                self._attributes.setdefault(str(node.target), node)
            else:
                self.home[node] = self._scope(node.meta["stack"])
                self.home[node].items.append(node)

    def _scope(self, stack: tuple[Frame, ...]) -> _Scope:
        if stack not in self._scopes:
            parent = self._scope(stack[:-1])
            self._scopes[stack] = _Scope(stack[-1], parent, self._noted.get(stack))
            parent.items.append(self._scopes[stack])
        return self._scopes[stack]

    def same(self, node: fx.Node) -> fx.Node:
        """The one node that stands for all that read the same attribute."""
        return self._attributes[str(node.target)] if node.op == "get_attr" else node

    def connect(self) -> None:
        """Carry every value to where it is used: arguments first, then what is returned, then what is left."""
        scopes = [scope for scope in self._scopes.values() if scope.parent is not None]
        for scope in scopes:
            for node, name in scope.noted.names.items() if scope.noted else ():
                scope.inputs.setdefault(self.same(node), name)
        for scope in scopes:
            for node in _nodes_in(scope.noted.args, scope.noted.kwargs) if scope.noted else ():
                self._use(node, scope.parent)
        for scope in reversed(scopes):  # the innermost first
            for node in _nodes_in(scope.noted.returned) if scope.noted else ():
                self._use(node, scope.parent)
        for node in self._nodes:
            if node.op != "get_attr":
                for source in node.all_input_nodes:
                    self._use(source, self.home[node])

    def _use(self, node: fx.Node, user: _Scope | None) -> None:
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

    def _use_attribute(self, node: fx.Node, user: _Scope) -> None:
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

    def value(self, node: fx.Node, scope: _Scope) -> Value:
        """What a node is called in a scope that uses it."""
        node = self.same(node)
        if node in scope.inputs:
            return Value("", list(scope.inputs).index(node))
        if node.op == "get_attr":
            return Value(scope.names[node])
        if self.home[node] is scope:
            return self.value(node.args[0], scope) if is_mark(node) else Value(scope.names[node])  # type: ignore[arg-type]  # a mark has a node as its argument
        child = next(each for each in self.home[node].outward() if each.parent is scope)
        return Value(scope.names[child], list(child.outputs).index(node))


def is_mark(node: fx.Node) -> bool:
    """Whether a node only marks a value that a call returns as it was given."""
    return node.target is passed_through


def _nodes_in(*values: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    for _, leaf in leaves(values):
        fx.node.map_arg(leaf, found.append)  # also what stands in a slice
    return found


class _Writer:
    """Writes scopes as bodies, from the inside out."""

    def __init__(self, model: nn.Module, tree: _Tree, whole: bool) -> None:
        self._model, self._tree, self._whole = model, tree, whole
        self._known: dict[Body, str] = {}
        self._used: dict[str, str] = {}

    def write(self) -> Bodies:
        root = self._scope(self._tree.root)
        self._used[""] = root
        drafts = {name: body for body, name in self._known.items()}
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

    def _scope(self, scope: _Scope) -> str:
        """Write a scope and return the draft name of its body."""
        inner = {item: self._scope(item) for item in scope.items if isinstance(item, _Scope)}
        self._name_inputs(scope)
        self._name_items(scope)
        nodes: list[Node] = []
        read: set[fx.Node] = set()
        for item in scope.items:
            given = (
                list(item.inputs) if isinstance(item, _Scope) else [self._tree.same(n) for n in item.all_input_nodes]
            )
            for attribute in given:
                if attribute in scope.attributes and attribute not in read:
                    read.add(attribute)
                    nodes.append(self._attribute(attribute, scope))
            if isinstance(item, _Scope):
                nodes.append(self._call(item, scope, inner[item]))
            elif not is_mark(item):
                nodes.append(self._operator(item, scope))
        outputs = tuple(self._tree.value(node, scope) for node in scope.outputs)
        if self._whole:
            nodes = _mark_dead(nodes, outputs)
        inputs = tuple(BodyInput(name, node.meta.get("outputs", ())) for node, name in scope.inputs.items())
        body = Body(scope.frame.type or naming.dotted(type(self._model)), inputs, tuple(nodes), outputs)
        draft = self._known.setdefault(body, f"#{len(self._known)}")
        self._used.setdefault(scope.path, draft)
        return draft

    def _name_inputs(self, scope: _Scope) -> None:
        """What arrives by no parameter is called ``input``, ``input_1``."""
        taken = {name for name in scope.inputs.values() if name}
        for node, name in scope.inputs.items():
            scope.inputs[node] = name or _unused("input", taken, "_", 1)
            taken.add(scope.inputs[node])

    def _name_items(self, scope: _Scope) -> None:
        """Modules and attributes by their path from here, functions by their name; the former come first."""
        taken = set(scope.inputs.values())
        items = [item for item in scope.items if not (isinstance(item, fx.Node) and is_mark(item))]
        for item in items:
            if isinstance(item, _Scope) or item.op == "call_module":
                path = item.path if isinstance(item, _Scope) else str(item.target)
                name = _below(path, scope.path) or path.rpartition(".")[2] or type(self._model).__name__.lower()
                scope.names[item] = _unused(name, taken, "@", 2)
        for node in scope.attributes:
            name = _below(_attribute_path(node), scope.path) or _attribute_path(node).rpartition(".")[2]
            scope.names[node] = _unused(name, taken, "_", 1)
        for item in items:
            if isinstance(item, fx.Node) and item.op != "call_module":
                name = item.target if isinstance(item.target, str) else getattr(item.target, "__name__", "function")
                plain = name.lstrip("_") if not name.endswith("__") else name.strip("_")
                scope.names[item] = _unused(plain or name, taken, "_", 1)

    # -- one node

    def _operator(self, node: fx.Node, scope: _Scope) -> Node:
        name = scope.names[node]
        args, kwargs = naming.argument_text(node.args, naming.given(node), self._text(scope))
        values = dict.fromkeys(self._tree.value(source, scope) for source in node.all_input_nodes)
        written = Node(
            name=name,
            op=node.op,
            target=node.target if isinstance(node.target, str) else naming.function_name(node.target),
            kind=_KINDS.get(node.op, ""),
            args=args,
            kwargs=kwargs,
            inputs=tuple(values),
            outputs=node.meta.get("outputs", ()),
            result=node.meta.get("result", ""),
            inplace=node.meta.get("inplace", False),
            macs=node.meta.get("macs"),
            where=node.meta.get("where", ""),
            marks=node.meta.get("marks", ()),
        )
        if node.op == "call_module":
            return self._leaf(written, str(node.target), scope)
        if node.op in ("call_function", "call_method"):
            short = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", name)
            return replace(written, kind=naming.kind_of(short), detail=function_detail(node))
        return written

    def _leaf(self, written: Node, path: str, scope: _Scope) -> Node:
        module = self._model.get_submodule(path)
        return replace(
            written,
            target=_target(path, scope.path),
            kind=type(module).__name__,
            type=naming.dotted(type(module)),
            base=naming.base_name(type(module)),
            detail=module_detail(module),
            config=module.extra_repr(),
            parameters=tuple(naming.meta_of(tensor, name) for name, tensor in module.named_parameters()),
            buffers=tuple(naming.meta_of(tensor, name) for name, tensor in module.named_buffers()),
        )

    def _attribute(self, node: fx.Node, scope: _Scope) -> Node:
        path = _attribute_path(node)
        owner, _, name = path.rpartition(".")
        module = self._model.get_submodule(owner)
        kind = "parameter" if name in module._parameters else "buffer" if name in module._buffers else "constant"
        return Node(
            name=scope.names[node],
            op="get_attr",
            target=_target(path, scope.path),
            kind=kind,
            outputs=node.meta.get("outputs", ()),
            result=node.meta.get("result", ""),
        )

    def _call(self, call: _Scope, scope: _Scope, body: str) -> Node:
        """The node of a module call whose inside is a body."""
        module = self._model.get_submodule(call.path)
        name_of = self._text(scope)
        noted = call.noted
        args, kwargs = naming.argument_text(noted.args, noted.kwargs, name_of) if noted else ("", "")
        returned = noted.returned if noted else None
        return Node(
            name=scope.names[call],
            op="call_module",
            target=_target(call.path, scope.path),
            kind=type(module).__name__,
            type=call.frame.type,
            base=naming.base_name(type(module)),
            body=body,
            args=args,
            kwargs=kwargs,
            inputs=tuple(self._tree.value(node, scope) for node in call.inputs),
            result="" if returned is None or isinstance(returned, fx.Node) else naming.text(returned, _result_text),
        )

    def _text(self, scope: _Scope) -> Callable[[fx.Node], str]:
        """How a node is written in the arguments of what stands in a scope."""
        inputs = list(scope.inputs.values())
        many = {scope.names[item] for item in scope.items if isinstance(item, _Scope) and len(item.outputs) > 1}

        def write(node: fx.Node) -> str:
            value = self._tree.value(node, scope)
            if not value.node:
                return inputs[value.output]
            return f"{value.node}[{value.output}]" if value.node in many else value.node

        return write


_KINDS = {"placeholder": "input", "output": "output"}


def _result_text(node: fx.Node) -> str:
    tensors: tuple[TensorMeta, ...] = node.meta.get("outputs", ())
    return node.meta.get("result") or (naming.short_meta(tensors[0]) if tensors else "?")


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
        if node.name not in used and not keeps:
            node = replace(node, marks=(*node.marks, "dead"))
        else:
            used.update(value.node for value in node.inputs)
        marked.append(node)
    return marked[::-1]


_CHECKS = frozenset({"assert", "assert_async", "check"})
"""Operators that are run for what they raise."""
