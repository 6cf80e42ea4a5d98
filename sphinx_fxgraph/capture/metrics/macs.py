"""Count what runs: multiply-accumulate operations, and the operators that are not counted."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from sphinx_fxgraph.capture.metrics.extra_macs import extra_macs
from sphinx_fxgraph.capture.metrics.meta_kernels import call
from sphinx_fxgraph.capture.metrics.products import Operator, formula_of, product
from sphinx_fxgraph.capture.torch_private import (
    OpOverload,
    TorchDispatchMode,
    has_composite_kernel,
    is_traceable_wrapper_subclass,
)


class Count(NamedTuple):
    """What one or more operators cost."""

    macs: int = 0
    extra_macs: int = 0
    """What the convention ``all`` adds."""
    uncounted: Mapping[str, int] = MappingProxyType({})
    """Operators that ``macs`` leaves out: their MACs in another convention by name, 0 where that is unknown."""

    def plus(self, other: Count) -> Count:
        """Return the sum of both."""
        if not other.uncounted:  # nearly all
            return Count(self.macs + other.macs, self.extra_macs + other.extra_macs, self.uncounted)
        names = self.uncounted.keys() | other.uncounted.keys()
        uncounted = {name: self.uncounted.get(name, 0) + other.uncounted.get(name, 0) for name in sorted(names)}
        return Count(self.macs + other.macs, self.extra_macs + other.extra_macs, uncounted)

    def to_meta(self) -> dict[str, Any]:
        """Return the entries for the ``meta`` of a node."""
        return {
            "macs": self.macs or None,
            "extra_macs": self.extra_macs or None,
            "uncounted": dict(self.uncounted),
        }

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Count:
        """Return what `to_meta` has written into the ``meta`` of a node."""
        return cls(meta.get("macs") or 0, meta.get("extra_macs") or 0, meta.get("uncounted") or {})


NOTHING = Count()


class MacCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no types
    """Counts in ``total`` what runs while it is entered.

    `torch.utils.flop_counter.FlopCounterMode` would import all of torch._dynamo, which takes as long as torch itself,
    and counts attention as nothing where one operator of the CPU does it.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's class has no types
        self.total = NOTHING

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: True imports torch._dynamo. Nothing is compiled here (torch 2.4 and later ask)."""
        return False

    def __torch_dispatch__(
        self, func: Operator, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operator and count it."""
        kwargs = kwargs or {}
        if torch.is_inference_mode_enabled() and is_composite(func):
            with self:  # one that is made of others comes here whole where autograd is off (inference_mode)
                return func.decompose(*args, **kwargs)
        out, count = self.run(func, args, kwargs)
        self.add(count)
        return out

    def run(self, func: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Count]:
        """Run an operator; return its result and what it costs. Operators inside a tensor subclass count one by one."""
        if any(map(is_traceable_wrapper_subclass, args)):
            with _Inner() as inner:
                return func(*args, **kwargs), inner.total
        out = self.execute(func, args, kwargs)
        return out, cost(func, args, kwargs, out)

    def execute(self, func: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator."""
        return call(func, args, kwargs)

    def add(self, count: Count) -> None:
        """Count what is known to have run."""
        self.total = self.total.plus(count)


class _Inner(MacCounter):  # type: ignore[no-untyped-call]  # torch's class has no types
    """Counts the operators that a tensor subclass runs on the tensors it wraps."""

    def __torch_dispatch__(
        self, func: Operator, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(map(is_traceable_wrapper_subclass, args)):
            return NotImplemented  # torch asks the subclass next, with this mode still on
        return super().__torch_dispatch__(func, types, args, kwargs)


def cost(func: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Return what an operator that has run costs."""
    macs, uncounted, other = product(func, args, kwargs, out)
    extra = extra_macs(func, args, out)
    return Count(macs, extra, {uncounted: other} if uncounted else {}) if macs or extra or uncounted else NOTHING


@functools.cache
def is_composite(func: Operator) -> bool:
    """Return whether an operator has no kernel but one that calls others."""
    return (
        isinstance(func, OpOverload)
        and formula_of(func) is None
        and func.namespace != "prim"  # TorchScript's own, no operators of the dispatcher
        and has_composite_kernel(func)
    )
