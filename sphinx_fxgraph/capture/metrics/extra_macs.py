"""What the convention ``all`` counts beside multiply-accumulate operations: norms, resizing, adaptive average pooling.

It is the convention of fvcore's ``FlopCountAnalysis``, which timm's published tables are made with, to the digit:
https://github.com/facebookresearch/fvcore/blob/main/fvcore/nn/jit_handles.py. There activations and every other pooling
count nothing, so they count nothing here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn

Formula = Callable[[tuple[Any, ...], Any], int]
"""From arguments and result."""


def extra_macs(func: Any, args: tuple[Any, ...], out: Any) -> int:
    """What an operator of the dispatcher that has run counts beside its MACs."""
    formula = _formula(func)
    return formula(args, out) if formula else 0


def pooled(graph: fx.Graph, model: nn.Module) -> None:
    """Add adaptive average pooling, an element for each of its input's, to the nodes of a graph that was run.

    The dispatcher sees such pooling to one place as a mean, which may as well be one that the model has asked for.
    """
    for node in graph.nodes:
        if _pools(node, model) and node.all_input_nodes:
            meta = node.all_input_nodes[0].meta
            given = meta.get("sizes", meta.get("outputs", ()))
            elements = sum(torch.Size(d for d in meta.shape if isinstance(d, int)).numel() for meta in given[:1])
            node.meta["extra_macs"] = (node.meta.get("extra_macs") or 0) + elements or None


def _pools(node: fx.Node, model: nn.Module) -> bool:
    if node.op == "call_module":
        try:
            return isinstance(model.get_submodule(node.target) if node.target else model, _MODULES)  # type: ignore[arg-type]  # a path
        except AttributeError:  # one that the model has not registered
            return False
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return node.op.startswith("call_") and name.lstrip("_").startswith("adaptive_avg_pool")


_MODULES = nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d


@functools.cache
def _formula(func: Any) -> Formula | None:
    packet = getattr(func, "overloadpacket", func)
    return _FORMULAS.get(getattr(packet, "__name__", ""))


def _norm(args: tuple[Any, ...], _: Any) -> int:
    """Mean and variance are computed; weight and bias are applied where there are any."""
    affine = any(isinstance(arg, torch.Tensor) for arg in args[1:3])
    return int(args[0].numel()) * (5 if affine else 4)


def _layer_norm(args: tuple[Any, ...], out: Any) -> int:
    return _norm((args[0], *args[2:4]), out)


def _batch_norm(args: tuple[Any, ...], out: Any) -> int:
    """With its running statistics a scale, and a shift where it is affine."""
    training = next((arg for arg in args[5:] if isinstance(arg, bool)), False)
    return _norm(args, out) if training else int(args[0].numel()) * (1 if args[1] is None else 2)


def _resized(weight: int) -> Formula:
    return lambda _, out: weight * int(out.numel())


_FORMULAS: dict[str, Formula] = {
    "native_batch_norm": _batch_norm,
    "cudnn_batch_norm": _batch_norm,
    "native_group_norm": _norm,
    "native_layer_norm": _layer_norm,
    "upsample_nearest2d": _resized(1),
    "upsample_bilinear2d": _resized(4),
    "grid_sampler_2d": _resized(4),
}
