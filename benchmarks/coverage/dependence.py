"""Which inputs a model's outputs depend on, found by changing them, against the edges of its record."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

from sphinx_fxgraph.record.model import Record

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from random_check import sources

_MOST_PARAMETERS = 50_000_000
"""A larger model is not run again for each of its inputs."""


def unreached(record: Record, model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each argument that decides what the model returns, and that no edge leads from.

    Args:
        record: of the model.
        model: on the CPU; it is run once more for each argument with floating-point tensors.
        args: what it is called with.
        kwargs: the same by name.
    """
    tensors = [*tree_leaves((args, dict(kwargs))), *model.parameters()]
    small = sum(parameter.numel() for parameter in model.parameters()) <= _MOST_PARAMETERS
    if not small or any(isinstance(tensor, torch.Tensor) and tensor.is_meta for tensor in tensors):
        return []
    try:
        bound = inspect.signature(model.forward).bind(*args, **kwargs)
    except TypeError:
        return []
    before, again = _outputs(model, bound), _outputs(model, bound)
    if _differ(before, again):  # it has a generator of its own, or a state
        return []
    drawn = sources(record)
    return [f"no path from {name}" for name in _deciding(model, bound, before) if name not in drawn]


def _deciding(model: nn.Module, bound: inspect.BoundArguments, before: list[torch.Tensor]) -> Iterator[str]:
    variadic = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    for name, value in dict(bound.arguments).items():
        if bound.signature.parameters[name].kind in variadic:
            continue
        bound.arguments[name] = tree_map(_changed, value)
        with contextlib.suppress(Exception):  # a value that the model does not take
            if _differ(before, _outputs(model, bound)):
                yield name
        bound.arguments[name] = value


def _changed(value: Any) -> Any:
    """Return other numbers for a tensor of floating-point ones."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value + torch.randn(value.shape, generator=torch.Generator().manual_seed(1)).to(value.dtype)


def _outputs(model: nn.Module, bound: inspect.BoundArguments) -> list[torch.Tensor]:
    torch.manual_seed(0)
    with torch.no_grad():
        result = model(*bound.args, **bound.kwargs)
    found = tree_leaves(dict(result) if isinstance(result, Mapping) else getattr(result, "__dict__", result))
    return [leaf.clone() for leaf in found if isinstance(leaf, torch.Tensor)]


def _differ(one: list[torch.Tensor], two: list[torch.Tensor]) -> bool:
    if [tensor.shape for tensor in one] != [tensor.shape for tensor in two]:
        return True
    return not all(torch.equal(left.nan_to_num(), right.nan_to_num()) for left, right in zip(one, two, strict=True))
