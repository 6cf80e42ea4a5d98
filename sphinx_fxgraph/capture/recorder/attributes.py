"""What a model's tensors and modules are called, registered or not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from sphinx_fxgraph.capture.recorder.provenance import storage_of
from sphinx_fxgraph.record.model import join

UNREGISTERED = "not registered"


class Attributes:
    """The paths of tensors and modules, by identity; of two paths the first."""

    def __init__(self, model: nn.Module) -> None:
        self.unregistered: dict[str, nn.Module] = {}
        """Modules that the model calls but does not know as its own, by the path that stands for them."""
        self.strays: set[str] = set()
        """Those of them that a model should have registered: kept in a list, or with parameters that nothing trains."""
        self._made_again: list[nn.Module] = []
        """Kept, so that their identity stays their own."""
        self._modules: dict[int, str] = {}
        self._tensors: dict[int, tuple[torch.Tensor, str, str]] = {}
        self._model = model
        self._storages: dict[int | None, str] | None = None
        self._add(model, "")

    def _add(self, module: nn.Module, path: str) -> None:
        for name, each in module.named_modules(prefix=path):
            self._modules.setdefault(id(each), name)
            for key, tensor, kind in _tensors(each):
                self._tensors.setdefault(id(tensor), (tensor, join(name, key), kind))

    def tensor(self, tensor: torch.Tensor) -> tuple[str, str]:
        """Path and kind (parameter, buffer or constant) of a tensor; empty where the model does not hold it."""
        known, path, kind = self._tensors.get(id(tensor), (None, "", ""))
        return (path, kind) if known is tensor else ("", "")

    def held_in(self, tensor: torch.Tensor) -> str:
        """Return the path of a tensor of the model that has the storage of a tensor; empty where there is none."""
        if self._storages is None:
            self._storages = {}
            for held, path, _ in self._tensors.values():
                self._storages.setdefault(storage_of(held), path)
        storage = storage_of(tensor)
        return self._storages.get(storage, "") if storage is not None else ""

    def rebound(self) -> Iterator[tuple[str, torch.Tensor, bool]]:
        """Yield the tensors that attributes of the model have now and had not when this was made.

        Yields:
            The path, the tensor, and whether it is a parameter or a buffer.
        """
        for path, module in self._model.named_modules():
            for name, tensor, kind in _tensors(module):
                if self._tensors.get(id(tensor), (None,))[0] is not tensor:
                    yield join(path, name), tensor, kind != "constant"

    def tensors(self) -> Iterator[torch.Tensor]:
        """Yield the tensors that the model holds."""
        return (tensor for tensor, _, _ in self._tensors.values())

    def has_module(self, module: nn.Module) -> bool:
        """Whether a module is registered."""
        return id(module) in self._modules

    def module(self, module: nn.Module, callers: Sequence[tuple[str, nn.Module]]) -> str:
        """The path of a module. One that is not registered is called after where it is found, or its class.

        Args:
            module: the module.
            callers: the modules that are running, outermost first, with their paths.
        """
        if id(module) not in self._modules:
            found = _found(module, callers)
            path = found or join(callers[-1][0], type(module).__name__.lower())
            if not found and _is_like(module, self.unregistered.get(path)):
                self._modules[id(module)] = path
                self._made_again.append(module)
                return path
            path = self._free(path)
            if found or next(module.parameters(), None) is not None:
                self.strays.add(path)
            self._add(module, path)
            self.unregistered.update(module.named_modules(prefix=path))  # and so they stay alive, and their identity
        return self._modules[id(module)]

    def _free(self, path: str) -> str:
        """The path, with a number where it is another's."""
        taken = {*self.unregistered, *self._modules.values()}
        names = (f"{path}_{number}" if number else path for number in itertools.count())
        return next(name for name in names if name not in taken)


def _is_like(module: nn.Module, other: nn.Module | None) -> bool:
    """Whether a module that was made for one call is another one's like: no more than an operator with its settings."""
    held = (*module.parameters(), *module.buffers(), *module.children())
    return type(module) is type(other) and not held and repr(module) == repr(other)


def _tensors(module: nn.Module) -> Iterator[tuple[str, torch.Tensor, str]]:
    """A module's own tensors: name, tensor, kind."""
    for registered, kind in ((module._parameters, "parameter"), (module._buffers, "buffer")):
        yield from ((name, tensor, kind) for name, tensor in registered.items() if tensor is not None)
    for name, value in vars(module).items():
        if isinstance(value, torch.Tensor):
            yield name, value, "constant"
        elif isinstance(value, list | tuple | dict) and not name.startswith("_"):
            yield from ((f"{name}.{key}", item, "constant") for key, item in _entries(value) if torch.is_tensor(item))


def held(module: nn.Module | None) -> Iterator[tuple[str, Any]]:
    """What a module holds itself."""
    if module is None:
        return
    yield from vars(module).items()
    yield from module._parameters.items()
    yield from module._buffers.items()


def _entries(value: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, dict) else enumerate(value)


def _found(module: nn.Module, callers: Sequence[tuple[str, nn.Module]]) -> str:
    """The path of the list, tuple or dict that a module stands in, or of the attribute that holds it unregistered."""
    for path, owner in reversed(callers):
        for name, value in vars(owner).items():
            if value is module:
                return join(path, name)
            if isinstance(value, list | tuple | dict) and not name.startswith("_"):
                for key, item in _entries(value):
                    if item is module:
                        return join(path, f"{name}.{key}")
    return ""
