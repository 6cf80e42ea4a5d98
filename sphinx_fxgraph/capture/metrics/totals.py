"""Parameters, buffers, MACs and activation bytes: numbers that are right."""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import torch
from msgspec.structs import replace
from torch import fx, nn
from torch.nn.parameter import is_lazy

from sphinx_fxgraph.capture.formatting import ITEM_SIZE, dotted, short_dtype
from sphinx_fxgraph.capture.metrics.macs import NOTHING, Count
from sphinx_fxgraph.capture.trace import passed_through
from sphinx_fxgraph.record.model import Module, TensorMeta, Totals, join


def measure(
    model: nn.Module, used: Mapping[str, str] = MappingProxyType({})
) -> tuple[tuple[Module, ...], dict[str, str], Totals]:
    """Count a model's tensors, each once, however often it is registered.

    Args:
        model: the model.
        used: the body that each traced module uses, by path.

    Returns:
        The modules with the elements and bytes of their own tensors, the ties (a tensor's other path -> the path it is
        counted at), and the totals, without MACs and activation bytes.
    """
    first: dict[int, str] = {}
    modules: list[Module] = []
    dtypes: Counter[str] = Counter()
    for path, module in model.named_modules():
        counts = {"parameters": 0, "trainable": 0, "buffers": 0, "bytes": 0}
        for name, tensor, kind in _own(module):
            place = join(path, name)
            if first.setdefault(id(tensor), place) != place:
                continue
            count = _elements(tensor)
            counts[kind] += count
            counts["bytes"] += count * tensor.element_size() if count else 0  # a lazy one does not say
            if kind == "parameters":
                counts["trainable"] += count * tensor.requires_grad
                dtypes[short_dtype(tensor.dtype)] += count
        modules.append(Module(path, dotted(type(module)), used.get(path, ""), **counts))
    totals = Totals(
        parameters=sum(module.parameters for module in modules),
        trainable=sum(module.trainable for module in modules),
        buffers=sum(module.buffers for module in modules),
        bytes=sum(module.bytes for module in modules),
        dtypes={dtype: count for dtype, count in dtypes.items() if count},
    )
    return tuple(modules), _ties(model, first), totals


def _own(module: nn.Module) -> Iterable[tuple[str, torch.Tensor, str]]:
    for registered, kind in ((module._parameters, "parameters"), (module._buffers, "buffers")):
        yield from ((name, tensor, kind) for name, tensor in registered.items() if tensor is not None)


def _ties(model: nn.Module, first: Mapping[int, str]) -> dict[str, str]:
    """The tensors that are registered again, themselves or with their module."""
    everywhere = model.named_modules(remove_duplicate=False)
    paths = ((join(path, name), tensor) for path, module in everywhere for name, tensor, _ in _own(module))
    return {path: first[id(tensor)] for path, tensor in paths if first[id(tensor)] != path}


def _elements(tensor: torch.Tensor) -> int:
    return 0 if is_lazy(tensor) else tensor.numel()


def run_totals(graph: fx.Graph, totals: Totals) -> Totals:
    """The totals with MACs, and the bytes of what all operators give, of one run; as they are where there was none.

    What only takes a tensor out of a tuple, list or dict, puts it into an object or hands it on gives nothing new.
    """
    operators = [node for node in graph.nodes if node.op.startswith("call_")]
    if not all("macs" in node.meta for node in operators):  # not all were run, or they are no operators of a run
        return totals
    count = functools.reduce(Count.plus, (Count.from_meta(node.meta) for node in operators), NOTHING)
    given = (node.meta.get("sizes", node.meta.get("outputs", ())) for node in operators if not _hands_on(node))
    return replace(
        totals,
        macs=count.macs,
        extra_macs=count.extra_macs,
        uncounted=dict(count.uncounted),
        activation_bytes=sum(_bytes(meta) for outputs in given for meta in outputs),
    )


def _hands_on(node: fx.Node) -> bool:
    if node.target is passed_through or node.meta.get("takes"):
        return True
    if isinstance(node.target, type) and not issubclass(node.target, torch.autograd.Function):
        return True
    source = node.args[0] if node.args else None
    return node.target is operator.getitem and isinstance(source, fx.Node) and bool(source.meta.get("result"))


def _bytes(meta: TensorMeta) -> int:
    return math.prod(dim for dim in meta.shape if isinstance(dim, int)) * ITEM_SIZE.get(meta.dtype, 1)
