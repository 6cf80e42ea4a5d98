"""Results on the meta device, remembered: of a function and its arguments' shapes the result's shapes follow.

torch has many operators on meta in Python only, at milliseconds a call, and models repeat their blocks.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.metrics.macs import Count
from sphinx_fxgraph.capture.metrics.meta_kernels import call
from sphinx_fxgraph.capture.metrics.products import Operator
from sphinx_fxgraph.capture.recorder.functions import is_own
from sphinx_fxgraph.capture.recorder.provenance import storage_of
from sphinx_fxgraph.capture.torch_private import CAN_REMEMBER, is_transforming, without_dispatch

_PLAIN = frozenset(
    {type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format}
)
_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
_SHARE = frozenset({"_unsafe_view", "lift_fresh", "lift"})
"""What a result may share with an argument though the schema does not say so."""

_MOST = 10_000
_results: dict[object, object] = {}
_calls: dict[object, Known] = {}
"""Of at most so many operators and functions: for a model's run, the replay of its graph, and the model's next call."""

_META = torch.device("meta")


class _UnknownError(Exception):
    """Something else than tensors on meta and plain values."""


class Known(NamedTuple):
    """What a call of a function did, and what it gave."""

    cost: Count
    random: bool
    made: object = None
    """Its result as a key; nothing where that shares memory with an argument, so that the function is to run again."""

    def result(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function gives this time, found without a look at the operators of the dispatcher."""
        with without_dispatch():
            return function(*args, **kwargs) if self.made is None else _made(self.made)


def key_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """All that decides what a function of torch's own does; nothing where that is more than what stands in here.

    With gradients a result is more than its shape, and in a transformation of `torch.func` a tensor is.
    """
    if not CAN_REMEMBER or torch.is_grad_enabled() or is_transforming() or not is_own(function):
        return None
    return _call_key(function, args, kwargs)


def known(key: object) -> Known | None:
    """What a call does, if one like it was seen."""
    return _calls.get(key)


def learn(key: object, known: Known, result: Any, given: Iterable[torch.Tensor]) -> None:
    """Remember a call that wrote into nothing and read nothing but the tensors it was given."""
    found = [tensor for _, tensor in pytree.tensors(result)]
    storages = {storage_of(tensor) for tensor in (*given, *found)}
    with contextlib.suppress(_UnknownError, RuntimeError):
        if found and len(storages) == len({storage_of(tensor) for tensor in given}) + len(found):
            known = known._replace(made=_key(result))
    _remember(_calls, key, known)


def run(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an operator of the dispatcher gives; on meta it is run but once."""
    if not _is_pure(operator):
        return call(operator, args, kwargs)
    key = _call_key(operator, args, kwargs)
    if key is None:
        return call(operator, args, kwargs)
    if key in _results:
        return _made(_results[key])
    result = call(operator, args, kwargs)
    with contextlib.suppress(_UnknownError, RuntimeError):
        _remember(_results, key, _key(result))
    return result


def _remember(known: dict[object, Any], key: object, value: object) -> None:
    if len(known) >= _MOST:
        known.clear()
    known[key] = value


def _call_key(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    try:
        given = _key(args)
        named = tuple((name, _key(value)) for name, value in kwargs.items()) if kwargs else ()
    except (_UnknownError, RuntimeError):  # a sparse tensor has no strides
        return None
    return function, given, named, torch.get_default_dtype()  # which quotients of integers have


def _key(value: Any) -> object:
    """A value as its kind and what else there is to it: of a tensor on meta size, strides and dtype."""
    kind = type(value)
    if kind in _TENSORS:
        if not value.is_meta or value.is_conj() or value.is_neg():
            raise _UnknownError
        return torch.Tensor, value.shape, value.stride(), value.dtype
    if kind in _PLAIN:
        return kind, value
    if kind is list or kind is tuple:
        return kind, tuple(map(_key, value))
    raise _UnknownError


def _made(key: Any) -> Any:
    kind, value, *rest = key
    if kind is torch.Tensor:
        return torch.empty_strided(value, rest[0], dtype=rest[1], device=_META)
    return kind(map(_made, value)) if kind is list or kind is tuple else value


@functools.cache
def _is_pure(operator: Operator) -> bool:
    """Whether an operator of torch's own neither writes into its arguments nor gives parts of them."""
    schema = getattr(operator, "_schema", None)
    if schema is None or getattr(operator, "namespace", "") != "aten" or schema.is_mutable:
        return False
    if operator.overloadpacket.__name__ in _SHARE:
        return False
    return all(each.alias_info is None for each in (*schema.arguments, *schema.returns))
