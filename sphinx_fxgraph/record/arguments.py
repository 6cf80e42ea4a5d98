"""The arguments of a call as data: a small tree of values, literals, names and containers.

A literal (None, bool, int, finite float, str) stands for itself. Everything else is one of the types below; in a file
each is a JSON array that begins with a word: ``["$", "conv1", 0]`` is the result of ``conv1``, ``["name",
"torch.float32"]`` a dtype. Arguments are made into text only where they are shown, by `format_argument`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

MOST_CHARACTERS = 240
"""Longer argument texts are cut."""
MOST_LEVELS = 50
"""Containers that stand in one another in an argument; a file with more is refused."""


class Value(msgspec.Struct, frozen=True, array_like=True, tag="$"):
    """Output ``output`` of node ``node`` of the same body.

    The empty name is the body itself: ``Value("", k)`` is its input ``k``.
    """

    node: str
    output: int = 0


class Name(msgspec.Struct, frozen=True, array_like=True, tag="name"):
    """Something that has a name: ``torch.float32``, ``cpu``, ``torch.nn.functional.relu``, ``...``, ``inf``."""

    name: str


class Size(msgspec.Struct, frozen=True, array_like=True, tag="size"):
    """A symbolic size, ``s0`` or ``2*s0 + 1``."""

    expression: str


class Text(msgspec.Struct, frozen=True, array_like=True, tag="text"):
    """An argument known as text only.

    A tensor, ``f32[3]``, a value that was cut, arguments of a record of schema 3 or less.
    """

    text: str


class Slice(msgspec.Struct, frozen=True, array_like=True, tag="slice"):
    """``start:stop:step``."""

    start: Argument = None
    stop: Argument = None
    step: Argument = None


class List(msgspec.Struct, frozen=True, array_like=True, tag="list"):
    """A list."""

    items: tuple[Argument, ...] = ()


class Tuple(msgspec.Struct, frozen=True, array_like=True, tag="tuple"):
    """A tuple."""

    items: tuple[Argument, ...] = ()


class Dict(msgspec.Struct, frozen=True, array_like=True, tag="dict"):
    """A dict, as pairs of key and value."""

    items: tuple[tuple[Argument, Argument], ...] = ()


class Object(msgspec.Struct, frozen=True, array_like=True, tag="object"):
    """An object of another class, by what is known of it: ``Size([1, 4])``, ``BaseModelOutput(logits=fc)``."""

    class_name: str
    items: tuple[Argument, ...] = ()
    fields: tuple[tuple[str, Argument], ...] = ()


Argument = None | bool | int | float | str | Value | Name | Size | Text | Slice | List | Tuple | Dict | Object


def format_argument(argument: Argument, name: Callable[[Value], str]) -> str:
    """Return an argument as Python would write it.

    Args:
        argument: what to write.
        name: how a value is called.
    """

    def inner(item: Argument) -> str:
        return format_argument(item, name)

    match argument:
        case Value():
            return name(argument)
        case Name(text) | Size(text) | Text(text):
            return text
        case Slice(start, stop, step):
            ends = ["" if end is None else inner(end) for end in (start, stop, step)]
            return ":".join(ends if ends[2] else ends[:2])
        case List(items):
            return f"[{', '.join(map(inner, items))}]"
        case Tuple(items):
            return f"({', '.join(map(inner, items))}{',' * (len(items) == 1)})"
        case Dict(items):
            return f"{{{', '.join(f'{inner(key)}: {inner(item)}' for key, item in items)}}}"
        case Object(kind, items, fields):
            return f"{kind}({', '.join([*map(inner, items), *(f'{key}={inner(item)}' for key, item in fields)])})"
    return repr(argument)


def format_call(args: Iterable[Argument], kwargs: Mapping[str, Argument], name: Callable[[Value], str]) -> str:
    """Return the arguments of a call as text, cut where they are very long.

    Args:
        args: the positional arguments.
        kwargs: the keyword arguments.
        name: how a value is called.
    """
    written = [format_argument(each, name) for each in args]
    return cut(", ".join([*written, *(f"{key}={format_argument(each, name)}" for key, each in kwargs.items())]))


def cut(text: str) -> str:
    """Return a text, shortened to `MOST_CHARACTERS`."""
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"


def values_in(*arguments: Iterable[Argument]) -> tuple[Value, ...]:
    """Return the values that arguments refer to in order of first use, each once."""
    found = (leaf for argument in itertools.chain(*arguments) for leaf in leaves(argument))
    return tuple(dict.fromkeys(leaf for leaf in found if isinstance(leaf, Value)))


def leaves(argument: Argument, level: int = 0) -> Iterator[Argument]:
    """Yield everything in an argument that is no container.

    Raises:
        ValueError: its containers stand in one another without end.
    """
    if not isinstance(argument, Slice | List | Tuple | Dict | Object):
        yield argument
    elif level > MOST_LEVELS:
        raise ValueError(f"an argument has more than {MOST_LEVELS} levels")
    else:
        for item in _items(argument):
            yield from leaves(item, level + 1)


def _items(container: Slice | List | Tuple | Dict | Object) -> Iterable[Argument]:
    match container:
        case Slice(start, stop, step):
            return start, stop, step
        case Dict(items):
            return itertools.chain.from_iterable(items)
        case Object(_, items, fields):
            return *items, *(item for _, item in fields)
    return container.items


def map_argument(argument: Argument, change: Callable[[Argument], Argument]) -> Argument:
    """Return an argument with ``change`` applied to everything in it that is no container."""

    def inner(item: Argument) -> Argument:
        return map_argument(item, change)

    match argument:
        case Slice(start, stop, step):
            return Slice(inner(start), inner(stop), inner(step))
        case List(items):
            return List(tuple(map(inner, items)))
        case Tuple(items):
            return Tuple(tuple(map(inner, items)))
        case Dict(items):
            return Dict(tuple((inner(key), inner(item)) for key, item in items))
        case Object(kind, items, fields):
            return Object(kind, tuple(map(inner, items)), tuple((key, inner(item)) for key, item in fields))
    return change(argument)
