"""The autograd tracer: the backward graph of one run, in the modules whose calls have made it.

The functions stand in the order of the forward pass, from the parameters to the output, as torchviz draws them. torch
numbers them as it makes them; a hook on each module notes the number at which its call begins and ends, so it is known
of every function which call it was made in.
"""

from __future__ import annotations

import bisect
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.errors import CaptureError, by_model, said
from sphinx_fxgraph.capture.formatting import dotted, meta_of, short_meta, tensors_in, text
from sphinx_fxgraph.capture.inputs import ArgumentError, bind, copied, named
from sphinx_fxgraph.capture.torch_private import sequence_number
from sphinx_fxgraph.capture.trace import Call, Calls, Frame, Trace
from sphinx_fxgraph.capture.tracers import backward
from sphinx_fxgraph.capture.tracers.backward import Function


def trace(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], leaf: Sequence[str] = (), method: str = ""
) -> Trace:
    """Run a model with gradients and read the graph that backward would go through. It is not gone through.

    Args:
        model: in the mode it is to run in; a model without parameters that want a gradient gets inputs that do.
        args: what ``forward`` is called with; they are copied.
        kwargs: and its keyword arguments.
        leaf: has no meaning here, a backward graph opens everything; a note says so.
        method: a method to call instead of ``forward``.

    Returns:
        The graph, results noted, or none and the error.
    """
    notes = ["a backward graph opens every module, so leaf patterns change nothing"] if leaf else []
    wants = not any(parameter.requires_grad for parameter in model.parameters())
    notes += ["no parameter requires a gradient, so the inputs do"] * wants
    calls = _Watch(model)
    try:
        function = getattr(model, method or "forward")
        given = [(name, _input(value, wants)) for name, value in named(function, args, kwargs)]
        by_name = dict(given)
        with torch.enable_grad(), calls.watching():
            run = function if method else model
            result = run(*(value for _, value in given[: len(args)]), **{name: by_name[name] for name in kwargs})
            result = list(result) if isinstance(result, Iterator) else result  # a generator runs while it is consumed
        roots = [tensor.grad_fn for _, tensor in pytree.tensors(result) if tensor.grad_fn is not None]
    except by_model() as error:
        failed = error if isinstance(error, ArgumentError) else CaptureError("probe", said(error), cause=error)
        return Trace(fx.Graph(), [], [], failed, probed=True, notes=tuple(notes))
    if not roots:
        nothing = CaptureError("trace", "nothing that the model returns depends on a tensor that requires a gradient")
        return Trace(fx.Graph(), [], [], nothing, probed=True, notes=tuple(notes))
    return _Graph(model, calls, given, result, roots).trace(tuple(notes))


def _input(value: Any, wants: bool) -> Any:
    """A copy of an argument, a leaf of the graph like the original."""

    def leaf(tensor: torch.Tensor) -> torch.Tensor:
        can = tensor.is_floating_point() or tensor.is_complex()
        return tensor.detach().clone().requires_grad_(tensor.requires_grad or (wants and can))

    return pytree.replaced(copied(value), leaf)


class _Watch:
    """Notes which module calls are under way, by the number that torch gives to the next function."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._counts: Counter[str] = Counter()
        self._open: tuple[Frame, ...] = ()
        self._changes: list[tuple[int, tuple[Frame, ...]]] = [(0, ())]
        self.arguments: dict[tuple[Frame, ...], list[tuple[str, Function]]] = {}
        """What each call was given that wants a gradient, by the names of the parameters of ``forward``."""

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Hook every module but the root."""
        handles = []
        for path, module in self._model.named_modules():
            if path and not isinstance(module, torch.jit.ScriptModule):  # which takes no hooks with arguments by name
                handles += [
                    module.register_forward_pre_hook(self._entering(path), with_kwargs=True, prepend=True),
                    module.register_forward_hook(self._leaving(), always_call=True),
                ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _entering(self, path: str) -> Callable[..., None]:
        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._open = (*self._open, Frame(path, dotted(type(module)), self._counts[path]))
            self._counts[path] += 1
            self._changed()
            self.arguments[self._open] = list(_given(module, args, kwargs))

        return enter

    def _leaving(self) -> Callable[..., None]:
        def leave(*_: Any) -> None:
            self._open = self._open[:-1]
            self._changed()

        return leave

    def _changed(self) -> None:
        self._changes.append((sequence_number(), self._open))

    def at(self, number: int) -> tuple[Frame, ...]:
        """The calls that a function was made in."""
        return self._changes[bisect.bisect_right(self._changes, number, key=lambda change: change[0]) - 1][1]


def _given(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Function]]:
    try:
        arguments = bind(module.forward, args, kwargs).arguments
    except (TypeError, ValueError):
        return
    for name, value in arguments.items():
        for path, tensor in pytree.tensors(value):
            if tensor.grad_fn is not None:
                yield name + "".join(map(str, path)), tensor.grad_fn


class _Graph:
    """Writes the functions down as a flat graph."""

    def __init__(
        self,
        model: nn.Module,
        calls: _Watch,
        given: Sequence[tuple[str, Any]],
        result: Any,
        roots: Sequence[Function],
    ) -> None:
        self.graph = fx.Graph()
        self.inputs: list[Any] = []
        self._model, self._watch = model, calls
        self._names = {id(tensor): name for name, tensor in model.named_parameters()}
        self._nodes: dict[Function, fx.Node] = {}
        self._inputs = {
            id(tensor): name + "".join(map(str, path))
            for name, value in given
            for path, tensor in pytree.tensors(value)
        }
        self._calls = Calls()
        for function in backward.in_order(roots):  # leaves come first
            if backward.variable(function) is None:
                self._function(function)
            else:
                self._leaf(function)
        self._output(result)

    def trace(self, notes: tuple[str, ...]) -> Trace:
        """Trace the model and return the result."""
        calls = []
        for stack, arguments in self._watch.arguments.items():
            names: dict[fx.Node, str] = {}
            for name, function in arguments:
                if function in self._nodes:  # what the output depends on
                    names.setdefault(self._nodes[function], name)
            calls.append(Call(stack, tuple(names), names=names))
        return Trace(self.graph, calls, self.inputs, probed=True, notes=notes)

    def _leaf(self, function: Function) -> None:
        """A tensor that gradients are accumulated in: a parameter, an input, or one of the model's code."""
        tensor = backward.variable(function)
        assert tensor is not None
        name = self._names.get(id(tensor), "")
        if not name and id(tensor) in self._inputs:
            node = self.graph.create_node("placeholder", self._inputs[id(tensor)])
            self.inputs.append(tensor)
        else:
            if not name:
                name = f"_tensor_constant{sum(each.startswith('_tensor_constant') for each in vars(self._model))}"
                setattr(self._model, name, tensor)
            node = self.graph.create_node("get_attr", name)
        node.meta |= {"stack": (), "outputs": (meta_of(tensor),), "result": ""}
        self._nodes[function] = node

    def _function(self, function: Function) -> None:
        given = tuple(self._nodes[source] for source in backward.sources(function))
        node = self.graph.create_node("call_function", type(function), given)
        outputs = backward.results(function)
        result = f"({', '.join(map(short_meta, outputs))})" if len(outputs) > 1 else ""
        stack = self._calls.go(self._watch.at(function._sequence_nr()))
        node.meta |= {"stack": stack, "outputs": outputs, "result": result}
        self._nodes[function] = node

    def _output(self, result: Any) -> None:
        """The output, of which what has no gradient stands there as text."""

        def node(tensor: torch.Tensor) -> Any:
            return self._nodes.get(tensor.grad_fn, tensor)

        replaced = pytree.replaced(result, node)
        if replaced is result:  # an object: only its tensors can be told
            replaced = [node(tensor) for _, tensor in pytree.tensors(result)]
        last = self.graph.create_node("output", "output", (replaced,))
        written = "" if isinstance(result, torch.Tensor) else text(result)
        last.meta |= {"stack": (), "outputs": tensors_in(result), "result": written}
