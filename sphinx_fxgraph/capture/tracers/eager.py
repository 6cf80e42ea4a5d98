"""The observed tracer: run the model once and write down what it does (see `Recorder`)."""

from __future__ import annotations

import dis
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
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


def compares_identity(model: nn.Module) -> bool:
    """Return whether a method of a module's class, torch's left out, compares objects by identity (``y is x``)."""
    return any(map(_compares, {code for cls in {type(module) for module in model.modules()} for code in _codes(cls)}))


def _codes(cls: type) -> Iterator[CodeType]:
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] not in ("torch", "builtins"):
            yield from (value.__code__ for value in vars(base).values() if isinstance(value, FunctionType))
            forward = vars(base).get("forward")
            names = forward.__code__.co_names if isinstance(forward, FunctionType) else ()
            helpers = (forward.__globals__.get(name) for name in names) if isinstance(forward, FunctionType) else ()
            yield from (each.__code__ for each in helpers if isinstance(each, FunctionType))


@functools.lru_cache(maxsize=4096)
def _compares(code: CodeType) -> bool:
    before: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IS_OP" and not (before and before.opname == "LOAD_CONST"):
            return True
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval == "id":
            return True
        before = instruction
    return any(_compares(each) for each in code.co_consts if isinstance(each, CodeType))


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
    if recorder.aliased and change is None and (recorder.looks_up or compares_identity(model)):
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
