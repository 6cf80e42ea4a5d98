"""Wrappers that a model is trained in and not made of: they are taken off while it is captured."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

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
