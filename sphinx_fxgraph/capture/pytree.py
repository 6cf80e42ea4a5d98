"""Flatten nested values: tuples, lists, dicts, dataclasses, and the objects that models pass around."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import torch
from torch import fx, nn

_DEEPEST = 10
"""Levels of a value that are looked into."""


class Step(NamedTuple):
    """One step into a value: an item, or an attribute."""

    key: Any
    attribute: bool = False

    def __str__(self) -> str:
        """As it is written behind the value: ``[0]``, ``['mask']``, ``.logits``."""
        return f".{self.key}" if self.attribute else f"[{self.key!r}]"


Path = tuple[Step, ...]


def items(value: Any) -> list[tuple[Step, Any]]:
    """Return the items of a container by key; empty for any other value.

    Of a plain object, which may be anything, only what could hold a tensor.
    """
    if isinstance(value, list | tuple):
        return [(Step(number), item) for number, item in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = [(Step(each.name, True), getattr(value, each.name, None)) for each in dataclasses.fields(value)]
        return [entry for entry in found if entry[1] is not None]
    if isinstance(value, Mapping):
        return [(Step(key if _is_plain(key) else number), item) for number, (key, item) in enumerate(value.items())]
    if isinstance(value, _CLOSED) or not hasattr(value, "__dict__"):
        return []
    return [(Step(name, True), item) for name, item in vars(value).items() if not isinstance(item, PLAIN)]


PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_CLOSED = (
    *PLAIN,
    *_SYMBOLS,
    torch.Tensor,
    nn.Module,
    fx.Node,
    fx.Proxy,
    torch.Generator,
    type,
    FunctionType,
    ModuleType,
)
"""What is no container, though Python may say that it has attributes."""


def _is_plain(key: Any) -> bool:
    """Return whether a key reads the same on every machine."""
    return all(map(_is_plain, key)) if isinstance(key, tuple) else isinstance(key, PLAIN)


def tensors(value: Any) -> list[tuple[Path, torch.Tensor]]:
    """The tensors in a value, with the path that leads to each."""
    if isinstance(value, torch.Tensor):
        return [((), value)]
    return list(each_tensor(value))


def each_tensor(value: Any) -> Iterator[tuple[Path, torch.Tensor]]:
    """Yield the tensors one by one."""
    return _tensors(value, (), [])


def _tensors(value: Any, path: Path, around: list[int]) -> Iterator[tuple[Path, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield path, value
    elif len(path) < _DEEPEST and id(value) not in around:  # an object may lead back to itself
        around.append(id(value))
        for step, item in items(value):
            if not isinstance(item, PLAIN):
                yield from _tensors(item, (*path, step), around)
        around.pop()


def replaced(value: Any, new: Callable[[torch.Tensor], torch.Tensor], around: tuple[int, ...] = ()) -> Any:
    """A value with other tensors in it: the same object where none is new, or where it is no tuple, list or dict."""
    if isinstance(value, torch.Tensor):
        return new(value)
    if id(value) in around:  # a container that is in itself
        return value
    around = (*around, id(value))
    if type(value) is dict:
        entries = {key: replaced(item, new, around) for key, item in value.items()}
        return value if all(entries[key] is item for key, item in value.items()) else entries
    is_named = isinstance(value, tuple) and hasattr(value, "_fields")
    if type(value) in (tuple, list) or is_named:
        fresh = [replaced(item, new, around) for item in value]
        if all(a is b for a, b in zip(fresh, value, strict=True)):
            return value
        return type(value)._make(fresh) if is_named else type(value)(fresh)  # a class may check what it is given
    return value
