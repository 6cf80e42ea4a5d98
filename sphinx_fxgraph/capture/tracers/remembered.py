"""Results on the meta device, remembered: of an operator and its arguments' shapes the result's shapes follow.

torch has many operators on meta in Python only, at milliseconds a call, and models repeat their blocks.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, NamedTuple

import torch

from sphinx_fxgraph.capture.measures.macs import Operator

_PLAIN = (type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format)
_SHARE = frozenset({"_unsafe_view", "lift_fresh", "lift"})
"""What a result may share with an argument though the schema does not say so."""


class _Shape(NamedTuple):
    """All there is to a tensor on meta."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class _UnknownError(Exception):
    """Something else than tensors on meta and plain values."""


_MOST = 10_000
_results: dict[object, object] = {}
"""Of at most so many calls: for a model's run, the replay of its graph, and the model's next call."""


def run(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an operator gives; on meta it is run but once."""
    if not _is_pure(operator):
        return operator(*args, **kwargs)
    try:
        key = operator, _key(args), tuple((name, _key(value)) for name, value in kwargs.items())
    except (_UnknownError, RuntimeError):  # a sparse tensor has no strides
        return operator(*args, **kwargs)
    if key in _results:
        return _made(_results[key])
    result = operator(*args, **kwargs)
    with contextlib.suppress(_UnknownError, RuntimeError):
        if len(_results) >= _MOST:
            _results.clear()
        _results[key] = _key(result)
    return result


def _key(value: Any) -> object:
    kind = type(value)
    if kind in (torch.Tensor, torch.nn.Parameter):
        if value.device.type != "meta" or value.is_conj() or value.is_neg():
            raise _UnknownError
        return _Shape(tuple(value.shape), value.stride(), value.dtype)
    if kind in (list, tuple):
        return kind, tuple(map(_key, value))
    if kind in _PLAIN:
        return kind, value
    raise _UnknownError


def _made(key: Any) -> Any:
    if isinstance(key, _Shape):
        return torch.empty_strided(key.size, key.stride, dtype=key.dtype, device="meta")
    kind, value = key
    return kind(map(_made, value)) if kind in (list, tuple) else value


@functools.cache
def _is_pure(operator: Operator) -> bool:
    """Whether an operator of torch's own neither writes into its arguments nor gives parts of them."""
    schema = getattr(operator, "_schema", None)
    if schema is None or getattr(operator, "namespace", "") != "aten" or schema.is_mutable:
        return False
    if operator.overloadpacket.__name__ in _SHARE:
        return False
    return all(each.alias_info is None for each in (*schema.arguments, *schema.returns))
