"""The probe: run a traced graph once and note what every node gives, its shapes, dtypes and MACs, never its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx, nn

from sphinx_fxgraph.capture.errors import by_model
from sphinx_fxgraph.capture.formatting import tensors_in, text
from sphinx_fxgraph.capture.metrics.macs import NOTHING, MacCounter
from sphinx_fxgraph.capture.model.arguments import copied
from sphinx_fxgraph.capture.torch_private import slow_attention


class ProbeError(Exception):
    """A node failed; ``__cause__`` says how."""

    def __init__(self, node: fx.Node) -> None:
        super().__init__(node.name)
        self.node = node


def probe(model: nn.Module, graph: fx.Graph, inputs: Sequence[Any]) -> None:
    """Run ``graph`` on ``inputs`` and write into each node's ``meta`` what it gave.

    ``outputs`` are the tensors in the result; ``result`` is the result as text where it is not one tensor; ``macs`` are
    multiply-accumulate operations, ``extra_macs`` what the convention ``all`` adds, ``uncounted`` what is in
    neither; a node that fails gets the mark ``failed``, and what was computed before it stays.

    Args:
        model: what the graph's modules and attributes are looked up in.
        graph: a whole graph, or the part that could be traced.
        inputs: a value for each placeholder; they are copied, since operators may write in place.

    Raises:
        ProbeError: a node failed.
    """
    with torch.no_grad(), slow_attention(), MacCounter() as counter:
        Probe(model, graph, counter).run(*map(copied, inputs))


_READS = frozenset({"item", "tolist", "numpy", "equal", "allclose", "is_nonzero", "bool", "float", "int"})
"""Operators that make plain Python values of what is in a tensor (the last three where they are Python's)."""


class Probe(fx.Interpreter):
    """Runs a graph and notes in each node what it gave.

    Args:
        model: what the graph's modules and attributes are looked up in.
        graph: the graph.
        counter: counts the MACs, entered by the caller.
    """

    def __init__(self, model: nn.Module, graph: fx.Graph, counter: MacCounter) -> None:
        super().__init__(model, graph=graph)
        self.extra_traceback = False  # the model's own traceback says where; torch.fx would write to the message
        self._counter = counter
        self._read: set[fx.Node] = set()

    def run_node(self, n: fx.Node) -> Any:
        """Run one node and note its result."""
        outer, self._counter.total = self._counter.total, NOTHING
        try:
            result = super().run_node(n)
        except by_model() as error:
            n.meta["marks"] = (*n.meta.get("marks", ()), "failed")
            raise ProbeError(n) from error
        finally:
            count, self._counter.total = self._counter.total, outer.plus(self._counter.total)
        n.meta["outputs"] = tensors_in(result)
        n.meta["result"] = "" if isinstance(result, torch.Tensor) else self._text(n, result)
        n.meta.update(count.to_meta())
        return result

    def _text(self, node: fx.Node, result: Any) -> str:
        """A result that is no tensor; one that was read from a tensor's values only by its type."""
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        if name in _READS or (not node.meta["outputs"] and not self._read.isdisjoint(node.all_input_nodes)):
            self._read.add(node)
            return type(result).__name__
        return text(result)

    def fetch_args_kwargs_from_env(self, n: fx.Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node, with lists and dicts that a function may write into, as in the model's code."""
        args, kwargs = super().fetch_args_kwargs_from_env(n)
        return tuple(map(_mutable, args)), {key: _mutable(value) for key, value in kwargs.items()}

    def fetch_attr(self, target: str) -> Any:
        """A module or attribute by its dotted path; the empty path is the model itself."""
        return super().fetch_attr(target) if target else self.module


def _mutable(value: Any) -> Any:
    if isinstance(value, list):
        return [_mutable(item) for item in value]
    if isinstance(value, dict):
        return {key: _mutable(item) for key, item in value.items()}
    return tuple(map(_mutable, value)) if type(value) is tuple else value
