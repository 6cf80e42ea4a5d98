"""Ground facts of a model, taken by plain PyTorch: forward hooks on one run of the model, and nothing of our tracers.

The hooks are torch's global ones, so that a module that is registered nowhere is seen as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.nn.utils.parametrize import is_parametrized as parametrized

from sphinx_fxgraph.dtypes import DTYPES

Tensors = tuple[str, ...]
"""Tensors as they are written in specs, ``f32[1, 3]``."""

_SHORT = {getattr(torch, name): short for short, name in DTYPES.items() if hasattr(torch, name)}


@dataclass
class ModuleCall:
    """One call of a module as the hooks saw it."""

    path: str
    """The first path that the module is registered at; ``?`` and its class where it is registered nowhere."""
    type: str
    outputs: Tensors = ()
    calls: list[ModuleCall] = field(default_factory=list)
    """The calls of modules inside."""


@dataclass(frozen=True)
class Facts:
    """What one plain forward did."""

    call: ModuleCall
    """The call of the model itself."""
    outputs: Tensors
    parameters: int
    """``sum(p.numel())``."""


def plain_forward(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Facts:
    """Run the model once under hooks.

    Raises:
        Exception: whatever the model raises.
    """
    paths = paths_of(model)
    top = ModuleCall("", "")
    stack = [top]

    def before(module: nn.Module, _args: object) -> None:
        name = _class_of(module)
        call = ModuleCall(paths.get(id(module), f"?{name}"), name)
        stack[-1].calls.append(call)
        stack.append(call)

    def after(_module: nn.Module, _args: object, result: object) -> None:
        stack.pop().outputs = tuple(tensors_in(result))

    handles = [register_module_forward_pre_hook(before), register_module_forward_hook(after)]
    try:
        with torch.no_grad():
            result = model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return Facts(top.calls[0], tuple(tensors_in(result)), sum(tensor.numel() for tensor in model.parameters()))


def _class_of(module: nn.Module) -> str:
    """Return the name of a module's class, of a parametrized one that of the class it was before."""
    cls = type(module)
    return (cls.__mro__[1] if cls.__module__ == "torch.nn.utils.parametrize" and parametrized(module) else cls).__name__


def paths_of(model: nn.Module) -> dict[int, str]:
    """Where each module is registered first, by its identity."""
    return {id(module): path for path, module in model.named_modules()}


def tensors_in(value: object, around: tuple[int, ...] = ()) -> Iterator[str]:
    """The tensors in a result, whatever it is made of, in its own order; in an object that of its attributes."""
    if isinstance(value, torch.Tensor):
        dims = ", ".join(map(str, value.shape))
        yield f"{_SHORT.get(value.dtype, str(value.dtype).removeprefix('torch.'))}[{dims}]"
    elif id(value) not in around:  # an object may lead back to itself
        for item in _parts(value):
            yield from tensors_in(item, (*around, id(value)))


def _parts(value: object) -> Iterable[object]:
    """What a value is made of: a cache of keys and values, for example, is an object with a list of objects."""
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, type | nn.Module | ModuleType | FunctionType | torch.Generator):
        return ()
    if dataclasses.is_dataclass(value):
        return [getattr(value, entry.name, None) for entry in dataclasses.fields(value)]
    return getattr(value, "__dict__", {}).values()
