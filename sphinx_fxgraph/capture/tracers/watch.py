"""What operators do below the functions that a model calls: count, write in place, take what they were not given."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from sphinx_fxgraph.capture.measures.macs import MacCounter, Operator, is_composite
from sphinx_fxgraph.capture.model.untouched import Values
from sphinx_fxgraph.capture.tracers import remembered
from sphinx_fxgraph.capture.tracers.origins import Origins


@dataclass
class Seen:
    """What was seen of one node while it ran; of the tensors only those that were there before."""

    macs: int = 0
    extra_macs: int = 0
    random: bool = False
    """Whether random numbers were drawn."""
    written: list[torch.Tensor] = field(default_factory=list)
    read: dict[int, torch.Tensor] = field(default_factory=dict)
    """By identity, so that each is there once."""


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
        self._seen: Seen | None = None

    @property
    def inside(self) -> bool:
        """Whether something runs on behalf of a node."""
        return self._seen is not None

    @contextlib.contextmanager
    def node(self) -> Iterator[Seen]:
        """What runs in this context runs on behalf of one node."""
        seen = Seen()
        outer, self._seen = self._seen, seen
        macs, extra = self.macs, self.extra
        try:
            yield seen
        finally:
            self._seen = outer
            seen.macs, seen.extra_macs = self.macs - macs, self.extra - extra

    def __torch_dispatch__(
        self, func: Operator, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operator and note what it does."""
        kwargs = kwargs or {}
        if self._seen is None:
            with self.node() as seen:
                out = self._run(seen, func, args, kwargs)
            self._orphan(func, args, kwargs, out, seen)
            return out
        return self._run(self._seen, func, args, kwargs)

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
        out = remembered.run(func, args, kwargs)
        self.note(func, args, kwargs, out)
        seen.random = seen.random or _is_random(func)
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
