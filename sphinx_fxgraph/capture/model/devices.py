"""Where a model's tensors are made: without values on the meta device or as fake tensors, or for real on the CPU.

Fake tensors (`torch._subclasses.fake_tensor`) have no values either, but say that they are on the CPU, which suits a
model that mixes its tensors with tensors of the CPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree  # what torch.fx itself uses for nested values


@dataclass(frozen=True)
class Place:
    """Where tensors are made."""

    device: str
    """``meta``, ``cpu`` or ``fake``."""
    mode: Any = None
    """A `FakeTensorMode`, where they are fake."""

    @classmethod
    def of(cls, device: str) -> Place:
        """A place of its own, as fake tensors of two modes do not mix."""
        if device != "fake":
            return cls(device)
        from torch._subclasses.fake_tensor import FakeTensorMode  # they import sympy: only where it is asked for
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        return cls(device, FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv()))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run a model that was made here."""
        with self.mode or contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """Make tensors here, where the code does not say otherwise."""
        with self.running(), torch.device("cpu" if self.mode else self.device):
            yield

    def moved(self, values: Any) -> Any:
        """Values with their tensors here: a function may have brought real ones along."""
        if self.device == "cpu":
            return values
        move = self.mode.from_tensor if self.mode else lambda tensor: tensor.to("meta")
        return pytree.tree_map_only(torch.Tensor, move, values)


def cast_model(model: nn.Module, dtype: torch.dtype, fake: bool) -> None:
    """Cast a model; of one that is fake each tensor by itself, as `nn.Module.to` cannot swap fake ones."""
    if not fake:
        model.to(dtype=dtype)
        return
    done: dict[torch.Tensor, torch.Tensor] = {}  # a tensor that is shared stays shared
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and (tensor.is_floating_point() or tensor.is_complex()):
                    if tensor not in done:
                        new = tensor.detach().to(dtype)
                        is_parameter = isinstance(tensor, nn.Parameter)
                        done[tensor] = nn.Parameter(new, tensor.requires_grad) if is_parameter else new
                    tensors[name] = done[tensor]  # type: ignore[assignment]  # a parameter among parameters
