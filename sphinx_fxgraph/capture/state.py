"""Keep the model, its wrappers and the random generators as they were before a capture, also after an exception."""

from __future__ import annotations

import contextlib
import operator
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.parameter import is_lazy

from sphinx_fxgraph.capture.errors import CaptureError
from sphinx_fxgraph.capture.recorder.provenance import storage_of
from sphinx_fxgraph.record.model import join


def unwrapped(model: nn.Module) -> tuple[nn.Module, tuple[str, ...]]:
    """The model without ``torch.compile`` and data parallelism, and a note for each that was there.

    Its modules are changed; `untouched` puts them back.
    """
    notes: list[str] = []
    model = _inner(model, "", notes)
    for path, module in list(model.named_modules()):
        if getattr(module, "_compiled_call_impl", None) is not None:  # by `module.compile()`
            vars(module)["_compiled_call_impl"] = None
            notes.append(_note("torch.compile", path))
        for name, child in module._modules.items():
            if child is not None:
                module._modules[name] = _inner(child, join(path, name), notes)
    return model, tuple(notes)


def _inner(module: nn.Module, path: str, notes: list[str]) -> nn.Module:
    while True:
        if isinstance(module, DataParallel | DistributedDataParallel):
            notes.append(_note(type(module).__name__, path))
            module = module.module
        elif "_orig_mod" in module._modules:  # torch._dynamo.OptimizedModule, which need not be imported
            notes.append(_note("torch.compile", path))
            module = module._modules["_orig_mod"] or module
        else:
            return module


def _note(wrapper: str, path: str) -> str:
    return f"{wrapper} around {path or 'the model'} is left out"


def set_mode(model: nn.Module, training: bool) -> tuple[str, ...]:
    """Put a model into training or evaluation mode.

    Args:
        model: the model; a module that `torch.export` has made keeps the mode in which it was exported.
        training: whether into training mode.

    Returns:
        A note for each module that keeps its mode.
    """
    try:
        model.train(training)
    except NotImplementedError:
        pass
    else:
        return ()
    fixed = [path for path, module in model.named_modules() if "train" in vars(module)]
    for path, module in model.named_modules():
        if not any(path == each or each == "" or path.startswith(f"{each}.") for each in fixed):
            module.training = training
    return tuple(
        f"{path or 'the model'} is an exported program, in the mode in which it was exported" for path in fixed
    )


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Compiled functions run as they are written."""
    dynamo_is_there = "torch._dynamo" in sys.modules
    if not dynamo_is_there or not hasattr(torch.compiler, "set_stance"):  # since torch 2.6
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@contextlib.contextmanager
def followed_by_dynamo() -> Iterator[None]:
    """Compiled functions are traced again, also in `eagerly`: by them torch.export follows control flow."""
    if not hasattr(torch.compiler, "set_stance"):
        yield
        return
    with torch.compiler.set_stance("default"):
        yield


@contextlib.contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Give every module its attributes, mode and hooks back, every buffer its values, torch and Python their seeds.

    A model may write to its attributes in ``forward`` (a cache, a counter), and a tracer stores constants on it. The
    values of parameters are kept by what runs the model (`Values`): they are many, and few models write there.
    """
    modules, parameters, buffers = list(model.modules()), list(model.parameters()), list(model.buffers())
    kept: list[_Saved | _Held] = [_Saved(vars(module)) for module in modules]
    kept += map(_Held, (*parameters, *buffers))
    filled = [(buffer, buffer.clone()) for buffer in buffers if not buffer.is_meta]
    # TorchScript keeps the mode of its modules out of their attributes.
    modes = [(module, module.training) for module in modules if isinstance(module, torch.jit.ScriptModule)]
    gpus = {tensor.device for tensor in parameters if tensor.is_cuda}
    with torch.random.fork_rng(sorted(gpus, key=str)), _python_seeds():
        try:
            yield
        finally:
            for saved in kept:
                saved.restore()
            for module, training in modes:
                module.training = training
            with torch.no_grad():
                for buffer, values in filled:
                    buffer.copy_(values)


def seed(number: int) -> None:
    """Let random numbers start from a seed, on the CPU; `untouched` sets them back."""
    numpy = sys.modules.get("numpy")
    torch.default_generator.manual_seed(number)
    random.seed(number)
    if numpy:
        numpy.random.seed(number)


class _Running:
    """The capture that runs, if any."""

    lock = threading.Lock()
    owner = 0
    """The thread that it runs in; 0 for none."""


_running = _Running()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let one capture run at a time, since torch is patched while it runs; captures of other threads wait.

    Raises:
        CaptureError: the capture was started by the code of a model that is being captured.
    """
    if _running.owner == threading.get_ident():
        raise CaptureError("trace", "a model that is being captured cannot capture another one")
    with _running.lock:
        _running.owner = threading.get_ident()
        try:
            yield
        finally:
            _running.owner = 0


@contextlib.contextmanager
def _python_seeds() -> Iterator[None]:
    numpy = sys.modules.get("numpy")  # only a model that uses it can change its seed
    states = random.getstate(), numpy.random.get_state() if numpy else None
    try:
        yield
    finally:
        random.setstate(states[0])
        if numpy:
            numpy.random.set_state(states[1])


class _Saved:
    """The attributes of a module, and what is in its dicts, lists and sets, be they its own or those of `nn.Module`.

    These stay the same objects: the handle of a hook refers to the dict that the hook is in.
    """

    def __init__(self, attributes: dict[str, Any]) -> None:
        kept = [value for value in attributes.values() if isinstance(value, _CONTAINERS)]
        self._kept: list[tuple[Any, Any]] = [(value, value.copy() if value else ()) for value in (attributes, *kept)]

    def restore(self) -> None:
        for value, content in self._kept:
            if (value or content) and not _same(value, content):  # most are empty
                value.clear()
                value.extend(content) if isinstance(value, list) else value.update(content)


_CONTAINERS = dict, list, set


def _same(value: Any, content: Any) -> bool:
    """Return whether a dict, list or set has the very objects that a copy has."""
    if len(value) != len(content):
        return False
    if isinstance(value, set):
        return set(map(id, value)) == set(map(id, content))
    keys = all(map(operator.is_, value, content))
    return keys and (isinstance(value, list) or all(map(operator.is_, value.values(), content.values())))


class _Held:
    """The data of a parameter or buffer, which code may replace: ``weight.data = renorm(weight)``."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor, self._data, self._grad = tensor, None if is_lazy(tensor) else tensor.detach(), tensor.grad
        self._requires_grad = tensor.requires_grad

    def restore(self) -> None:
        tensor, data = self._tensor, self._data
        if data is not None and storage_of(tensor) != storage_of(data):
            tensor.data = data
        if tensor.grad is not self._grad:
            tensor.grad = self._grad
        if tensor.requires_grad != self._requires_grad:
            tensor.requires_grad_(self._requires_grad)


class Values:
    """The values of a model's tensors, each kept when something is about to be written into it."""

    def __init__(self, model: nn.Module) -> None:
        tensors = [tensor for tensor in (*model.parameters(), *model.buffers()) if not is_lazy(tensor)]
        self._held = {storage_of(tensor) for tensor in tensors if not tensor.is_meta} - {None}
        self._before: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}

    def keep(self, tensor: torch.Tensor) -> None:
        """Something is about to be written into a tensor."""
        number = storage_of(tensor)
        if number is not None and number in self._held and number not in self._before:
            storage = tensor.untyped_storage()
            self._before[number] = storage, storage.clone()  # type: ignore[no-untyped-call]  # torch's

    def restore(self) -> None:
        """Write everything back."""
        for storage, values in self._before.values():
            storage.copy_(values)
        self._before.clear()
