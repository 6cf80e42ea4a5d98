"""Other objects for a tensor: an alias, a copy of its values as they are now, the tensors that it is made of."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from sphinx_fxgraph.capture.torch_private import without_dispatch, without_functions

_MOST_COPIED = 1 << 22
"""So many elements of a tensor are copied, to be compared with those of another run."""


def snapshot(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor with the values that another has now; a large one itself, which may be written later."""
    if type(tensor) is not torch.Tensor or tensor.is_meta or tensor.layout != torch.strided:
        return tensor
    if tensor.numel() > _MOST_COPIED:
        return tensor
    try:
        with without_functions(), without_dispatch():  # it is no operator of the model
            return tensor.detach().clone()
    except (RuntimeError, NotImplementedError):
        return tensor


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """Return an alias of the tensor: another object with the same data.

    The tensor itself where its type has no views.
    """
    try:
        other: torch.Tensor = torch.ops.aten.alias(tensor)
        other.__dict__ = tensor.__dict__  # what the model's code sets on the one it finds on the other
    except (RuntimeError, NotImplementedError, AttributeError):
        return tensor
    return other


def wrapped_tensors(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the tensors that a tensor of a class of its own is made of."""
    names: Any = vars(tensor)
    with contextlib.suppress(Exception):  # a class may define this in part only
        names = tensor.__tensor_flatten__()[0]  # type: ignore[attr-defined]  # of those that wrap others
    for name in names:
        value = getattr(tensor, name, None)
        if isinstance(value, torch.Tensor):
            yield value
