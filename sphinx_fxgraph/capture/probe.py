"""The probe: run a traced graph once and note what every node gives, its shapes, dtypes and MACs, never its values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode

from sphinx_fxgraph.capture.naming import tensors_in, text


class ProbeError(Exception):
    """A node failed; ``__cause__`` says how."""

    def __init__(self, node: fx.Node) -> None:
        super().__init__(node.name)
        self.node = node


def probe(model: nn.Module, graph: fx.Graph, inputs: Sequence[Any]) -> None:
    """Run ``graph`` on ``inputs`` and write into each node's ``meta`` what it gave.

    ``outputs`` are the tensors in the result; ``result`` is the result as text where it is not one tensor; ``macs`` are
    multiply-accumulate operations, which is half of what `torch.utils.flop_counter` counts; a node that fails gets the
    mark ``failed``, and what was computed before it stays.

    Args:
        model: what the graph's modules and attributes are looked up in.
        graph: a whole graph, or the part that could be traced.
        inputs: a value for each placeholder; they are copied, since operators may write in place.

    Raises:
        ProbeError: a node failed.
    """
    copies = [pytree.tree_map_only(torch.Tensor, torch.clone, value) for value in inputs]
    with torch.no_grad(), _slow_attention(), FlopCounterMode(display=False) as counter:
        _Probe(model, graph, counter).run(*copies)


@contextlib.contextmanager
def _slow_attention() -> Iterator[None]:
    """Keep attention in operators that the counter knows; the fused one is one operator that it counts as nothing."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


_READS = frozenset({"item", "tolist", "numpy", "equal", "allclose", "is_nonzero", "bool", "float", "int"})
"""Operators that make plain Python values of what is in a tensor (the last three where they are Python's)."""


class _Probe(fx.Interpreter):
    def __init__(self, model: nn.Module, graph: fx.Graph, counter: FlopCounterMode) -> None:
        super().__init__(model, graph=graph)
        self.extra_traceback = False  # the model's own traceback says where; torch.fx would write to the message
        self._counter = counter
        self._read: set[fx.Node] = set()

    def run_node(self, n: fx.Node) -> Any:
        """Run one node and note its result."""
        before = self._counter.get_total_flops()
        try:
            result = super().run_node(n)
        except Exception as error:
            n.meta["marks"] = (*n.meta.get("marks", ()), "failed")
            raise ProbeError(n) from error
        n.meta["outputs"] = tensors_in(result)
        n.meta["result"] = "" if isinstance(result, torch.Tensor) else self._text(n, result)
        macs = (self._counter.get_total_flops() - before) // 2
        n.meta["macs"] = macs or None
        return result

    def _text(self, node: fx.Node, result: Any) -> str:
        """A result that is no tensor; one that was read from a tensor's values only by its type."""
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        if name in _READS or (not node.meta["outputs"] and not self._read.isdisjoint(node.all_input_nodes)):
            self._read.add(node)
            return type(result).__name__
        return text(result)

    def fetch_attr(self, target: str) -> Any:
        """A module or attribute by its dotted path; the empty path is the model itself."""
        return super().fetch_attr(target) if target else self.module
