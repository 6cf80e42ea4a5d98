"""The module calls of a run: which are running, what each was given and what it returned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.formatting import dotted
from sphinx_fxgraph.capture.inputs import arrivals
from sphinx_fxgraph.capture.recorder.dispatch_mode import DispatchMode
from sphinx_fxgraph.capture.recorder.graph_writer import GraphWriter
from sphinx_fxgraph.capture.recorder.provenance import UNREGISTERED, Attributes
from sphinx_fxgraph.capture.trace import Call, Frame, passed_through

if TYPE_CHECKING:
    import torch
    from torch import fx, nn


class Frames:
    """The module calls of a run.

    Args:
        model: the model, whose own call is no frame.
        attributes: the paths of modules.
        writer: the graph.
        dispatch: tells the model's code from what is written down of it.
    """

    def __init__(self, model: nn.Module, attributes: Attributes, writer: GraphWriter, dispatch: DispatchMode) -> None:
        self.stack: tuple[Frame, ...] = ()
        """The calls that are running, outermost first."""
        self.calls: list[Call] = []
        """All calls, in the order in which they began."""
        self._attributes, self._writer, self._dispatch = attributes, writer, dispatch
        self._counts: Counter[str] = Counter()
        self._running: list[tuple[str, nn.Module]] = [("", model)]

    def has(self, module: nn.Module) -> bool:
        """Return whether a call of a module is running."""
        return any(module is each for _, each in self._running)

    def path(self, module: nn.Module) -> str:
        """Return the path of a module, which may be called after the module that calls it."""
        return self._attributes.module(module, self._running)

    def marks(self, path: str) -> tuple[str, ...]:
        """Return the marks of a module."""
        return (UNREGISTERED,) if path in self._attributes.strays else ()

    def run(
        self,
        function: Callable[[], Any],
        module: nn.Module,
        path: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        method: str = "forward",
        where: str = "",
    ) -> Any:
        """Run a call of a module, or of a method of it, as a frame.

        Args:
            function: does it.
            module: the module.
            path: its path.
            args: what the method is given.
            kwargs: and by keyword.
            method: its name.
            where: the function and line that calls it.

        Returns:
            The result of the function, whose tensors all come from this call.
        """
        with self._dispatch.node():
            given = self._writer.arguments(args, kwargs)
        outer, self.stack = self.stack, (*self.stack, Frame(path, dotted(type(module)), self._counts[path], method))
        self._counts[path] += 1
        call = Call(self.stack, *given, marks=self.marks(path), where=where)
        call.names = arrivals(module, call.args, call.kwargs, method)
        self.calls.append(call)
        self._running.append((path, module))
        try:
            result = self._owned(function())
            with self._dispatch.node():
                call.returned = self._writer.nodes(result)
        finally:
            self._running.pop()
            self.stack = outer
        return result

    def generate(
        self, generator: Any, module: nn.Module, path: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Generator[Any, Any, Any]:
        """Yield what a ``forward`` yields: each step of it is a call, of which the first takes the arguments."""
        sent: list[Any] = [None]
        while True:
            try:
                result = self.run(lambda: generator.send(sent[0]), module, path, args, kwargs)
            except StopIteration as end:
                return end.value
            sent[0], args, kwargs = (yield result), (), {}

    def _owned(self, result: Any) -> Any:
        """Return a result whose tensors all come from the call that returns it (see `passed_through`)."""
        marked: dict[fx.Node, torch.Tensor] = {}

        def owned(tensor: torch.Tensor) -> torch.Tensor:
            node = self._writer.node_of(tensor)
            if node.op != "get_attr" and node.meta["stack"][: len(self.stack)] == self.stack:
                return tensor
            if node not in marked and self._writer.identity:
                return tensor
            if node not in marked:
                mark = self._writer.add("call_function", passed_through, (node,), {}, stack=self.stack, macs=None)
                other = self._writer.alias(tensor)
                marked[node] = other if other is tensor else self._writer.gives(mark, other)
            return marked[node]

        with self._dispatch.node():
            return pytree.replaced(result, owned)
