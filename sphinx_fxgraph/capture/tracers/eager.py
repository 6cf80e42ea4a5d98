"""The observed tracer: run the model once and write down what it does (see `Recorder`)."""

from __future__ import annotations

import dis
import functools
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import torch
from torch import nn

from sphinx_fxgraph.capture.errors import by_model, message_of
from sphinx_fxgraph.capture.inputs import copied, named
from sphinx_fxgraph.capture.recorder.recorder import LimitError, Recorder
from sphinx_fxgraph.capture.state import untouched
from sphinx_fxgraph.capture.trace import Trace, after_writes, passed_through
from sphinx_fxgraph.capture.tracers import reads
from sphinx_fxgraph.capture.tracers.reads import Change


def compares_identity(model: nn.Module, method: str = "") -> bool:
    """Return whether code that a call of the model may reach compares objects by identity (``y is x``).

    Args:
        model: the model.
        method: the method that is called instead of ``forward``.

    Followed by name are the methods of the modules' classes and the functions of the files they are written in, those
    of torch left out; the answer may be yes where the comparison does not run.
    """
    classes = {
        base for cls in {type(module) for module in model.modules()} for base in cls.__mro__ if _is_foreign(base)
    }
    methods: dict[str, list[FunctionType]] = defaultdict(list)
    for base in classes:
        for name, value in vars(base).items():
            methods[name] += _functions(value)
    hooks = [hook for module in model.modules() for table in _hooks(module) for hook in table.values()]
    found = [each for name in (*_IMPLICIT, method or "forward") for each in methods[name]]
    found += [function for hook in hooks for function in _functions(hook)]
    seen = set(found)
    while found:
        function = found.pop()
        if _compares(function):
            return True
        reached = [each for cell in function.__closure__ or () for each in _functions(_content(cell))]
        for name in _names(function.__code__):
            reached += (*methods.get(name, ()), *_functions(function.__globals__.get(name)))
        found += {each for each in reached if each not in seen}
        seen.update(reached)
    return False


_IMPLICIT = ("forward", "__call__", "__getattr__", "__getattribute__", "__getitem__", "__iter__", "__len__", "__bool__")
"""Methods that are called without their name in the code."""


def _hooks(module: nn.Module) -> Iterator[Mapping[Any, Any]]:
    yield from (value for name, value in vars(module).items() if name.endswith("_hooks") and isinstance(value, Mapping))


def _is_foreign(item: Any) -> bool:
    """Return whether a class or function is neither torch's nor Python's."""
    package = (item.__module__ or "").partition(".")[0]
    return package != "torch" and package not in sys.stdlib_module_names


def _functions(value: Any) -> list[FunctionType]:
    """Return the functions that an attribute of a class, a global or a hook runs."""
    if isinstance(value, property):
        value = value.fget
    value = getattr(value, "func", value)  # of a partial, a cached property
    value = getattr(value, "__func__", value)  # of a method, a classmethod, a staticmethod
    return [value] if isinstance(value, FunctionType) and _is_foreign(value) else []


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code and those of the functions in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


@functools.lru_cache(maxsize=4096)
def _names(code: CodeType) -> frozenset[str]:
    return frozenset(name for each in _codes(code) for name in each.co_names)


@functools.lru_cache(maxsize=4096)
def _compares(function: FunctionType) -> bool:
    """Return whether a function asks for the identity of what may be a tensor.

    Of a comparison the second operand decides.
    """
    free = dict(zip(function.__code__.co_freevars, map(_content, function.__closure__ or ()), strict=False))
    for code in _codes(function.__code__):
        names: list[dis.Instruction] = []
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval == "id":
                return True
            if instruction.opname == "IS_OP" and not isinstance(
                _operand(names, function.__globals__, free), _NO_TENSORS
            ):
                return True
            names = [*names, instruction] if instruction.opname == "LOAD_ATTR" else [instruction]
    return False


def _operand(names: Sequence[dis.Instruction], scope: Mapping[str, Any], free: Mapping[str, Any]) -> Any:
    """Return the object that instructions load, a name and attributes of it, as far as it is known before a run."""
    (first, *attributes) = names
    if first.opname == "LOAD_CONST" or (first.argval == "self" and not attributes):
        return ""
    value = {"LOAD_GLOBAL": scope, "LOAD_DEREF": free}.get(first.opname, {}).get(first.argval)
    for each in attributes:
        value = getattr(value, each.argval, None)
    return value


_NO_TENSORS = (type, FunctionType, BuiltinFunctionType, ModuleType, torch.dtype, torch.layout, str, int, float, Enum)


def trace(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    leaf: Sequence[str] = (),
    method: str = "",
    *,
    opened: Collection[type] = (),
    change: Change | None = None,
    most: int = 0,
    identity: bool = False,
) -> Trace:
    """Run a model and write down what it does.

    Args:
        model: it is left as it was.
        args: what ``forward`` is called with; they are copied.
        kwargs: and its keyword arguments.
        leaf: patterns of types or paths of modules that stay closed.
        method: a method to call instead of ``forward``.
        opened: classes of autograd functions that are looked into. One that calls modules of the model is, too.
        change: gives the model other values than it reads from tensors (see `reads`).
        most: stop after so many nodes; 0 for no limit.
        identity: leave all tensors the same objects (see `Recorder`).

    Returns:
        The whole graph, or the part up to the operator that failed, with the error.
    """
    recorder = Recorder(model, leaf, opened, change, most, identity)
    with untouched(model):
        traced = _observe(recorder, model, args, kwargs, method)
    if recorder.entered - {*opened}:
        return trace(model, args, kwargs, leaf, method, opened={*opened, *recorder.entered})
    if (
        _NEEDS_GRADIENTS in message_of(traced.error) and not torch.is_grad_enabled()
    ):  # forces, as the gradient of an energy
        with torch.enable_grad():
            return trace(model, args, kwargs, leaf, method, opened=opened, change=change, most=most)
    if recorder.aliased and change is None and (recorder.looks_up or compares_identity(model, method)):
        plain = trace(model, args, kwargs, leaf, method, opened=opened, identity=True)
        if _steps(plain) != _steps(traced):
            return plain
    if change is None and traced.error is None:
        most = 2 * len(traced.graph.nodes) + 100

        def again(change: Change) -> Trace:
            return trace(model, args, kwargs, leaf, method, opened=opened, change=change, most=most, identity=identity)

        traced.complete = reads.link(traced, again)
    return traced


def _steps(traced: Trace) -> list[tuple[str, str]]:
    """Return what ran: the order and the targets of all operators, but what only carries a value."""
    carries = (after_writes, passed_through)
    nodes = [node for node in traced.graph.nodes if node.op.startswith("call") and node.target not in carries]
    return [(node.op, str(node.target)) for node in nodes if not node.meta.get("takes")]


_NEEDS_GRADIENTS = "does not require grad and does not have a grad_fn"
"""How torch refuses to differentiate what was computed without gradients."""


def _observe(
    recorder: Recorder, model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], method: str
) -> Trace:
    error: BaseException | None = None
    try:
        args, kwargs = [copied(value) for value in args], {key: copied(value) for key, value in kwargs.items()}
        with recorder.recording():
            recorder.receives(named(getattr(model, method or "forward"), args, kwargs))
            recorder.returns(recorder.run(getattr(model, method) if method else model, args, kwargs))
    except LimitError as raised:
        error = raised
    except by_model() as raised:
        error = raised
        recorder.failed(raised)
    return recorder.trace(error)
