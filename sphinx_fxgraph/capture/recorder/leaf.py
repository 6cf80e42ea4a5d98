"""Which modules are one node, and which are opened."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.modules import container, transformer
from torch.nn.modules import module as modules

from sphinx_fxgraph.capture.formatting import dotted, is_torch_nn


def _modules(*files: object) -> frozenset[type]:
    return frozenset(
        cls for file in files for cls in vars(file).values() if isinstance(cls, type) and issubclass(cls, nn.Module)
    )


_CONTAINERS = _modules(container)
_OPENED = _CONTAINERS | {cls for cls in _modules(transformer) if cls.__module__ == transformer.__name__}
"""Transformers are torch's own models, made of its modules."""


def is_leaf(module: nn.Module, path: str, patterns: Sequence[str] = (), *, literal: bool = False) -> bool:
    """Whether a module stays closed.

    It does where the code of its ``forward`` is torch.nn's own, where it is a ScriptModule, and where a pattern names
    its class or path. Containers and transformers of torch.nn are opened, and everything else.

    Args:
        module: the module.
        path: where it stands in the model.
        patterns: of types or paths.
        literal: close transformers too, as torch.fx does.
    """
    if is_named(path, dotted(type(module)), patterns):
        return True
    if isinstance(module, torch.jit.ScriptModule):
        return True
    owner = next(cls for cls in type(module).__mro__ if "forward" in vars(cls))
    if "forward" in vars(module) or owner is nn.Module:
        return False
    return is_torch_nn(owner) and owner not in (_CONTAINERS if literal else _OPENED)


def has_hooks(module: nn.Module) -> bool:
    """Whether code of the model's own runs around the ``forward`` of a module, where it can be seen."""
    if isinstance(module, torch.jit.ScriptModule):
        return False
    everywhere = modules._global_forward_hooks or modules._global_forward_pre_hooks
    return bool(module._forward_hooks or module._forward_pre_hooks or everywhere)


def is_named(path: str, kind: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns names the path of a module, or its class with or without where that is from."""
    names = {path, kind, kind.rpartition(".")[2]} - {""}
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names)
