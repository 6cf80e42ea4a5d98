"""Which node made a tensor, also after something was written into its storage by another name."""

from __future__ import annotations

import weakref
from typing import NamedTuple

import torch
from torch import fx

from sphinx_fxgraph.capture.pytree import Path


class Origin(NamedTuple):
    """Where a tensor comes from."""

    node: fx.Node
    path: Path = ()
    """Where in the node's result it stands."""


class Origins:
    """The origins of the tensors that are alive.

    A tensor is known by its identity, for which torch gives one Python object a tensor, as long as it lives.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], Origin]] = {}
        self._sharing: dict[int, dict[int, None]] = {}
        """The tensors in each storage, the one that was bound last at the end."""

    def of(self, tensor: torch.Tensor) -> Origin | None:
        """The origin of a tensor that was bound."""
        known = self._known.get(id(tensor))
        return known[1] if known and known[0]() is tensor else None

    def bind(self, tensor: torch.Tensor, origin: Origin) -> None:
        """Note where a tensor comes from."""
        self._known[id(tensor)] = weakref.ref(tensor), origin
        storage = storage_of(tensor)
        if storage is not None:
            sharing = self._sharing.setdefault(storage, {})
            sharing.pop(id(tensor), None)
            sharing[id(tensor)] = None

    def wrote(self, tensor: torch.Tensor, node: fx.Node) -> None:
        """A node wrote into a tensor: every tensor that shows some of what was written comes from there now."""
        storage = storage_of(tensor)
        sharing = self._sharing.get(storage, {}) if storage is not None else {id(tensor): None}
        for number in list(sharing):
            other = self._known[number][0]() if number in self._known else None
            if other is None or storage_of(other) != storage:  # gone, and its number may be another's
                del sharing[number]
            elif other is tensor or overlap(tensor, other):
                self._known[number] = self._known[number][0], Origin(node)

    def of_part(self, tensor: torch.Tensor) -> Origin | None:
        """The origin of a tensor, or else of one that was bound and shows some of its elements."""
        origin, storage = self.of(tensor), storage_of(tensor)
        if origin is not None or storage is None:
            return origin
        for number in reversed(self._sharing.get(storage, {})):
            known, found = self._known[number]
            other = known()
            if other is not None and storage_of(other) == storage and overlap(tensor, other):
                return found
        return None


def storage_of(tensor: torch.Tensor) -> int | None:
    """What tells a storage from all others that are alive; nothing where a tensor has none, as a sparse one."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return None


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors in one storage share an element: no only where that is certain.

    Parts of a tensor, such as ``chunk`` gives, are boxes in one grid. The distance of their first elements, written in
    the strides of the grid as a number is in its digits, says how far the boxes are apart in each dimension.
    """
    if not a.numel() or not b.numel():
        return False
    if a.element_size() != b.element_size():
        return True
    lower, upper = sorted((a, b), key=torch.Tensor.storage_offset)
    distance = int(upper.storage_offset() - lower.storage_offset())
    if _span(lower) < distance:
        return False
    steps = sorted({step for tensor in (a, b) for size, step in _dims(tensor)}, reverse=True)
    apart = False
    for number, step in enumerate(steps):
        count, distance = divmod(distance, step)
        near, far = _extent(lower, step), _extent(upper, step)
        if number and (steps[number - 1] % step or max(near, count + far) > steps[number - 1] // step):
            return True  # no such grid, or a row that runs into the next one
        apart = apart or count >= near
    return not apart and not distance


def _dims(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """Size and stride of the dimensions along which elements differ."""
    return [(size, step) for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size > 1 and step]


def _span(tensor: torch.Tensor) -> int:
    """How far the last element is from the first."""
    return sum((size - 1) * step for size, step in _dims(tensor))


def _extent(tensor: torch.Tensor, step: int) -> int:
    """How many elements lie along a stride."""
    return 1 + sum(size - 1 for size, each in _dims(tensor) if each == step)
