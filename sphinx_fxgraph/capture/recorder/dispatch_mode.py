"""What operators do below the functions that a model calls: count, write in place, take what they were not given."""

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
from sphinx_fxgraph.capture.recorder.provenance import Origins


class Seen:
    """What was seen of one node while it ran; of the tensors only those that were there before."""

    __slots__ = ("count", "random", "read", "written")

    def __init__(self) -> None:
        self.count = NOTHING
        self.random = False
        """Whether random numbers were drawn."""
        self.written: list[torch.Tensor] = []
        self.read: dict[int, torch.Tensor] = {}
        """By identity, so that each is there once."""

    def add(self, count: Count, random: bool) -> None:
        """Something more has run."""
        self.count = self.count.plus(count)
        self.random = self.random or random


class _Node:
    """The context of a node (see `Watch.node`); written out, since every operator enters some."""

    __slots__ = ("_outer", "_watch", "seen")

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __enter__(self) -> Seen:
        self._outer = self._watch.seen
        self._watch.seen = seen = Seen()
        return seen

    def __exit__(self, *_: object) -> None:
        self._watch.seen = self._outer


class Watch(MacCounter):  # type: ignore[no-untyped-call]  # torch's class has no types
    """Sees every operator of the dispatcher.

    Args:
        origins: what tells tensors that were there before from those that a node makes for itself.
        orphan: called with an operator that runs on behalf of no node, its arguments, its result, and what was seen.
        values: those of the model, which are kept.
    """

    def __init__(
        self,
        origins: Origins,
        orphan: Callable[[Operator, tuple[Any, ...], dict[str, Any], Any, Seen], None],
        values: Values,
    ) -> None:
        super().__init__()
        self._origins, self._values = origins, values
        self._orphan = orphan
        self.seen: Seen | None = None
        """Of what runs on behalf of a node; nothing while the model's own code does."""

    def execute(self, func: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator, on meta once."""
        return meta_cache.run(func, args, kwargs)

    def node(self) -> AbstractContextManager[Seen]:
        """What runs in this context runs on behalf of one node."""
        return _Node(self)

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function of torch's own on behalf of the node that is running; on meta once, and then by heart."""
        outer, given = self.seen, list(_tensors((*args, *kwargs.values()) if kwargs else args))
        key = meta_cache.key_of(function, args, kwargs) if given else None  # without, it may be on any device
        if outer is None or key is None:
            return function(*args, **kwargs)
        known = meta_cache.known(key)
        if known is not None:
            result = known.result(function, args, kwargs)
            self.add(known.cost)
        else:
            with self.node() as seen:
                result = function(*args, **kwargs)
            known = meta_cache.Known(seen.count, seen.random)
            outer.written += seen.written
            outer.read.update(seen.read)
            if not seen.written and seen.read.keys() <= {id(tensor) for tensor in given}:
                meta_cache.learn(key, known, result, given)
        outer.add(known.cost, known.random)
        for tensor in given:
            if self._origins.of(tensor):
                outer.read[id(tensor)] = tensor
        return result

    def __torch_dispatch__(
        self, func: Operator, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operator and note what it does."""
        kwargs = kwargs or {}
        if self.seen is not None:
            return self._run(self.seen, func, args, kwargs)
        with self.node() as seen:
            out = self._run(seen, func, args, kwargs)
        self._orphan(func, args, kwargs, out, seen)
        return out

    def _run(self, seen: Seen, func: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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
        seen.add(count, _is_random(func))
        given = _tensors((*args, *kwargs.values()))
        seen.read.update((id(tensor), tensor) for tensor in given if self._origins.of(tensor))
        seen.written += filter(self._origins.of_part, written)
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
