"""A model on the meta device that asks for values, once more with fake tensors, which say that they are on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.model.devices import Place


def faked(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Place, tuple[Any, ...], dict[str, Any]]:
    """Put fake tensors in place of a model's own; `untouched` takes them out again.

    Returns:
        Where they are, and the arguments with fake tensors in place of theirs.
    """
    place = Place.of("fake")
    made: dict[int, torch.Tensor] = {}  # a tensor that is shared stays shared

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in made:
            with place.making():
                new = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
            made[id(tensor)] = nn.Parameter(new, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else new
        return made[id(tensor)]

    for module in model.modules():
        for names in (module._parameters, module._buffers, vars(module)):
            found: dict[str, Any] = {name: fake(tensor) for name, tensor in names.items() if torch.is_tensor(tensor)}
            names.update(found)
    given = {key: pytree.replaced(value, fake) for key, value in kwargs.items()}
    return place, tuple(pytree.replaced(value, fake) for value in args), given
