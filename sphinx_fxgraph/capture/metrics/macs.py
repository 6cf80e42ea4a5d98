"""Multiply-accumulate operations, counted as `torch.utils.flop_counter` does, which counts each as two."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from sphinx_fxgraph.capture.metrics.extra_macs import extra_macs

Operator = Any
"""A `torch._ops.OpOverload`, or a higher-order operator."""


class MacCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no types
    """Counts in ``macs`` what is run while it is entered, and in ``extra`` what the convention ``all`` adds.

    `torch.utils.flop_counter.FlopCounterMode` would import all of torch._dynamo, which takes as long as torch itself,
    and counts attention as nothing where one operator of the CPU does it.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's class has no types
        self.macs = self.extra = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: it is what imports torch._dynamo. Nothing is compiled here (torch 2.4 and later ask)."""
        return False

    def __torch_dispatch__(
        self, func: Operator, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operator and count it."""
        kwargs = kwargs or {}
        if torch.is_inference_mode_enabled() and is_composite(func):
            with self:  # one that is made of others comes here whole where autograd is off (inference_mode)
                return func.decompose(*args, **kwargs)
        out = func(*args, **kwargs)
        self.note(func, args, kwargs, out)
        return out

    def note(self, func: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> tuple[int, int]:
        """Count an operator that has run; returns its MACs, and its extra ones."""
        return self.count(macs(func, args, kwargs, out), extra_macs(func, args, out))

    def count(self, macs: int, extra: int) -> tuple[int, int]:
        """Count what is known to have run."""
        self.macs += macs
        self.extra += extra
        return macs, extra


def macs(func: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
    """The MACs of an operator that has run."""
    formula = _formula(func)
    if formula is None:
        return 0
    try:
        return int(formula(*args, **kwargs, out_val=out)) // 2
    except Exception:  # noqa: BLE001 - a formula that these operands do not fit
        return 0


@functools.cache
def is_composite(func: Operator) -> bool:
    """Whether an operator has no kernel but one that calls others."""
    return (
        isinstance(func, torch._ops.OpOverload)
        and _formula(func) is None
        and func.namespace != "prim"  # TorchScript's own, no operators of the dispatcher
        and torch._C._dispatch_has_kernel_for_dispatch_key(func._name, "CompositeImplicitAutograd")
    )


@functools.cache
def _formula(func: Operator) -> Callable[..., int] | None:
    packet = getattr(func, "overloadpacket", func)
    name = getattr(packet, "__name__", "")
    if name.startswith("_scaled_dot_product_") and "backward" not in name:
        return _attention
    formula: Callable[..., int] | None = flop_registry.get(packet)
    return formula or _UNREGISTERED.get(name)


def _attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> int:
    """Two products: the scores, and the values weighted by them; groups of queries may share a key and value."""
    return 2 * math.prod(query.shape[:-1]) * key.shape[-2] * (query.shape[-1] + value.shape[-1])


def _recurrent(sequence: torch.Tensor, weight: torch.Tensor, recurrent: torch.Tensor, *_: Any, **__: Any) -> int:
    """A layer of an LSTM, which the CPU runs as one operator: two products a step."""
    return 2 * math.prod(sequence.shape[:-1]) * (weight.numel() + recurrent.numel())


_UNREGISTERED: dict[str, Callable[..., int]] = {
    "mkldnn_rnn_layer": _recurrent,
    "mv": lambda matrix, *_, **__: 2 * matrix.numel(),
    "addmv": lambda _, matrix, *__, **___: 2 * matrix.numel(),
    "dot": lambda vector, *_, **__: 2 * vector.numel(),
    "addbmm": lambda _, left, right, *__, **___: 2 * left.numel() * right.shape[-1],
    "_trilinear": lambda left, weight, *_, **__: 2 * left.shape[0] * weight.numel(),  # nn.Bilinear
}
"""Products that torch's counter does not know."""
