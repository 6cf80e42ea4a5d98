"""The dispatch mode of the recorder: counts operators, finds their reads and writes, and reuses results on meta."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.mac_formulas import Operator
from sphinx_fxgraph.capture.metrics import NOTHING, Count, MacCounter, call, is_composite
from sphinx_fxgraph.capture.recorder.graph_writer import is_own
from sphinx_fxgraph.capture.recorder.provenance import Provenance, storage_of
from sphinx_fxgraph.capture.state import Values
from sphinx_fxgraph.capture.torch_private import CAN_REMEMBER, is_transforming, without_dispatch

_PLAIN = frozenset(
    {type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format}
)
_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
_SHARE = frozenset({"_unsafe_view", "lift_fresh", "lift"})
"""What a result may share with an argument though the schema does not say so."""

_MOST = 10_000
_results: dict[object, object] = {}
_calls: dict[object, Known] = {}
"""Of at most so many operators and functions: for a model's run, the replay of its graph, and the model's next call."""

_META = torch.device("meta")


class _UnknownError(Exception):
    """Something else than tensors on meta and plain values."""


class Known(NamedTuple):
    """The effects and the result of a call, for the cache of results on meta."""

    cost: Count
    random: bool
    made: object = None
    """Its result as a key; nothing where that shares memory with an argument, so that the function is to run again."""

    def result(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of the function without watching the operators of the dispatcher."""
        with without_dispatch():
            return function(*args, **kwargs) if self.made is None else _made(self.made)


def key_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """All that decides what a function of torch's own does; nothing where that is more than what stands in here.

    With gradients a result is more than its shape, and in a transformation of `torch.func` a tensor is.
    """
    if not CAN_REMEMBER or torch.is_grad_enabled() or is_transforming() or not is_own(function):
        return None
    return _call_key(function, args, kwargs)


def known(key: object) -> Known | None:
    """Return the cached result of an equal call, if there is one."""
    return _calls.get(key)


def learn(key: object, known: Known, result: Any, given: Iterable[torch.Tensor]) -> None:
    """Remember a call that wrote into nothing and read nothing but the tensors it was given."""
    found = [tensor for _, tensor in pytree.tensors(result)]
    storages = {storage_of(tensor) for tensor in (*given, *found)}
    with contextlib.suppress(_UnknownError, RuntimeError):
        if found and len(storages) == len({storage_of(tensor) for tensor in given}) + len(found):
            known = known._replace(made=_key(result))
    _remember(_calls, key, known)


def run(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator of the dispatcher; on meta the result of an equal call is reused."""
    if not _is_pure(operator):
        return call(operator, args, kwargs)
    key = _call_key(operator, args, kwargs)
    if key is None:
        return call(operator, args, kwargs)
    if key in _results:
        return _made(_results[key])
    result = call(operator, args, kwargs)
    with contextlib.suppress(_UnknownError, RuntimeError):
        _remember(_results, key, _key(result))
    return result


def _remember(known: dict[object, Any], key: object, value: object) -> None:
    if len(known) >= _MOST:
        known.clear()
    known[key] = value


def _call_key(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    try:
        given = _key(args)
        named = tuple((name, _key(value)) for name, value in kwargs.items()) if kwargs else ()
    except (_UnknownError, RuntimeError):  # a sparse tensor has no strides
        return None
    return function, given, named, torch.get_default_dtype()  # which quotients of integers have


def _key(value: Any) -> object:
    """A value as its kind and what else there is to it: of a tensor on meta size, strides and dtype."""
    kind = type(value)
    if kind in _TENSORS:
        if not value.is_meta or value.is_conj() or value.is_neg():
            raise _UnknownError
        return torch.Tensor, value.shape, value.stride(), value.dtype
    if kind in _PLAIN:
        return kind, value
    if kind is list or kind is tuple:
        return kind, tuple(map(_key, value))
    raise _UnknownError


def _made(key: Any) -> Any:
    kind, value, *rest = key
    if kind is torch.Tensor:
        return torch.empty_strided(value, rest[0], dtype=rest[1], device=_META)
    return kind(map(_made, value)) if kind is list or kind is tuple else value


@functools.cache
def _is_pure(operator: Operator) -> bool:
    """Return whether an operator of torch's own neither writes into its arguments nor gives parts of them."""
    schema = getattr(operator, "_schema", None)
    if schema is None or getattr(operator, "namespace", "") != "aten" or schema.is_mutable:
        return False
    if operator.overloadpacket.__name__ in _SHARE:
        return False
    return all(each.alias_info is None for each in (*schema.arguments, *schema.returns))


class Effects:
    """The effects of the operators of one node on tensors that existed before it."""

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
        return run(func, args, kwargs)

    def node(self) -> AbstractContextManager[Effects]:
        """Return a context; what runs in it belongs to one node."""
        return _Node(self)

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function of torch's own for the node that is running; on meta the result of an equal call is reused."""
        outer, given = self.effects, list(_tensors((*args, *kwargs.values()) if kwargs else args))
        key = key_of(function, args, kwargs) if given else None  # without, it may be on any device
        if outer is None or key is None:
            return function(*args, **kwargs)
        remembered = known(key)
        if remembered is not None:
            result = remembered.result(function, args, kwargs)
            self.add(remembered.cost)
        else:
            with self.node() as effects:
                result = function(*args, **kwargs)
            remembered = Known(effects.count, effects.random)
            outer.written += effects.written
            outer.inplace = outer.inplace or effects.inplace
            outer.data_dependent = outer.data_dependent or effects.data_dependent
            outer.read.update(effects.read)
            if not effects.written and effects.read.keys() <= {id(tensor) for tensor in given}:
                learn(key, remembered, result, given)
        outer.add(remembered.cost, remembered.random)
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
