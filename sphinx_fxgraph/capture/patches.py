"""What is put in place of torch's own functions while a model is observed, and taken away afterwards."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn
from torch._functorch import apis
from torch.autograd import Function
from torch.fx import _symbolic_trace
from torch.utils import checkpoint

from sphinx_fxgraph.capture.regions import Regions

_ABSENT: Any = object()


class Patch(NamedTuple):
    """A name of a class, a module or a dict, and what it is to be."""

    owner: Any
    name: str
    value: Any


@contextlib.contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    """Put everything in its place, and afterwards back as it was, also after an exception."""
    before: list[Patch] = []
    try:
        for patch in patches:
            names = patch.owner if isinstance(patch.owner, dict) else vars(patch.owner)
            before.append(patch._replace(value=names.get(patch.name, _ABSENT)))
            _put(patch)
        yield
    finally:
        for patch in reversed(before):
            _put(patch)


def _put(patch: Patch) -> None:
    owner, name, value = patch
    if isinstance(owner, dict):
        owner.pop(name, None) if value is _ABSENT else owner.__setitem__(name, value)
    elif value is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


class Observer(Protocol):
    """What the patches report to."""

    regions: Regions
    opaque: dict[Callable[..., Any], Callable[..., Any]]
    """Functions that are one node -> what runs them as one; the patches fill it."""

    def call_module(self, original: Callable[..., Any], module: nn.Module, args: Any, kwargs: Any) -> Any:
        """A module is called; ``original`` does it."""

    def call_opaque(self, target: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A function is called whose inside is not looked into."""


def patches(observer: Observer) -> list[Patch]:
    """Everything by which an observer is told of what torch tells no function mode."""
    call = nn.Module.__call__

    def call_module(module: nn.Module, /, *args: Any, **kwargs: Any) -> Any:
        return observer.call_module(call, module, args, kwargs)

    return [
        Patch(nn.Module, "__call__", _here(call, call_module)),
        *_blocks(observer.regions),
        *_checkpoints(observer.regions),
        *_autograd_functions(observer),
        *_wrapped_functions(observer),
        *_scripted_and_mapped(observer),
    ]


def _here(original: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
    """The replacement in this thread; what others do is none of our business."""
    thread = threading.get_ident()

    @functools.wraps(original)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        return (replacement if threading.get_ident() == thread else original)(*args, **kwargs)

    return chosen


def _blocks(regions: Regions) -> Iterator[Patch]:
    """``with torch.no_grad():`` and the like."""
    for cls in (torch.no_grad, torch.enable_grad, torch.set_grad_enabled, torch.inference_mode, torch.autocast):
        yield from _block(regions, cls)


def _block(regions: Regions, cls: Any) -> tuple[Patch, Patch]:
    enter, leave = cls.__enter__, cls.__exit__

    def entered(block: Any) -> Any:
        result = enter(block)
        regions.enter(block)
        return result

    def left(block: Any, *error: Any) -> Any:
        regions.leave(block)
        return leave(block, *error)

    return Patch(cls, "__enter__", _here(enter, entered)), Patch(cls, "__exit__", _here(leave, left))


def _checkpoints(regions: Regions) -> Iterator[Patch]:
    """What runs inside `torch.utils.checkpoint`, of which there are two kinds."""
    original = getattr(checkpoint, "_checkpoint_without_reentrant_generator", None)
    if original is not None:

        def generator(*args: Any, **kwargs: Any) -> Iterator[Any]:
            with regions.checkpoint():
                yield from original(*args, **kwargs)

        yield Patch(checkpoint, original.__name__, _here(original, generator))
    forward = checkpoint.CheckpointFunction.forward

    def reentrant(*args: Any) -> Any:
        with regions.checkpoint():
            return forward(*args)  # type: ignore[no-untyped-call]  # torch's class has no types

    yield Patch(checkpoint.CheckpointFunction, "forward", staticmethod(_here(forward, reentrant)))


def _opaque(observer: Observer, target: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return observer.call_opaque(target, original, args, kwargs)

    return _here(original, replacement)


def _autograd_functions(observer: Observer) -> Iterator[Patch]:
    """An `torch.autograd.Function` is one node: where ``forward`` is called, since ``apply`` may be bound already."""
    todo = [Function]
    while todo:
        cls = todo.pop()
        todo += cls.__subclasses__()
        forward = vars(cls).get("forward")
        if isinstance(forward, staticmethod) and cls is not checkpoint.CheckpointFunction:
            yield Patch(cls, "forward", staticmethod(_opaque(observer, cls, forward.__func__)))


def _wrapped_functions(observer: Observer) -> Iterator[Patch]:
    """What a library has told torch.fx not to look into (`torch.fx.wrap`)."""
    wrapped: dict[tuple[int, str], dict[str, Any]] = getattr(_symbolic_trace, "_wrapped_fns_to_patch", {})
    for (_, name), names in list(wrapped.items()):
        original = names.get(name)
        if callable(original):  # not one of Python's own, such as len
            observer.opaque[original] = _opaque(observer, original, original)
            yield Patch(names, name, observer.opaque[original])


def _scripted_and_mapped(observer: Observer) -> Iterator[Patch]:
    """Scripted functions have no Python to look into, and vmap runs Python on tensors of another kind."""
    script = torch.jit.ScriptFunction.__call__

    def scripted(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        source = getattr(function, "_torchdynamo_inline", function)  # the function it was made from
        return observer.call_opaque(source, functools.partial(script, function), args, kwargs)

    yield Patch(torch.jit.ScriptFunction, "__call__", _here(script, scripted))
    impl = getattr(apis, "vmap_impl", None)
    if impl is not None:

        def mapped(func: Any, in_dims: Any, out_dims: Any, randomness: Any, chunk: Any, *args: Any, **kw: Any) -> Any:
            run = functools.partial(impl, func, in_dims, out_dims, randomness, chunk)
            return observer.call_opaque(torch.vmap, run, args, kw)

        yield Patch(apis, "vmap_impl", _here(impl, mapped))
