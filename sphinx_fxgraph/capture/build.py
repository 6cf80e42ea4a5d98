"""Build the model and its inputs from a spec: on the meta device first, with real tensors if it must (see `LADDER`).

On the meta device tensors have a shape and no values, so that a model of any size is built in no time. A constructor
that asks for values raises there, and is run again on the CPU.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import pkgutil
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from torch import nn

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.devices import Place
from sphinx_fxgraph.capture.errors import CaptureError, by_model, failed_call, not_installed, raised
from sphinx_fxgraph.capture.inputs import told
from sphinx_fxgraph.capture.state import set_mode
from sphinx_fxgraph.capture.torch_private import pytree as torch_pytree
from sphinx_fxgraph.dtypes import DTYPES
from sphinx_fxgraph.errors import suggestion
from sphinx_fxgraph.record.header import Stage
from sphinx_fxgraph.spec.parser import parse_inputs, parse_target
from sphinx_fxgraph.spec.spec import CODE_FILE, GraphSpec
from sphinx_fxgraph.spec.syntax import AUTO, Arguments, Call, Dict, List, Literal, Name, Tensor, Tuple, Value


def resolve(name: Name) -> object:
    """The object of a name. An attribute comes before a module: ``torchvision.models.alexnet`` is both.

    Raises:
        CaptureError: stage ``import``.
    """
    parts = name.qualname.split(".")
    if name.module is not None:
        found, rest = _walk(_import(name.module), parts)
        return _reached(found, rest)
    if len(parts) == 1 and hasattr(builtins, parts[0]):
        return getattr(builtins, parts[0])
    found, rest = _walk(_import(parts[0]), parts[1:])
    for count in range(2, len(parts) + 1):
        if not rest:
            break
        module = _import_if_there(".".join(parts[:count]))
        if module is None:
            break
        found, rest = _walk(module, parts[count:])
    return _reached(found, rest)


def _walk(found: object, names: list[str]) -> tuple[object, list[str]]:
    """Follow attributes as far as they go; what is left are the names that lead no further."""
    for number, name in enumerate(names):
        try:
            found = getattr(found, name)
        except AttributeError:
            return found, names[number:]
        except by_model() as error:  # a package that imports its parts when they are asked for
            raise _failed(f"{_name(found)}.{name}", error) from error
    return found, []


def _import_if_there(name: str) -> ModuleType | None:
    try:
        return _import(name)
    except CaptureError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and f"{name}.".startswith(f"{cause.name}."):
            return None
        raise


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except by_model() as error:
        raise _failed(name, error) from error


def _failed(name: str, error: BaseException) -> CaptureError:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return not_installed(name, error)
    return raised("import", f"importing {name}", error)


def _reached(found: object, rest: list[str]) -> object:
    """Return the object that was found, if no name is left."""
    if not rest:
        return found
    names = dir(found)
    if isinstance(found, ModuleType):
        names += [module.name for module in pkgutil.iter_modules(getattr(found, "__path__", []))]
    raise CaptureError("import", f"{_name(found)} has no {rest[0]!r}{suggestion(rest[0], names)}")


def _name(found: object) -> str:
    return getattr(found, "__qualname__", None) or getattr(found, "__name__", None) or type(found).__qualname__


def faked(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Place, tuple[Any, ...], dict[str, Any]]:
    """Put fake tensors in place of a model's own; `untouched` takes them out again.

    Returns:
        Where they are, and the arguments with fake tensors in place of theirs.
    """
    place = Place.of("fake")
    made: dict[int, torch.Tensor] = {}  # a tensor that is shared stays shared

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in made:
            with place.making():
                new = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
            made[id(tensor)] = nn.Parameter(new, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else new
        return made[id(tensor)]

    for module in model.modules():
        for names in (module._parameters, module._buffers, vars(module)):
            found: dict[str, Any] = {name: fake(tensor) for name, tensor in names.items() if torch.is_tensor(tensor)}
            names.update(found)
    given = {key: pytree.replaced(value, fake) for key, value in kwargs.items()}
    return place, tuple(pytree.replaced(value, fake) for value in args), given


__all__ = ["LADDER", "Built", "CaptureError", "build", "resolve"]

LADDER = {"auto": ("meta", "cpu", "fake"), "meta": ("meta",), "cpu": ("cpu",), "fake": ("fake",)}
"""The devices that are tried one after the other, by what a spec asks for: without values, for real, and where memory
does not last for that with tensors that only say they have values."""


@dataclass(frozen=True)
class Built:
    """A model, and where its tensors are."""

    spec: GraphSpec
    model: nn.Module
    """The model, or the part of it that the spec means, in the mode and dtype of the spec."""
    place: Place
    """Where its tensors are, and its inputs must be."""
    names: Mapping[str, Any] = field(default_factory=dict)
    """What the directive's code has set."""

    @property
    def device(self) -> str:
        """``meta``, ``cpu`` or ``fake``."""
        return self.place.device

    def inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments for the call of the model.

        Raises:
            CaptureError: stage ``input`` or ``import``.
        """
        with _seeded(self.spec.seed):
            values = _Values("input", self.place, self.spec)
            if "inputs" in self.names:
                given = _arguments(self.names["inputs"])
            elif self.spec.inputs == str(AUTO):
                given = values.told(self.model, self._builder())
            else:
                tree = parse_inputs(self.spec.inputs)
                given = values.arguments(tree) if isinstance(tree, Arguments) else _arguments(values.of(tree))
        args, kwargs = self.place.moved(given)
        return args, kwargs

    def _builder(self) -> object:
        """Return the callable that made the model; None where it is not known."""
        tree = parse_target(self.spec.target) if self.spec.target and not self.spec.submodule else None
        return resolve(tree.function if isinstance(tree, Call) else tree) if tree else None


def build(spec: GraphSpec, devices: Sequence[str] = ()) -> Built:
    """The model of a spec, on the first device that its constructor works on.

    Args:
        spec: the spec.
        devices: the rungs of its ladder that are left, where not all are.

    Raises:
        CaptureError: stage ``import`` or ``build``; ``limit`` where memory does not last.
    """
    error: CaptureError | None = None
    for device in devices or LADDER[spec.device]:
        if device == "fake" and error is not None and error.stage != "limit":
            break  # it would end there with the same error
        try:
            return _build_on(device, spec)
        except CaptureError as raised:
            if raised.stage == "import":
                raise
            error = error if error is not None and device == "fake" else raised
    assert error is not None
    raise error


def _build_on(device: str, spec: GraphSpec) -> Built:
    place = Place.of(device)
    with _seeded(spec.seed):
        names = _run(spec.code, place) if spec.code else {}
        model = names["model"] if "model" in names else _Values("build", place, spec).model(parse_target(spec.target))
    if not isinstance(model, nn.Module):
        who = "the code's model" if "model" in names else spec.target
        raise CaptureError("build", f"{who} is {_a(model)}, no torch.nn.Module; {_RIGHT_TARGET}")
    if device == "meta":
        _check_meta(model)
    if spec.submodule:
        model = _submodule(model, spec.submodule)
    if spec.method and not callable(getattr(model, spec.method, None)):
        close = suggestion(spec.method, dir(model))
        raise CaptureError("build", f"{type(model).__name__} has no method {spec.method!r}{close}")
    set_mode(model, spec.mode == "train")
    if spec.dtype:
        with place.running():
            model.to(dtype=getattr(torch, DTYPES[spec.dtype]))
    return Built(spec, model, place, names)


_RIGHT_TARGET = "name a class, a function that returns the model, or the model itself"


def _a(value: object) -> str:
    return f"the class {value.__qualname__}" if isinstance(value, type) else f"of type {type(value).__qualname__}"


def _submodule(model: nn.Module, path: str) -> nn.Module:
    try:
        return model.get_submodule(path)
    except AttributeError:
        close = suggestion(path, (name for name, _ in model.named_modules()))
        raise CaptureError("build", f"{type(model).__name__} has no submodule {path!r}{close}") from None


def _check_meta(model: nn.Module) -> None:
    """An instance that is used as it is, loaded weights and tables made from values are real; then all must be."""
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if not tensor.is_meta:
            raise CaptureError("build", f"{name!r} holds values, it is not on meta; write ':device: cpu'")


def _run(code: str, place: Place) -> dict[str, Any]:
    """Run the code of a directive and return the names it sets.

    Imports run first, on no device, since later captures share them.
    """
    names: dict[str, Any] = {"__name__": CODE_FILE}
    try:
        tree = ast.parse(code, CODE_FILE)
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in imports:
            with contextlib.suppress(ImportError):  # the code may put the folder on sys.path first
                exec(compile(ast.Module([node], []), CODE_FILE, "exec"), names)  # noqa: S102 - the author's own code
        with place.making():
            exec(compile(tree, CODE_FILE, "exec"), names)  # noqa: S102 - the author's own code
    except by_model() as error:
        raise failed_call("build", "the directive's code", error) from error
    return names


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Random numbers from the seed, and afterwards as if none had been drawn."""
    state = random.getstate()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            random.seed(seed)
            yield
    finally:
        random.setstate(state)


def _arguments(given: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the inputs that a function or the code gave, as arguments.

    One value, a tuple, a dict, or a tuple and a dict.
    """
    if isinstance(given, dict):
        return (), given
    if not isinstance(given, tuple):
        return (given,), {}
    if len(given) == 2 and isinstance(given[0], tuple | list) and isinstance(given[1], dict):
        return tuple(given[0]), given[1]
    return given, {}


class _Values:
    """Makes the values of an expression at a place.

    A function that makes inputs may look at their values, so it always runs for real.
    """

    def __init__(self, stage: Stage, place: Place, spec: GraphSpec) -> None:
        self.stage: Stage = stage
        self.place = place
        self.spec = spec

    def model(self, target: Name | Call) -> object:
        """The value of a target: what is named, or what calling it gives."""
        value = self.of(target)
        if isinstance(target, Name) and not isinstance(value, nn.Module) and callable(value):
            return self.call(target, value, (), {})
        return value

    def of(self, value: Value) -> Any:
        """The value of any expression."""
        match value:
            case Literal():
                return value.value
            case List():
                return [self.of(item) for item in value.items]
            case Tuple():
                return tuple(self.of(item) for item in value.items)
            case Dict():
                return {key.value: self.of(item) for key, item in value.items}
            case Name():
                return resolve(value)
            case Call():
                values = self if self.stage == "build" else _Values(self.stage, Place("cpu"), self.spec)
                return values.call(value.function, resolve(value.function), *values.arguments(value.arguments))
            case Tensor():
                return self.tensor(value)

    def arguments(self, arguments: Arguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments of a call."""
        return tuple(map(self.of, arguments.args)), {key: self.of(value) for key, value in arguments.kwargs}

    def told(self, model: nn.Module, builder: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the example inputs that a model declares."""
        try:
            found = told(model, builder)
        except by_model() as error:
            raise failed_call(self.stage, f"{type(model).__name__}'s example inputs", error) from error
        if found is None:
            what = f"{type(model).__name__} says nothing of its inputs; write them"
            raise CaptureError(self.stage, f"{what}, for example f32[1, 3, 224, 224]")
        if isinstance(found, Arguments):
            return self.arguments(found)
        dtype = getattr(torch, DTYPES[self.spec.dtype]) if self.spec.dtype else torch.float32

        def cast(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(dtype) if tensor.dtype == torch.float32 else tensor

        return _arguments(torch_pytree.tree_map_only(torch.Tensor, cast, found))

    def call(self, name: Name, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function on the device and return its result; imports before it do not run there."""
        try:
            with self.place.making():
                return function(*args, **kwargs)
        except by_model() as error:
            raise failed_call(self.stage, str(name), error, function) from error

    def tensor(self, tensor: Tensor) -> torch.Tensor:
        """A random tensor; floats are normally distributed, integers 0 or 1, where no range is given."""
        short = self.spec.dtype if self.spec.dtype and tensor.dtype == "f32" else tensor.dtype
        dtype = getattr(torch, DTYPES[short])
        try:
            if self.place.device == "meta":
                return torch.empty(tensor.shape, dtype=dtype, device="meta")
            with self.place.making():
                return _random(tensor, dtype)
        except (RuntimeError, MemoryError, OverflowError, TypeError) as error:
            raise failed_call(self.stage, str(tensor), error) from error


def _random(tensor: Tensor, dtype: torch.dtype) -> torch.Tensor:
    if not (dtype.is_floating_point or dtype.is_complex):
        high = 2 if tensor.high is None else min(int(tensor.high), 2**63 - 1)  # randint draws signed 64-bit integers
        return torch.randint(int(tensor.low or 0), high, tensor.shape).to(dtype)
    wide = dtype if dtype.itemsize >= 8 else torch.float32  # not every generator knows the small dtypes
    if tensor.high is None or tensor.low is None:
        return torch.randn(tensor.shape, dtype=wide).to(dtype)
    return (tensor.low + (tensor.high - tensor.low) * torch.rand(tensor.shape, dtype=wide)).to(dtype)
