"""The result of a tracer: a flat `torch.fx.Graph`, the module calls of its nodes, and which modules are leaves.

Every node carries in ``meta``:

``stack``
    the module calls it stands in, a tuple of `Frame`, outermost first, without the root's own; a leaf module's node
    stands in its owner's call.
``where``, ``source``
    the function and line that called it, as text for the record and as (file, line).
``inplace``
    whether it writes into one of its arguments.
``outputs``, ``result``, ``macs``, ``marks``
    what a run of it gave (`probe`).
``kind``
    of an attribute that cannot be looked up: parameter, buffer or constant.
``takes``
    it is no operator but takes a part out of a result.
``reads``
    that it makes a plain value of a tensor's: ``number`` or ``test``.
``hidden``
    the names of the keyword arguments that it was not given, but takes.
``constant``
    the tensor of an attribute that the model does not hold.
``state``
    the path of an attribute that it writes.
``sizes``
    the same as ``outputs`` with the sizes of the inputs, where dimensions are open.
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.modules import container, transformer
from torch.nn.modules import module as modules

from sphinx_fxgraph.capture.formatting import dotted, is_torch_nn

if TYPE_CHECKING:
    from torch import fx

    from sphinx_fxgraph.capture.recorder.generators import Draw
    from sphinx_fxgraph.record.model import Remark, Verdict


SIZE_FROM_VALUES = "size from values"
"""The mark of a node whose result has a size that depends on values."""


WRITTEN_TO = "written to "
"""With the name of an attribute, the mark of a node whose result the model keeps there."""


@dataclass(frozen=True)
class Frame:
    """One call of a module: its path, its class by dotted name, and which call of that path it is, from 0."""

    path: str
    type: str
    call: int
    method: str = "forward"


@dataclass
class Call:
    """The arguments and results of a module call, with nodes in place of tensors."""

    stack: tuple[Frame, ...]
    """The calls it stands in, its own frame last."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    names: dict[fx.Node, str] = field(default_factory=dict)
    """The nodes that went in, by the parameter of ``forward`` they arrive by, in its order: ``x``, ``xs[0]``."""
    returned: Any = None
    where: str = ""
    marks: tuple[str, ...] = ()


@dataclass
class Trace:
    """A traced model, or what was traced before it failed."""

    graph: fx.Graph
    calls: list[Call]
    inputs: list[Any]
    """What the placeholders stand for, in their order."""
    error: BaseException | None = None
    """A `CaptureError` where the tracer has words of its own for it."""
    probed: bool = False
    """Whether the nodes say already what they give."""
    notes: tuple[str, ...] = ()
    """For the record."""
    complete: bool = True
    """Whether it is known where every number that was read from a tensor goes."""
    draws: tuple[Draw, ...] = ()
    """What was drawn from generators that are not torch's."""
    tracer: str = ""
    """Which of the tracers made it, where that was not asked for."""
    verdict: Verdict | None = None
    remarks: tuple[Remark, ...] | None = None
    """None where they are to be found in the graph."""
    unregistered: dict[str, nn.Module] = field(default_factory=dict)
    """Modules that are called but that the model does not know as its own, by the path that stands for them."""


class Calls:
    """The module calls that operators stand in, each in one piece: a call that was left is not entered again.

    An operator that would stand in one, since something has moved it, stands in the call around it.
    """

    def __init__(self) -> None:
        self.open: tuple[Frame, ...] = ()
        """The calls that the last operator stands in."""
        self._left: set[Frame] = set()

    def go(self, stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
        """Enter and leave calls on the way to the next operator; returns where it stands."""
        stack = tuple(itertools.takewhile(lambda frame: frame not in self._left, stack))
        self._left.update(frame for frame in self.open if frame not in stack)
        self.open = stack
        return stack


def passed_through(value: Any) -> Any:
    """Stands in a flat graph for a value that a module call returns as it was given.

    Without it the users of that value would seem to take it past the call. It is no operator and no node of a record.
    """
    return value


def after_writes(value: Any, *_writers: Any) -> Any:
    """Stand in a graph for a tensor after its elements were written through views of it.

    Args:
        value: the tensor as it was before, or the first node that wrote all of it.
    """
    return value


after_writes.__module__ = "sphinx_fxgraph"  # what records call it, wherever it is defined


def leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Yield the leaves of nested tuples, lists and dicts by path: ``[0]``, ``['mask']``."""
    if isinstance(value, tuple | list):
        return [leaf for number, item in enumerate(value) for leaf in leaves(item, f"{path}[{number}]")]
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaves(item, f"{path}[{key!r}]")]
    return [(path, value)]


def _modules(*files: object) -> frozenset[type]:
    return frozenset(
        cls for file in files for cls in vars(file).values() if isinstance(cls, type) and issubclass(cls, nn.Module)
    )


_CONTAINERS = _modules(container)
_OPENED = _CONTAINERS | {cls for cls in _modules(transformer) if cls.__module__ == transformer.__name__}
"""Transformers are torch's own models, made of its modules."""


def is_leaf(module: nn.Module, path: str, patterns: Sequence[str] = (), *, literal: bool = False) -> bool:
    """Return whether a module stays closed.

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


def public_methods(model: nn.Module) -> Iterator[tuple[type, str, FunctionType]]:
    """Yield the methods that code may call on a module of the model instead of the module: class, name, function.

    Classes of torch, methods that `torch.nn.Module` has, ``forward`` and names with an underscore are left out.
    """
    classes = {cls for kind in {type(module) for module in model.modules()} for cls in kind.__mro__}
    for cls in sorted(classes, key=dotted):
        if cls.__module__.partition(".")[0] in ("torch", "builtins") or not issubclass(cls, nn.Module):
            continue
        for name, value in list(vars(cls).items()):
            if isinstance(value, FunctionType) and not name.startswith("_") and name not in _OF_EVERY_MODULE:
                yield cls, name, value


_OF_EVERY_MODULE = frozenset((*dir(nn.Module), "forward"))


def has_hooks(module: nn.Module) -> bool:
    """Return whether code of the model's own runs around the ``forward`` of a module, where it can be seen."""
    if isinstance(module, torch.jit.ScriptModule):
        return False
    everywhere = modules._global_forward_hooks or modules._global_forward_pre_hooks
    return bool(module._forward_hooks or module._forward_pre_hooks or everywhere)


def is_named(path: str, kind: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern names the path of a module, or its class with or without its package."""
    names = {path, kind, kind.rpartition(".")[2]} - {""}
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names)
