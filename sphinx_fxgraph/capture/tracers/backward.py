"""The backward graph of any tensors, as it stands after a forward pass that nobody watched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.formatting import meta_of, short_meta
from sphinx_fxgraph.capture.tracers import gradients
from sphinx_fxgraph.capture.tracers.gradients import Function
from sphinx_fxgraph.record.autograd_graph import BackwardNode, Edge, Role
from sphinx_fxgraph.record.model import TensorMeta

if TYPE_CHECKING:
    import torch


def read(
    output: Any, params: Mapping[str, torch.Tensor], *, show_attrs: bool, show_saved: bool, most: int
) -> tuple[BackwardNode, ...]:
    """What hangs on the tensors in ``output``, sources first. Nothing of it is kept.

    Args:
        output: a tensor, or anything that holds some.
        params: the names of tensors.
        show_attrs: read what functions have kept besides tensors.
        show_saved: look at the tensors that they have kept.
        most: characters of an attribute.

    Raises:
        TypeError: there is no tensor.
    """
    found = pytree.tensors(output)
    if not found:
        raise TypeError(f"there is no tensor in the output, which is of type {type(output).__qualname__}")
    graph = _Graph(params, show_attrs, show_saved, max(most, 3))
    graph.functions([tensor for _, tensor in found])
    for path, tensor in found:
        graph.output("output" + "".join(map(str, path)), tensor)
    return tuple(graph.nodes)


class _Graph:
    def __init__(self, params: Mapping[str, torch.Tensor], show_attrs: bool, show_saved: bool, most: int) -> None:
        self.nodes: list[BackwardNode] = []
        self._names: dict[int, str] = {}
        for name, tensor in params.items():
            self._names.setdefault(id(tensor), name)
        self._show_attrs, self._show_saved, self._most = show_attrs, show_saved, most
        self._functions: dict[Function, str] = {}
        self._tensors: dict[torch.Tensor, str] = {}

    def functions(self, outputs: Sequence[torch.Tensor]) -> None:
        """Every function behind some tensors, and behind those that they are views of."""
        around = [*outputs, *(tensor._base for tensor in outputs if tensor._base is not None)]
        order = gradients.in_order(tensor.grad_fn for tensor in around if tensor.grad_fn is not None)
        frames = gradients.frames(order, self._names)
        for function in order:
            frame = frames.get(function, "")
            tensor = gradients.variable(function)
            if tensor is not None:
                name = self._add(
                    "parameter", self._name(tensor, "leaf"), (_line(tensor), "AccumulateGrad"), frame=frame
                )
                self._tensors[tensor] = self._functions[function] = name
                continue
            edges = [Edge(self._functions[source]) for source in gradients.sources(function)]
            edges += [Edge(name, "saved") for name in self._saved(function, frame)]
            lines = tuple(map(_words, gradients.results(function)))
            kept = gradients.attributes(function) if self._show_attrs else {}
            attributes = tuple((key, self._cut(value)) for key, value in kept.items())
            name = self._add("function", type(function).__name__, lines, attributes, frame, edges)
            self._functions[function] = name

    def output(self, title: str, tensor: torch.Tensor) -> None:
        """One tensor of the output, with the base it is a view of."""
        edges = [*self._made(tensor), *(Edge(name, "view") for name in self._base(tensor))]
        lines = [_line(tensor)]
        if tensor.grad_fn is None and tensor not in self._tensors:
            lines.append("a leaf" if tensor.requires_grad else "requires no gradient")
        self._add("output", self._name(tensor, title), lines, edges=edges)

    def _made(self, tensor: torch.Tensor) -> Iterator[Edge]:
        """Where a tensor comes from."""
        if tensor.grad_fn is not None:
            yield Edge(self._functions[tensor.grad_fn])
        elif tensor in self._tensors:
            yield Edge(self._tensors[tensor])

    def _base(self, tensor: torch.Tensor) -> Iterator[str]:
        base = tensor._base
        if base is None:
            return
        if base not in self._tensors:
            edges = list(self._made(base))
            self._tensors[base] = self._add("base", self._name(base, "base"), (_line(base),), edges=edges)
        yield self._tensors[base]

    def _saved(self, function: Function, frame: str) -> Iterator[str]:
        for key, kept in gradients.saved(function) if self._show_saved else ():
            if isinstance(kept, str):
                yield self._add("saved", key, (kept,), frame=frame)
            else:
                name = self._name(kept, "")
                yield self._add("saved", f"{key} = {name}" if name else key, (_line(kept),), frame=frame)

    def _name(self, tensor: torch.Tensor, otherwise: str) -> str:
        return self._names.get(id(tensor), otherwise)

    def _cut(self, text: str) -> str:
        return text if len(text) <= self._most else text[: self._most - 1] + "…"

    def _add(
        self,
        role: Role,
        title: str,
        lines: Sequence[str],
        attributes: tuple[tuple[str, str], ...] = (),
        frame: str = "",
        edges: Iterable[Edge] = (),
    ) -> str:
        name = f"n{len(self.nodes) + 1}"
        once = tuple(dict.fromkeys(edges))
        self.nodes.append(BackwardNode(name, role, title, tuple(lines), attributes, frame, once))
        return name


def _line(tensor: torch.Tensor) -> str:
    return _words(meta_of(tensor))


def _words(meta: TensorMeta) -> str:
    """``f32[1, 64]``; a shape that is empty says so."""
    return short_meta(meta) if meta.shape else f"scalar {meta.dtype}"
