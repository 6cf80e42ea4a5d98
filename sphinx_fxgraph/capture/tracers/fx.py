"""The symbolic tracer: `torch.fx.Tracer` with a leaf policy, the calls of modules noted.

It is literal torch.fx: what ``torch.fx.symbolic_trace(model).graph`` shows, at full depth. Two things differ, both in
what the model is called with. An argument that is not given keeps its default instead of becoming a placeholder, and
one that holds no tensor is taken as it is (torch.fx calls this partial specialisation, ``concrete_args``). And a list,
tuple or dict of tensors stays one: a placeholder for the whole and a ``getitem`` for each entry.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from types import GeneratorType
from typing import Any

import torch
from torch import fx, nn

from sphinx_fxgraph.capture.errors import by_model
from sphinx_fxgraph.capture.formatting import dotted, writes_in_place
from sphinx_fxgraph.capture.inputs import arrivals, bind
from sphinx_fxgraph.capture.recorder.patches import method_patches, patched
from sphinx_fxgraph.capture.source_location import borders, place
from sphinx_fxgraph.capture.state import untouched
from sphinx_fxgraph.capture.trace import Call, Frame, Trace, is_leaf, leaves, passed_through


def trace(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    leaf: Sequence[str] = (),
    method: str = "",
    *,
    literal: bool = True,
    buffers: bool = False,
) -> Trace:
    """Trace a model as far as torch.fx can follow it.

    Args:
        model: it is left with the constants that the graph refers to (see `untouched`).
        args: what ``forward`` is called with.
        kwargs: and its keyword arguments.
        leaf: patterns of types or paths of modules that stay closed.
        method: a method to trace instead of ``forward``.
        literal: close what torch.fx closes, and a module without children that it cannot follow. Otherwise modules are
            closed as they are for a run, and what cannot be followed is an error.
        buffers: follow buffers, too. Otherwise torch.fx computes what follows from them alone while it traces, and has
            it as a constant.

    Returns:
        The whole graph, or the part before the operator that failed, with the error.
    """
    tracer = _Tracer(args, kwargs, leaf, literal)
    tracer.traced_func_name = method or "forward"
    tracer.proxy_buffer_attributes = buffers
    error: BaseException | None = None
    with untouched(model):  # one that keeps state in attributes has symbols there now
        try:
            if not method and tracer.is_leaf_module(model, ""):
                tracer.trace_leaf(model)
            else:
                with patched([*method_patches(model, tracer.call_method)]):
                    tracer.trace(model)
        except by_model() as raised:
            error = raised
        constants = {name: value for name, value in vars(model).items() if name.startswith("_tensor_constant")}
    vars(model).update(constants)
    return Trace(tracer.graph, tracer.calls, tracer.inputs, error)


class _Tracer(fx.Tracer):
    """torch.fx's tracer; notes for every node the calls it stands in and the line it was called from."""

    def __init__(self, args: Sequence[Any], kwargs: Mapping[str, Any], leaf: Sequence[str], literal: bool) -> None:
        super().__init__()
        self.graph = fx.Graph()
        self.inputs: list[Any] = []
        self.calls: list[Call] = []
        self._args, self._kwargs = args, kwargs
        self._leaf, self._literal = tuple(leaf), literal
        self._stack: tuple[Frame, ...] = ()
        self._counts: Counter[str] = Counter()
        self._callers: list[nn.Module] = []

    # -- the leaf policy

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Return whether a module is one node (see `is_leaf`).

        One without children that torch.fx cannot follow becomes one when it is called (see `call_module`), since it is
        an operator to its owner.
        """
        return is_leaf(m, module_qualified_name, self._leaf, literal=self._literal)

    # -- calls

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Make a leaf a node, and go through any other module with its frame on the stack."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        childless = self._literal and next(m.children(), None) is None
        outer, noted = self._stack, len(self.calls)
        before = set(self.graph.nodes) if childless else set()
        try:
            result = self._call_frame(functools.partial(forward, *args, **kwargs), m, path, "forward", args, kwargs)
        except Exception:
            if not childless:
                raise
            self._stack = outer
            del self.calls[noted:]
            for node in reversed(self.graph.nodes):
                if node not in before and node.op != "get_attr":  # the base class keeps those for the next use
                    self.graph.erase_node(node)
            return self.create_proxy("call_module", path, args, kwargs)
        return self._generate(result, m, path, args, kwargs) if isinstance(result, GeneratorType) else result

    def call_method(
        self, original: Callable[..., Any], name: str, m: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Go through a method of a module with its frame on the stack, unless code of the module itself calls it."""
        run = functools.partial(original, m, *args, **kwargs)
        if m is self.root or any(m is each for each in self._callers):
            return run()
        try:
            path = self.path_of_module(m)
        except NameError:  # it is not registered
            return run()
        return run() if self.is_leaf_module(m, path) else self._call_frame(run, m, path, name, args, kwargs)

    def _call_frame(
        self,
        run: Callable[[], Any],
        m: nn.Module,
        path: str,
        method: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Run a call of a module, or of a method of it; where it fails its frame stays on the stack."""
        outer = self._stack
        self._stack = (*outer, Frame(path, dotted(type(m)), self._counts[path], method))
        self._counts[path] += 1
        where = place(sys._getframe(2), _BORDERS).get("where", "")
        call = Call(self._stack, _nodes(args), _nodes(kwargs), where=where)
        call.names = arrivals(m, call.args, call.kwargs, method)
        self.calls.append(call)
        self._callers.append(m)
        try:
            result = self._returned(run())
        finally:
            self._callers.pop()
        call.returned = _nodes(result)
        self._stack = outer
        return result

    def _generate(
        self, generator: Any, m: nn.Module, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Generator[Any, Any, Any]:
        """Give what a ``forward`` yields: each step of it is a call."""
        sent: list[Any] = [None]
        while True:  # the arguments are taken by the first step
            outer = self._stack
            try:
                result = self._call_frame(lambda: generator.send(sent[0]), m, path, "forward", args, kwargs)
            except StopIteration as end:
                self._stack = outer
                return end.value
            sent[0], args, kwargs = (yield result), (), {}

    def _returned(self, result: Any) -> Any:
        """A result whose values all come from this call (see `passed_through`)."""
        marked: dict[fx.Node, fx.Proxy] = {}

        def own(value: Any) -> Any:
            if isinstance(value, fx.Proxy):
                node = value.node
                inside = node.op != "get_attr" and node.meta["stack"][: len(self._stack)] == self._stack
                if not inside and node not in marked:
                    marked[node] = self.create_proxy("call_function", passed_through, (value,), {})
                return marked.get(node, value)
            if type(value) in (tuple, list):
                items = [own(item) for item in value]
                return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
            if type(value) is dict:
                entries = {key: own(item) for key, item in value.items()}
                return value if all(entries[key] is value[key] for key in value) else entries
            return value

        return own(result)

    # -- nodes

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: Any = None, type_expr: Any = None
    ) -> fx.Node:
        """A node of the graph with its stack and place."""
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        node.meta["stack"] = self._stack
        if kind in ("call_function", "call_method", "call_module"):
            node.meta.update(place(sys._getframe(1), _BORDERS, leaf=kind == "call_module"))
            module = self.root.get_submodule(target) if kind == "call_module" and target else self.root
            node.meta["inplace"] = writes_in_place(node, module)
        return node

    # -- the inputs

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,  # noqa: ARG002 - torch.fx's
        concrete_args: Any = None,  # noqa: ARG002 - torch.fx's
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Placeholders for the arguments that are given, in the order of the signature."""
        bound = bind(root_fn, (self.root, *self._args), self._kwargs)
        parameters = list(inspect.signature(root_fn).parameters.values())
        for parameter in parameters[1:]:
            if parameter.name not in bound.arguments:
                continue
            value, name = bound.arguments[parameter.name], parameter.name
            if parameter.kind is parameter.VAR_POSITIONAL:
                value = tuple(self._symbol(f"{name}_{number}", item) for number, item in enumerate(value))
            elif parameter.kind is parameter.VAR_KEYWORD:
                value = {key: self._symbol(key, item) for key, item in value.items()}
            else:
                value = self._symbol(name, value)
            bound.arguments[name] = value

        def forward() -> Any:
            return root_fn(*bound.args, **bound.kwargs)

        return forward, []

    def _symbol(self, name: str, value: Any) -> Any:
        """A placeholder in place of a value, but for one that is only plain Python data."""
        if all(isinstance(leaf, _PLAIN) for _, leaf in leaves(value)):
            return value
        self.inputs.append(value)
        return _unpacked(self.create_proxy("placeholder", name, (), {}), value)

    def trace_leaf(self, model: nn.Module) -> None:
        """The graph of a model that is a leaf itself: its inputs, one node, the output."""
        self.root = model

        def node(_: nn.Module, *args: Any, **kwargs: Any) -> fx.Proxy:
            return self.create_proxy("call_module", "", args, kwargs)

        if not isinstance(model, torch.jit.ScriptModule):  # whose forward has no signature to read
            node = functools.wraps(type(model).forward)(node)
        forward, _ = self.create_args_for_root(node, True)
        self.create_node("output", "output", (self.create_arg(forward()),), {})


_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)


def _unpacked(proxy: Any, value: Any) -> Any:
    """The structure of ``value`` with a symbol for every tensor in it, so that a model can loop over it."""
    if type(value) is dict:
        return {key: _unpacked(proxy[key], item) if _symbolic(item) else item for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_unpacked(proxy[at], item) if _symbolic(item) else item for at, item in enumerate(value)]
        return type(value)._make(items) if hasattr(value, "_make") else type(value)(items)
    return proxy


def _symbolic(value: Any) -> bool:
    return not all(isinstance(leaf, _PLAIN) for _, leaf in leaves(value))


def _nodes(value: Any) -> Any:
    """A value with nodes in place of proxies; its lists and dicts copied, since a model may change them later."""
    if isinstance(value, fx.Proxy):
        return value.node
    if isinstance(value, slice):
        return slice(_nodes(value.start), _nodes(value.stop), _nodes(value.step))
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return type(value)._make(map(_nodes, value))
    if isinstance(value, list | tuple):
        return [_nodes(item) for item in value] if isinstance(value, list) else tuple(map(_nodes, value))
    if isinstance(value, dict):
        return {key: _nodes(item) for key, item in value.items()}
    return value


_BORDERS = borders(call=[_Tracer.call_module, _Tracer.call_method], end=[_Tracer.trace_leaf, trace])
