"""Choose where tensors are made: on the meta device, as fake tensors, or on the CPU.

Fake tensors (`torch._subclasses.fake_tensor`) have no values either, but say that they are on the CPU, which suits a
model that mixes its tensors with tensors of the CPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from sphinx_fxgraph.capture.recorder.patches import Patch, patched
from sphinx_fxgraph.capture.torch_private import fake_tensor_mode, pytree


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
        return cls(device, fake_tensor_mode())

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run a model that was made here."""
        if self.mode is None:
            yield
            return
        with self.mode, patched([Patch(nn.Module, "_apply", _applied)]):
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


def _applied(module: nn.Module, function: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> nn.Module:
    """Apply a conversion such as ``to`` or ``half`` to a module; unlike `nn.Module._apply` it can swap fake tensors."""
    done: dict[torch.Tensor, torch.Tensor] = {}  # a tensor that is shared stays shared
    for each in module.modules() if recurse else [module]:
        for tensors in (each._parameters, each._buffers):
            for name, tensor in tensors.items():
                if tensor is None:
                    continue
                if tensor not in done:
                    new = function(tensor.detach())
                    is_parameter = isinstance(tensor, nn.Parameter)
                    done[tensor] = nn.Parameter(new, tensor.requires_grad) if is_parameter else new
                tensors[name] = done[tensor]  # type: ignore[assignment]  # a parameter among parameters
        if isinstance(each, nn.RNNBase):
            each._init_flat_weights()  # which it holds beside its parameters
    return module
