"""Operators whose meta kernels refuse what the kernels of the CPU take.

A meta kernel may be written for one device's dtypes only. A shape does not depend on the dtype, so such an operator
runs on meta tensors of a dtype that is taken, and the result gets the dtype of the arguments.
"""

from __future__ import annotations

from typing import Any

import torch

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
