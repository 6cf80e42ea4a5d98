"""Which node made a tensor, and which nodes have written into it since, also through views.

Every write is logged with the elements it covers. A tensor that is read takes the node it was bound to and every
later write into one of its elements, so no write is lost when two views of one tensor are written.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef

from sphinx_fxgraph.capture.pytree import Path


class Origin(NamedTuple):
    """Where a tensor comes from."""

    node: fx.Node
    path: Path = ()
    """Where in the node's result it stands."""


class Region(NamedTuple):
    """The bytes of a storage that a tensor shows: a box in a grid."""

    offset: int
    dims: tuple[tuple[int, int], ...]
    """Size and stride in bytes of the dimensions along which elements differ; the bytes of an element are the last."""
    empty: bool = False

    @property
    def span(self) -> int:
        """The distance from the first byte to the last."""
        return sum((size - 1) * stride for size, stride in self.dims)

    @property
    def is_dense(self) -> bool:
        """Whether the tensor shows every byte from its first to its last."""
        reach = 0
        for size, stride in sorted(self.dims, key=lambda dim: dim[1]):
            if stride > reach + 1:
                return False
            reach += (size - 1) * stride
        return True

    def covers(self, other: Region) -> bool:
        """Whether it has every byte of another region: yes only where that is certain."""
        if self == other or other.empty:
            return True
        return self.offset <= other.offset and other.end <= self.end and self.is_dense

    @property
    def end(self) -> int:
        """The last byte."""
        return self.offset + self.span


class _Known(NamedTuple):
    """A tensor that was bound."""

    tensor: weakref.ref[torch.Tensor]
    origin: Origin
    time: int
    """When, counted in bindings and writes."""


class _Write(NamedTuple):
    """A write into a storage."""

    time: int
    node: fx.Node
    region: Region


class Writes(NamedTuple):
    """The writes into a tensor since it was bound."""

    nodes: tuple[fx.Node, ...]
    """The nodes that wrote, oldest first, each once."""
    whole: bool
    """Whether the first of them wrote every element, so that nothing is left of what was there before."""
    exact: bool
    """Whether the last of them wrote a tensor of the same shape and strides, so that its result is this tensor."""


NOTHING = Writes((), False, False)


class Provenance:
    """The origins of the tensors that are alive, and the writes into their storages.

    A tensor is identified by its Python object, of which torch keeps one per tensor as long as the tensor lives.
    """

    def __init__(self, held: Iterable[torch.Tensor] = ()) -> None:
        """Start without known tensors.

        Args:
            held: tensors of the model; writes into them are logged before anything has read them.
        """
        self._known: dict[int, _Known] = {}
        self._parts: defaultdict[int, dict[Region, tuple[Origin, int]]] = defaultdict(dict)
        """The tensors that were bound in each storage, be they alive or not, the latest at the end, with their time."""
        self._storages: dict[int, StorageWeakRef] = {}
        """Of the storages that are known; they keep the identity of a freed storage from being used again."""
        self._log: defaultdict[int, list[_Write]] = defaultdict(list)
        """The writes into each storage, oldest first."""
        self._held = {storage_of(tensor) for tensor in held} - {None}
        self._time = 0

    def of(self, tensor: torch.Tensor) -> Origin | None:
        """Return the origin that a tensor was bound to, whatever was written since."""
        known = self._known.get(id(tensor))
        return known.origin if known and known.tensor() is tensor else None

    def is_now(self, tensor: torch.Tensor, origin: Origin) -> bool:
        """Return whether a tensor is bound to an origin, and nothing was written into it since."""
        return self.of(tensor) == origin and not self.writes(tensor).nodes

    def bind(self, tensor: torch.Tensor, origin: Origin, *, first: bool = False) -> None:
        """Set the origin of a tensor as it is now.

        Args:
            tensor: the tensor.
            origin: where it comes from.
            first: whether it comes from before the run, so that all writes into it are later.
        """
        self._time += 1
        self._bind(tensor, origin, 0 if first else self._time)

    def is_logged(self, tensor: torch.Tensor, node: fx.Node) -> bool:
        """Return whether a node has written into the storage of a tensor."""
        storage = storage_of(tensor)
        return storage is not None and any(write.node is node for write in self._log.get(storage, ()))

    def _bind(self, tensor: torch.Tensor, origin: Origin, time: int) -> None:
        self._known[id(tensor)] = _Known(weakref.ref(tensor), origin, time)
        storage = storage_of(tensor)
        if storage is not None:
            self._keep(storage, tensor)
            parts, region = self._parts[storage], region_of(tensor)
            parts.pop(region, None)
            parts[region] = origin, time

    def _keep(self, storage: int, tensor: torch.Tensor) -> None:
        if storage not in self._storages:
            self._storages[storage] = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]  # torch's

    def is_reachable(self, tensor: torch.Tensor) -> bool:
        """Return whether the tensor, or one that shows some of its elements, is known or belongs to the model."""
        if self.of(tensor) is not None:
            return True
        storage = storage_of(tensor)
        return storage is not None and (storage in self._held or self._is_shared(storage, tensor))

    def is_bound(self, tensor: torch.Tensor) -> bool:
        """Return whether the tensor, or one that shows some of its elements, was bound."""
        if self.of(tensor) is not None:
            return True
        storage = storage_of(tensor)
        return storage is not None and self._is_shared(storage, tensor)

    def is_read(self, tensor: torch.Tensor) -> bool:
        """Return whether a node that takes the tensor depends on a node: it is bound, or the model's and written."""
        if self.of(tensor) is not None:
            return True
        if not self._log:
            return False
        storage = storage_of(tensor)
        return storage in self._held and storage in self._log

    def _is_shared(self, storage: int, tensor: torch.Tensor) -> bool:
        parts = self._parts.get(storage)
        if not parts:
            return False
        region = region_of(tensor)
        return any(overlap(region, part) for part in reversed(parts))

    def wrote(self, tensor: torch.Tensor, node: fx.Node) -> None:
        """Log that a node wrote into a tensor."""
        self._time += 1
        storage = storage_of(tensor)
        if storage is None:
            if self.of(tensor) is not None:
                self._bind(tensor, Origin(node), self._time)
            return
        self._keep(storage, tensor)
        self._log[storage].append(_Write(self._time, node, region_of(tensor)))

    def writes(self, tensor: torch.Tensor) -> Writes:
        """Return the writes into elements of a bound tensor since it was bound."""
        if not self._log:
            return NOTHING
        storage = storage_of(tensor)
        log = self._log.get(storage) if storage is not None else None
        known = self._known.get(id(tensor))
        if not log or known is None or log[-1].time < known.time:
            return NOTHING
        region, nodes, whole = region_of(tensor), dict[fx.Node, None](), False
        exact = False
        for write in reversed(log):
            if write.time < known.time or whole:
                break
            if overlap(write.region, region):
                exact = exact or (not nodes and write.region == region)
                nodes.setdefault(write.node)
                whole = write.region.covers(region)
        return Writes(tuple(reversed(nodes)), whole, exact) if nodes else NOTHING

    @property
    def has_writes(self) -> bool:
        """Whether anything was written at all."""
        return bool(self._log)

    def touch(self, tensor: torch.Tensor, writers: Collection[fx.Node], views: Iterable[torch.Tensor]) -> bool:
        """Return whether a node that gives these views of a tensor shows something that one of the writers wrote.

        A node that gives no view of it reads all of it.
        """
        storage = storage_of(tensor)
        regions = [region_of(view) for view in views if storage_of(view) == storage]
        if not regions:
            return True
        known = self._known[id(tensor)]
        return any(
            overlap(write.region, region)
            for write in self._log[storage or 0]
            if write.time > known.time and write.node in writers
            for region in regions
        )

    def adopt(self, tensor: torch.Tensor) -> tuple[Origin, ...]:
        """Bind a tensor that nothing was seen to make, if bound tensors show some of its elements.

        Returns:
            Their origins: one, which is also bound, where one of them shows all of the tensor.
        """
        storage = storage_of(tensor)
        if storage is None:
            return ()
        found: dict[Origin, None] = {}
        region, parts = region_of(tensor), self._parts.get(storage, {})
        for part, (origin, time) in reversed(list(parts.items())):
            if part.covers(region):
                self._bind(tensor, origin, time)
                return (origin,)
            if overlap(part, region):
                found.setdefault(origin)
        return tuple(found)


def storage_of(tensor: torch.Tensor) -> int | None:
    """Return what identifies a storage while it is alive; None for a tensor that has none, such as a sparse one."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return None


def region_of(tensor: torch.Tensor) -> Region:
    """Return the bytes that a tensor with a storage shows."""
    size = tensor.element_size()
    try:
        shape, strides, offset = tensor.shape, tensor.stride(), tensor.storage_offset()
    except RuntimeError:  # a nested tensor has no strides
        return Region(0, ((tensor.untyped_storage().nbytes() or 1, 1),))
    dims = tuple((int(n), int(step) * size) for n, step in zip(shape, strides, strict=True) if n != 1 and step)
    return Region(int(offset) * size, (*dims, (size, 1)), 0 in shape)


def overlap(a: Region, b: Region) -> bool:
    """Return whether two regions of one storage share a byte: no only where that is certain.

    Parts of a tensor, such as ``chunk`` gives, are boxes in one grid. The distance of their first elements, written in
    the strides of the grid as a number is in its digits, says how far the boxes are apart in each dimension.
    """
    if a.empty or b.empty:
        return False
    lower, upper = (a, b) if a.offset <= b.offset else (b, a)
    distance = upper.offset - lower.offset
    if lower.span < distance:
        return False
    steps = sorted({stride for region in (a, b) for _, stride in region.dims}, reverse=True)
    apart = False
    for number, step in enumerate(steps):
        count, distance = divmod(distance, step)
        near, far = _extent(lower, step), _extent(upper, step)
        if number and (steps[number - 1] % step or max(near, count + far) > steps[number - 1] // step):
            return True  # no such grid, or a row that runs into the next one
        apart = apart or count >= near
    return not apart and not distance


def _extent(region: Region, step: int) -> int:
    """Return how many elements lie along a stride."""
    return 1 + sum(size - 1 for size, stride in region.dims if stride == step)
