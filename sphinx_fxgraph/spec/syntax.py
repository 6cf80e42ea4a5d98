"""The tree of a target and of inputs, as frozen dataclasses.

`str` gives the canonical text, which parses to an equal tree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass


def bounds(dtype: str) -> tuple[int, int]:
    """Smallest value of an integer dtype, and one past the largest."""
    bits = int(dtype[1:])
    return (-(2 ** (bits - 1)), 2 ** (bits - 1)) if dtype[0] == "i" else (0, 2**bits)


@dataclass(frozen=True)
class Name:
    """A dotted name; ``module`` is the part before a ``:``, None where the author left it to us to find."""

    module: str | None
    qualname: str

    def __str__(self) -> str:
        return self.qualname if self.module is None else f"{self.module}:{self.qualname}"


@dataclass(frozen=True)
class Literal:
    """None, a bool, a number, a string or bytes."""

    value: object

    def __str__(self) -> str:
        return ast.unparse(ast.Constant(self.value))  # type: ignore[arg-type]  # repr(inf) would not read back


@dataclass(frozen=True)
class Tensor:
    """A random tensor: dtype by abbreviation, shape, and values from ``low`` up to but without ``high``."""

    dtype: str
    shape: tuple[int, ...]
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        text = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        if self.high is None:
            return text
        return f"{text} < {self.high!r}" if self.low == 0 else f"{self.low!r} <= {text} < {self.high!r}"


@dataclass(frozen=True)
class List:
    """A list of values."""

    items: tuple[Value, ...]

    def __str__(self) -> str:
        return f"[{_joined(self.items)}]"


@dataclass(frozen=True)
class Tuple:
    """A tuple of values."""

    items: tuple[Value, ...]

    def __str__(self) -> str:
        return f"({_joined(self.items)}{',' if len(self.items) == 1 else ''})"


@dataclass(frozen=True)
class Dict:
    """A dict; its keys are literals."""

    items: tuple[tuple[Literal, Value], ...]

    def __str__(self) -> str:
        return f"{{{', '.join(f'{key}: {value}' for key, value in self.items)}}}"


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call, positional and by keyword."""

    args: tuple[Value, ...] = ()
    kwargs: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        return ", ".join([*map(str, self.args), *(f"{key}={value}" for key, value in self.kwargs)])


@dataclass(frozen=True)
class Call:
    """A call of a named function or class."""

    function: Name
    arguments: Arguments = Arguments()

    def __str__(self) -> str:
        return f"{self.function}({self.arguments})"


AUTO = Name(None, "auto")
"""As inputs: what the model says of itself."""

Value = Name | Call | Literal | Tensor | List | Tuple | Dict


def packages(value: Value | Arguments) -> frozenset[str]:
    """Return the first parts of all dotted names in a value: the packages, or builtins, that it can run code of."""
    match value:
        case Name(module, qualname):
            return frozenset(() if value == AUTO else [(module or qualname).partition(".")[0]])
        case Call(function, arguments):
            return packages(function) | packages(arguments)
        case Arguments(args, kwargs):
            return frozenset().union(*map(packages, args), *(packages(item) for _, item in kwargs))
        case List(items) | Tuple(items):
            return frozenset().union(*map(packages, items))
        case Dict(pairs):
            return frozenset().union(*(packages(item) for _, item in pairs))
    return frozenset()


def _joined(items: Iterable[Value]) -> str:
    return ", ".join(map(str, items))
