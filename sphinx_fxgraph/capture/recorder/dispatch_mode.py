"""The dispatch mode of the recorder: counts what operators do, and finds what they write and read below a function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch

from sphinx_fxgraph.capture.metrics.macs import NOTHING, Count, MacCounter, is_composite
from sphinx_fxgraph.capture.metrics.products import Operator
from sphinx_fxgraph.capture.model.state import Values
from sphinx_fxgraph.capture.recorder import meta_cache
from sphinx_fxgraph.capture.recorder.provenance import Provenance


class Effects:
    """What the operators of one node did; of the tensors only those that were there before."""

    __slots__ = ("count", "data_dependent", "inplace", "random", "read", "written")

    def __init__(self) -> None:
        self.count = NOTHING
        self.random = False
        """Whether random numbers were drawn."""
        self.data_dependent = False
        """Whether the shape of a result depends on values."""
        self.inplace = False
        """Whether a tensor was written that a node had made or taken."""
        self.written: list[torch.Tensor] = []
        self.read: dict[int, torch.Tensor] = {}
        """By identity, so that each is there once."""

    def add(self, count: Count, random: bool) -> None:
        """Add the effects of one operator."""
        self.count = self.count.plus(count)
        self.random = self.random or random


class _Node:
    """The context of a node (see `DispatchMode.node`); a class, since every operator enters some."""

    __slots__ = ("_mode", "_outer")

    def __init__(self, mode: DispatchMode) -> None:
        self._mode = mode

    def __enter__(self) -> Effects:
        self._outer = self._mode.effects
        self._mode.effects = effects = Effects()
        return effects

    def __exit__(self, *_: object) -> None:
        self._mode.effects = self._outer


class DispatchMode(MacCounter):  # type: ignore[no-untyped-call]  # torch's class has no types
    """Receives every operator of the dispatcher.

    Args:
        provenance: tells tensors that were there before from those that a node makes for itself.
        orphan: called with an operator that runs on behalf of no node, its arguments, its result, and its effects.
        values: those of the model; they are saved before something is written into them.
    """

    def __init__(
        self,
        provenance: Provenance,
        orphan: Callable[[Operator, tuple[Any, ...], dict[str, Any], Any, Effects], None],
        values: Values,
    ) -> None:
        super().__init__()
        self._provenance, self._values = provenance, values
        self._orphan = orphan
        self.effects: Effects | None = None
        """Of the node that is running; None while the model's own code runs."""

    def execute(self, func: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator, on meta once."""
        return meta_cache.run(func, args, kwargs)

    def node(self) -> AbstractContextManager[Effects]:
        """Return a context; what runs in it belongs to one node."""
        return _Node(self)

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function of torch's own for the node that is running; on meta the result of an equal call is reused."""
        outer, given = self.effects, list(_tensors((*args, *kwargs.values()) if kwargs else args))
        key = meta_cache.key_of(function, args, kwargs) if given else None  # without, it may be on any device
        if outer is None or key is None:
            return function(*args, **kwargs)
        known = meta_cache.known(key)
        if known is not None:
            result = known.result(function, args, kwargs)
            self.add(known.cost)
        else:
            with self.node() as effects:
                result = function(*args, **kwargs)
            known = meta_cache.Known(effects.count, effects.random)
            outer.written += effects.written
            outer.inplace = outer.inplace or effects.inplace
            outer.data_dependent = outer.data_dependent or effects.data_dependent
            outer.read.update(effects.read)
            if not effects.written and effects.read.keys() <= {id(tensor) for tensor in given}:
                meta_cache.learn(key, known, result, given)
        outer.add(known.cost, known.random)
        for tensor in given:
            if self._provenance.is_read(tensor):
                outer.read[id(tensor)] = tensor
        return result

    def __torch_dispatch__(
        self, func: Operator, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operator and note what it does."""
        kwargs = kwargs or {}
        if self.effects is not None:
            return self._run(self.effects, func, args, kwargs)
        with self.node() as effects:
            out = self._run(effects, func, args, kwargs)
        self._orphan(func, args, kwargs, out, effects)
        return out

    def _run(self, effects: Effects, func: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if torch.is_inference_mode_enabled() and is_composite(func):
            with self:
                return func.decompose(*args, **kwargs)
        written = [
            tensor
            for position, name in _mutable(func)
            for tensor in _tensors((args[position] if position < len(args) else kwargs.get(name),))
        ]
        for tensor in written:
            self._values.keep(tensor)
        out, count = self.run(func, args, kwargs)
        self.add(count)
        effects.add(count, _is_random(func))
        given = list(_tensors((*args, *kwargs.values())))
        effects.read.update((id(tensor), tensor) for tensor in given if self._provenance.is_read(tensor))
        if written:
            effects.written += filter(self._provenance.is_reachable, written)
            effects.inplace = effects.inplace or any(map(self._provenance.is_bound, written))
        effects.data_dependent = effects.data_dependent or _has_dynamic_shape(func, args, self._provenance)
        return out


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    """The tensors among the arguments of an operator, which nest one level deep."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from (item for item in value if isinstance(item, torch.Tensor))


@functools.cache
def _mutable(func: Operator) -> list[tuple[int, str]]:
    """Position and name of the arguments that an operator writes into."""
    schema = getattr(func, "_schema", None)
    arguments = schema.arguments if schema else ()
    return [
        (position, argument.name)
        for position, argument in enumerate(arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


@functools.cache
def _is_random(func: Operator) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())


def _has_dynamic_shape(func: Operator, args: tuple[Any, ...], provenance: Provenance) -> bool:
    """Return whether the shape of an operator's result depends on the values of its arguments."""
    if not _may_have_dynamic_shape(func):
        return False
    if func.overloadpacket.__name__ == "repeat_interleave":  # of one number all are repeated as often
        return provenance.is_bound(args[0])
    if func.overloadpacket.__name__ != "index":
        return True
    return any(tensor.dtype in (torch.bool, torch.uint8) for tensor in _tensors(args[1:]))


@functools.cache
def _may_have_dynamic_shape(func: Operator) -> bool:
    tagged = torch.Tag.dynamic_output_shape in getattr(func, "tags", ())
    return (tagged or getattr(func, "_opname", "") in _SIZED_BY_VALUES) and getattr(
        func, "_opname", ""
    ) != "linalg_lstsq"


_SIZED_BY_VALUES = frozenset({"_pack_padded_sequence"})
"""Operators whose result's shape depends on values though torch does not tag them."""
