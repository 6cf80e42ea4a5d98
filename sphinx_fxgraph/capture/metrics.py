"""Run a traced graph once: shapes and dtypes of each node, MACs, parameters, buffers and activation bytes."""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from msgspec.structs import replace
from torch import fx, nn
from torch.nn.parameter import is_lazy

from sphinx_fxgraph.capture.errors import by_model
from sphinx_fxgraph.capture.formatting import ITEM_SIZE, dotted, short_dtype, tensors_in, text
from sphinx_fxgraph.capture.inputs import copied
from sphinx_fxgraph.capture.mac_formulas import Operator, extra_macs, formula_of, product
from sphinx_fxgraph.capture.torch_private import (
    OpOverload,
    TorchDispatchMode,
    has_composite_kernel,
    is_traceable_wrapper_subclass,
    slow_attention,
)
from sphinx_fxgraph.capture.trace import passed_through
from sphinx_fxgraph.record.model import Module, TensorMeta, Totals, join

_TAKEN = {"_grouped_mm": torch.bfloat16}
"""By operator the dtype that its meta kernel takes. The CPU takes every floating dtype (torch 2.9 to 2.14)."""


def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator of the dispatcher, on meta also with dtypes that only real kernels take.

    Args:
        func: the operator.
        args: its positional arguments.
        kwargs: its keyword arguments.

    Raises:
        RuntimeError: the operator does not take these arguments, whatever their dtype.
    """
    taken = _TAKEN.get(getattr(getattr(func, "overloadpacket", None), "__name__", ""))
    if taken is not None:
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.is_floating_point()]
        dtypes = {tensor.dtype for tensor in tensors}
        if len(dtypes) == 1 and dtypes != {taken} and all(map(_has_no_values, tensors)):
            given = [_as(arg, taken) for arg in args]
            return _as(func(*given, **{key: _as(value, taken) for key, value in kwargs.items()}), *dtypes)
    return func(*args, **kwargs)


def _has_no_values(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is on the meta device, or a fake one."""
    return tensor.is_meta or hasattr(tensor, "fake_mode")


def _as(value: Any, dtype: torch.dtype) -> Any:
    """Return a tensor without values of the same shape and strides with another dtype; other values as they are."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=dtype, device=value.device)


class Count(NamedTuple):
    """The cost of one or more operators."""

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
