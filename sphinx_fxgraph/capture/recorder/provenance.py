"""Track which node made a tensor and which nodes have written into it, also through views, and the names of attributes.

Every write is logged with the elements it covers. A tensor that is read takes the node it was bound to and every
later write into one of its elements, so no write is lost when two views of one tensor are written.
"""

from __future__ import annotations

import itertools
import weakref
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.multiprocessing.reductions import StorageWeakRef

from sphinx_fxgraph.capture.pytree import Path
from sphinx_fxgraph.capture.torch_private import without_functions
from sphinx_fxgraph.record.model import join


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
        """Return whether the tensor shows every byte from its first to its last."""
        reach = 0
        for size, stride in sorted(self.dims, key=lambda dim: dim[1]):
            if stride > reach + 1:
                return False
            reach += (size - 1) * stride
        return True

    def covers(self, other: Region) -> bool:
        """Return whether it has every byte of another region: yes only where that is certain."""
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
            with without_functions():
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
        """Return whether anything was written at all."""
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
        with without_functions():
            return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return None


def region_of(tensor: torch.Tensor) -> Region:
    """Return the bytes that a tensor with a storage shows."""
    with without_functions():
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
        """Return whether a module is registered."""
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
    """Return whether a module that was made for one call is another one's like.

    No more than an operator with its settings.
    """
    held = (*module.parameters(), *module.buffers(), *module.children())
    return type(module) is type(other) and not held and repr(module) == repr(other)


def _tensors(module: nn.Module) -> Iterator[tuple[str, torch.Tensor, str]]:
    """A module's own tensors: name, tensor, kind."""
    for registered, kind in ((module._parameters, "parameter"), (module._buffers, "buffer")):
        yield from ((name, tensor, kind) for name, tensor in registered.items() if tensor is not None)
    for name, value in vars(module).items():
        if name in _OF_EVERY_MODULE:
            continue
        if isinstance(value, torch.Tensor):
            yield name, value, "constant"
        elif isinstance(value, list | tuple | dict) and not name.startswith("_"):
            yield from ((f"{name}.{key}", item, "constant") for key, item in _entries(value) if torch.is_tensor(item))


_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
"""The attributes that `torch.nn.Module` itself sets."""


def held(module: nn.Module | None) -> Iterator[tuple[str, Any]]:
    """Return the tensors and modules that a module holds directly."""
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
