"""Replace torch's functions while a model is recorded: control flow, regions such as autocast, identity checks."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn
from torch.autograd import Function
from torch.utils import checkpoint

from sphinx_fxgraph.capture.formatting import short_dtype
from sphinx_fxgraph.capture.torch_private import (
    TRANSFORMS,
    HigherOrderOperator,
    checkpoint_generators,
    pytree,
    wrapped_functions,
)
from sphinx_fxgraph.capture.trace import public_methods


@functools.lru_cache(maxsize=4096)
def plain(function: Any) -> Callable[..., Any] | None:
    """Return Python code that means what an operator of control flow does; None for any other function."""
    return _MEANING.get(function.__name__) if isinstance(function, HigherOrderOperator) else None


def uncompiled(model: Any = None, **_options: Any) -> Any:
    """Stand in for `torch.compile`, by which torch also runs these operators: all stays as it is written."""
    return uncompiled if model is None else model


class _Body(nn.Module):
    """A function that an operator of control flow calls: a frame of the graph, named after the operator."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: Any) -> Any:
        """Call the function."""
        return self._function(*args)


def _body(name: str, function: Callable[..., Any]) -> nn.Module:
    made: nn.Module = type(name, (_Body,), {"__module__": "torch"})(function)
    return made


class _Cond(_Body):
    """A branch of ``torch.cond``: takes the condition too, so that its edge ends here."""

    def forward(self, condition: Any, *operands: Any) -> Any:  # noqa: ARG002 - a reader sees what decides
        """Call the function of the branch."""
        return self._function(*operands)


def _cond(condition: Any, yes: Callable[..., Any], no: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    branch = yes if condition else no
    return type("cond", (_Cond,), {"__module__": "torch"})(branch)(condition, *operands)


def _while_loop(
    condition: Callable[..., Any], body: Callable[..., Any], carried: Sequence[Any], others: Sequence[Any] = ()
) -> Any:
    step = _body("while_loop", body)
    while condition(*carried, *others):
        result = step(*carried, *others)
        carried = (result,) if isinstance(result, torch.Tensor) else result
    return tuple(carried)


def _scan(
    function: Callable[..., Any], carried: Sequence[Any], given: Sequence[Any], others: Sequence[Any] = ()
) -> Any:
    step, carried, rows = _body("scan", function), list(carried), []
    for number in range(given[0].shape[0]):
        leaves = pytree.tree_leaves(step(*carried, *(each[number] for each in given), *others))
        carried, row = leaves[: len(carried)], leaves[len(carried) :]
        rows.append(row)
    return carried, [torch.stack(list(column)) for column in zip(*rows, strict=True)]


def _map(function: Callable[..., Any], given: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    step = _body("map", function)
    rows = [step(*(each[number] for each in given), *others) for number in range(given[0].shape[0])]
    _, structure = pytree.tree_flatten(rows[0])
    columns = zip(*map(pytree.tree_leaves, rows), strict=True)
    return pytree.tree_unflatten([torch.stack(list(column)) for column in columns], structure)


_MEANING: dict[str, Callable[..., Any]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "map_impl": _map,
}


_CHECKPOINT = "checkpoint"
"""The mark of operators whose results are not kept for the backward pass."""


class Regions:
    """The blocks that are open, outermost first."""

    def __init__(self) -> None:
        self._open: list[Any] = []

    def enter(self, block: Any) -> None:
        """A block of torch's was entered."""
        self._open.append(block)

    def leave(self, block: Any) -> None:
        """It was left; one that was open before is not known."""
        for number in reversed(range(len(self._open))):
            if self._open[number] is block:
                del self._open[number]
                break

    @contextlib.contextmanager
    def region(self, mark: str) -> Iterator[None]:
        """While this context is entered operators have a mark."""
        self.enter(mark)
        try:
            yield
        finally:
            self.leave(mark)

    @property
    def autocasts(self) -> bool:
        """Return whether operators choose their own dtype."""
        return any("autocast" in mark for mark in self.marks())

    def marks(self) -> tuple[str, ...]:
        """Return the marks of an operator; of two nested regions of a kind the inner one counts."""
        if not self._open:
            return ()
        marks: dict[str, str] = {}
        for number, block in enumerate(self._open):
            if isinstance(block, str):
                marks[block] = block
            elif isinstance(block, torch.autocast):
                marks["autocast"] = f"autocast {short_dtype(block.fast_dtype)}" if block._enabled else ""
            elif not (number and self._open[number - 1] is _CHECKPOINT):  # the old kind does that by itself
                marks["grad"] = _grad_mark(block)
        return tuple(mark for mark in marks.values() if mark)


def _grad_mark(block: Any) -> str:
    if isinstance(block, torch.inference_mode):
        return "inference_mode" if block.mode else ""
    enabled = isinstance(block, torch.enable_grad) or getattr(block, "mode", False)
    return "enable_grad" if enabled else "no_grad"


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
    """The interface that the patches report to."""

    regions: Regions
    opaque: dict[Callable[..., Any], Callable[..., Any]]
    """Functions that are one node -> what runs them as one; the patches fill it."""
    opened: Collection[Any]
    """The classes of autograd functions that are looked into, and the transformations."""

    def call_module(self, original: Callable[..., Any], module: nn.Module, args: Any, kwargs: Any) -> Any:
        """A module is called; ``original`` does it."""

    def call_method(self, original: Callable[..., Any], name: str, module: nn.Module, args: Any, kwargs: Any) -> Any:
        """A method of a module is called; ``original`` does it."""

    def same(self, tensor: Any, other: Any) -> None:
        """A tensor was made from another one, or from nothing, without an operator."""

    def transform(
        self, transformed: Callable[..., Any], function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Call ``transformed`` with ``function``, which alone is looked into, and the arguments."""

    def call_opaque(self, target: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A function is called whose inside is not looked into."""


def patches(observer: Observer, model: nn.Module) -> list[Patch]:
    """Return everything by which an observer is told of what torch tells no function mode.

    Args:
        observer: what is told.
        model: the model, whose methods are patched.
    """
    call = nn.Module.__call__

    def call_module(module: nn.Module, /, *args: Any, **kwargs: Any) -> Any:
        return observer.call_module(call, module, args, kwargs)

    new = nn.Parameter.__new__

    def new_parameter(cls: type, data: Any = None, *args: Any, **kwargs: Any) -> Any:
        made: Any = new(cls, data, *args, **kwargs)
        observer.same(made, data)
        return made

    return [
        Patch(nn.Module, "__call__", _here(call, call_module)),
        *method_patches(model, observer.call_method),
        Patch(torch, "compile", _here(torch.compile, uncompiled)),
        *_blocks(observer.regions),
        *_checkpoints(observer.regions),
        *_autograd_functions(observer),
        *_wrapped_functions(observer),
        *_scripts(observer),
        *_transforms(observer),
        Patch(ThreadPoolExecutor, "submit", _here(ThreadPoolExecutor.submit, _at_once)),
        Patch(nn.Parameter, "__new__", staticmethod(_here(nn.Parameter.__new__, new_parameter))),
    ]


def method_patches(
    model: nn.Module, call: Callable[[Callable[..., Any], str, nn.Module, Any, Any], Any]
) -> Iterator[Patch]:
    """Return what lets the public methods of a model's modules be called through another function.

    Args:
        model: the model.
        call: takes the method as a function, its name, the module, the arguments and the keyword arguments.
    """

    def through(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def method(module: nn.Module, /, *args: Any, **kwargs: Any) -> Any:
            return call(original, name, module, args, kwargs)

        return _here(original, method)

    return (Patch(cls, name, through(name, original)) for cls, name, original in public_methods(model))


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
    """Patch both implementations of `torch.utils.checkpoint`."""
    for name in checkpoint_generators():
        yield Patch(checkpoint, name, _checkpointing(regions, getattr(checkpoint, name)))
    forward = checkpoint.CheckpointFunction.forward

    def reentrant(*args: Any) -> Any:
        with regions.region(_CHECKPOINT):
            return forward(*args)  # type: ignore[no-untyped-call]  # torch's class has no types

    yield Patch(checkpoint.CheckpointFunction, "forward", staticmethod(_here(forward, reentrant)))


def _checkpointing(regions: Regions, original: Callable[..., Any]) -> Callable[..., Any]:
    def generator(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with regions.region(_CHECKPOINT):
            yield from original(*args, **kwargs)

    return _here(original, generator)


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
        is_open = (
            cls.__module__.startswith("torch.") or cls in observer.opened
        )  # torch's own are parts of its functions
        if isinstance(forward, staticmethod) and not is_open:
            yield Patch(cls, "forward", staticmethod(_opaque(observer, cls, forward.__func__)))


def _wrapped_functions(observer: Observer) -> Iterator[Patch]:
    """Return the functions that a library has registered with `torch.fx.wrap`."""
    wrapped = wrapped_functions()
    for (_, name), names in list(wrapped.items()):
        original = names.get(name)
        if callable(original):  # not one of Python's own, such as len
            observer.opaque[original] = _opaque(observer, original, original)
            yield Patch(names, name, observer.opaque[original])


def _scripts(observer: Observer) -> Iterator[Patch]:
    """A scripted function has no Python to look into."""
    script = torch.jit.ScriptFunction.__call__

    def scripted(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        source = getattr(function, "_torchdynamo_inline", function)  # the function it was made from
        return observer.call_opaque(source, functools.partial(script, function), args, kwargs)

    yield Patch(torch.jit.ScriptFunction, "__call__", _here(script, scripted))


def _at_once(_executor: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
    """A task for a pool of threads runs here and now: what others do is not written down."""
    future: Future[Any] = Future()
    try:
        future.set_result(function(*args, **kwargs))
    except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
        future.set_exception(error)
    return future


def _transforms(observer: Observer) -> Iterator[Patch]:
    """A function that is transformed runs on tensors of another kind: one node."""
    for module_name, name, public, count in TRANSFORMS:
        module = sys.modules.get(module_name)
        original = getattr(module, name, None)
        if original is not None:
            yield Patch(module, name, _transformed(observer, original, getattr(torch.func, public), count))


def _transformed(observer: Observer, original: Callable[..., Any], target: Any, count: int) -> Callable[..., Any]:
    def replacement(*args: Any, **kwargs: Any) -> Any:
        if target is torch.vmap and target in observer.opened and args[4] is None:  # in one chunk
            return _vmap(observer, original, *args, **kwargs)
        return observer.call_opaque(target, functools.partial(original, *args[:count]), args[count:], kwargs)

    return _here(original, replacement)


def _vmap(
    observer: Observer, original: Callable[..., Any], function: Callable[..., Any], *settings: Any, **kwargs: Any
) -> Any:
    """Run a function under `torch.vmap` and look into it: its operators have the shapes that its code sees."""
    settings, args = settings[:4], settings[4:]
    results: list[Any] = []

    def each(*batched: Any, **options: Any) -> Any:
        for new, old in zip(pytree.tree_leaves(batched), pytree.tree_leaves(args), strict=True):
            if new is not old:
                observer.same(new, old)
        with observer.regions.region("vmap"):
            result = function(*batched, **options)
        results[:] = pytree.tree_leaves(result)
        return result

    made = observer.transform(original, each, *settings, *args, **kwargs)
    for new, old in zip(pytree.tree_leaves(made), results, strict=True):
        observer.same(new, old)
    return made
