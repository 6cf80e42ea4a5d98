"""Sources of chance that torch knows nothing of: Python's and NumPy's generators, the system's, the clock.

A run that draws from one of them shows one of several graphs. Functions are replaced while a model runs, so that the
line that calls one is known; the states of the generators are compared too, since a name may be bound elsewhere.
"""

from __future__ import annotations

import functools
import os
import random
import secrets
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from sphinx_fxgraph.cache.fingerprints import is_standard, portable
from sphinx_fxgraph.capture.recorder.patches import Patch
from sphinx_fxgraph.spec.spec import CODE_FILE

if TYPE_CHECKING:
    from torch import nn


class Draw(NamedTuple):
    """A call of a function whose result is another one each time."""

    name: str
    """``random.random``."""
    file: str = ""
    line: int = 0


class Generators:
    """Notes what a model draws from generators that are not torch's.

    Args:
        model: its modules may hold generators, and the files of their classes may hold the functions by other names.
    """

    def __init__(self, model: nn.Module) -> None:
        self.draws: dict[str, Draw] = {}
        """The first call of each function."""
        self._classes = {type(module) for module in model.modules()}
        self._own = [(path, name, value) for path, name, value in _held(model)]
        self._spaces: dict[int, dict[str, Any]] = {}
        """The names of the files that the model's classes are in, but torch's, by identity."""
        self._before: list[tuple[str, Callable[[], object], object]] = []

    def start(self) -> None:
        """Remember the states of the generators."""
        numpy = sys.modules.get("numpy")
        states: list[tuple[str, Callable[[], object]]] = [("random", random.getstate)]
        if numpy is not None:
            states.append(("numpy.random", lambda: _plain(numpy.random.get_state())))
        states += [(name, functools.partial(_state, value)) for _, name, value in self._own]
        self._before = [(name, state, state()) for name, state in states]

    def stop(self) -> None:
        """Note the generators that have moved though no call was seen."""
        for name, state, before in self._before:
            if not any(draw.startswith(f"{name}.") for draw in self.draws) and state() != before:
                self.draws.setdefault(name, Draw(name))
        self._before = []

    def patches(self) -> Iterator[Patch]:
        """Yield what tells of a call in place of each function, wherever the model's code has it."""
        methods = [vars(base).get("forward") for cls in self._classes for base in cls.__mro__]
        forwards = [method.__globals__ for method in methods if isinstance(method, FunctionType)]
        homes = [vars(sys.modules[cls.__module__]) for cls in self._classes if cls.__module__ in sys.modules]
        self._spaces = {
            id(names): names
            for names in (*forwards, *homes)
            if names and str(names.get("__name__", "")).partition(".")[0] not in ("torch", "sphinx_fxgraph")
        }
        replaced: dict[int, Any] = {}
        for owner, name, function in _functions():
            wrapper = self._noting(f"{owner.__name__}.{name}", function)
            replaced[id(function)] = function, wrapper
            yield Patch(owner, name, wrapper)
        for names in self._spaces.values():
            for name, value in list(names.items()):
                function, wrapper = replaced.get(id(value), (None, None))
                if function is value and wrapper is not None:
                    yield Patch(names, name, wrapper)

    def _noting(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        seeded = name.rpartition(".")[2] == "default_rng"
        is_clock = name.startswith("time.")

        def noting(*args: Any, **kwargs: Any) -> Any:
            if name not in self.draws and not (seeded and (args or kwargs)):
                frame = sys._getframe(1)
                file = frame.f_code.co_filename
                counts = not is_clock or self._is_model(frame.f_globals)
                if counts and not is_standard(file) and not _is_importing(frame):
                    where = file if file == CODE_FILE else portable(file)
                    self.draws[name] = Draw(name, where, frame.f_lineno)
            return function(*args, **kwargs)

        return noting

    def _is_model(self, names: dict[str, Any]) -> bool:
        """Return whether code stands in a file, or in a package, that a module of the model comes from."""
        package = str(names.get("__name__", "")).partition(".")[0]
        packages = {str(names.get("__name__", "")).partition(".")[0] for names in self._spaces.values()}
        return id(names) in self._spaces or package in packages


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether code runs because a module is imported: torch imports some when an operator first runs."""
    while frame is not None and not str(frame.f_globals.get("__name__", "")).startswith("sphinx_fxgraph."):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _held(model: nn.Module) -> Iterator[tuple[str, str, Any]]:
    numpy = sys.modules.get("numpy")
    kinds: tuple[type, ...] = (random.Random,)
    if numpy is not None:
        kinds = (*kinds, numpy.random.Generator, numpy.random.RandomState)
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, kinds):
                yield path, f"{path}.{name}".lstrip("."), value


def _state(generator: Any) -> object:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "bit_generator"):
        return repr(generator.bit_generator.state)
    return _plain(generator.get_state())


def _plain(state: Any) -> object:
    return tuple(item.tobytes() if hasattr(item, "tobytes") else item for item in state)


def _functions() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    numpy = sys.modules.get("numpy")
    owners = [
        (random, [name for name in random.__all__ if name[0].islower() and name not in _KEEP]),
        (secrets, [name for name in secrets.__all__ if name[0].islower() and name not in _KEEP]),
        (uuid, ["uuid1", "uuid4"]),
        (os, ["urandom", "getrandom"]),
        (time, [f"{clock}{unit}" for clock in _CLOCKS for unit in ("", "_ns")]),
    ]
    if numpy is not None:
        owners.append(
            (numpy.random, [name for name in numpy.random.__all__ if name[0].islower() and name not in _KEEP])
        )
    for owner, names in owners:
        for name in names:
            function = getattr(owner, name, None)
            if callable(function) and not isinstance(function, type):
                yield owner, name, function


_CLOCKS = ("time", "monotonic", "perf_counter", "process_time")

_KEEP = frozenset({"seed", "getstate", "setstate", "get_state", "set_state", "compare_digest", "test", "mtrand"})
"""What draws nothing."""
