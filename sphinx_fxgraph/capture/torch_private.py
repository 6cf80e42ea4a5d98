"""Every private name of torch that this package uses, in one place, with what happens where it is gone.

`PRIVATE` lists the names. A test looks each of them up on the oldest, the pinned and the newest supported torch.
Where one is gone, `missing` says so and every record has a note of it: nothing is lost silently.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, cast

import torch
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.fx import _symbolic_trace
from torch.utils import _pytree as pytree
from torch.utils import checkpoint
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

__all__ = [
    "CAN_REMEMBER",
    "PRIVATE",
    "TRANSFORMS",
    "HigherOrderOperator",
    "OpOverload",
    "OpOverloadPacket",
    "TorchDispatchMode",
    "checkpoint_generators",
    "exists",
    "fake_tensor_mode",
    "has_composite_kernel",
    "is_traceable_wrapper_subclass",
    "is_transforming",
    "missing",
    "open_sizes_of_one",
    "pytree",
    "sequence_number",
    "slow_attention",
    "without_dispatch",
    "without_functions",
    "wrapped_functions",
]

TRANSFORMS = (
    ("torch._functorch.apis", "vmap_impl", "vmap", 5),
    ("torch._functorch.eager_transforms", "grad_impl", "grad", 3),
    ("torch._functorch.eager_transforms", "grad_and_value_impl", "grad_and_value", 3),
    ("torch._functorch.eager_transforms", "_vjp_with_argnums", "vjp", 1),
    ("torch._functorch.eager_transforms", "_jvp_with_argnums", "jvp", 1),
)
"""Transformations of `torch.func`: module, name, public name, and how many arguments precede those of the function."""

PRIVATE = {
    "torch._ops.HigherOrderOperator": "",
    "torch._ops.OpOverload": "",
    "torch._ops.OpOverloadPacket": "",
    "torch.utils._pytree.tree_map": "",
    "torch.utils._pytree.tree_leaves": "",
    "torch.utils._python_dispatch.TorchDispatchMode": "",
    "torch.utils._python_dispatch.is_traceable_wrapper_subclass": "",
    "torch.fx._symbolic_trace._wrapped_fns_to_patch": "functions wrapped for torch.fx are traced inside",
    "torch.utils.checkpoint._checkpoint_without_reentrant_generator": "operators in a checkpoint have no mark of it",
    "torch._C._DisableTorchDispatch": "results on meta are not remembered",
    "torch._C.DisableTorchFunction": "sizes and strides are asked through the recorder, which takes longer",
    "torch._C._functorch.peek_interpreter_stack": "results on meta are not remembered",
    "torch._C._dispatch_has_kernel_for_dispatch_key": "composite operators are counted by their own formulas only",
    "torch._C._autograd._get_sequence_nr": "a backward graph has no module frames",
    "torch._subclasses.fake_tensor.FakeTensorMode": "fake tensors are not available",
    "torch.fx.experimental.symbolic_shapes.ShapeEnv": "fake tensors are not available",
    "torch.fx.experimental._config": "an exported graph takes sizes of one for constants",
    "torch.backends.mha": "torch's encoder layers may run as one operator of their fast path",
    **{
        f"{module}.{name}": f"a function under torch.func.{public} is not one node"
        for module, name, public, _ in TRANSFORMS
    },
}
"""Dotted name -> what is lost without it; empty where the package cannot be imported without it."""


@functools.cache
def missing() -> tuple[str, ...]:
    """Return what is lost with this torch, a sentence for each name that is gone.

    Modules that torch has not imported are not looked into: that would cost more than a capture.
    """
    return tuple(
        f"torch {torch.__version__} has no {name}: {lost}"
        for name, lost in PRIVATE.items()
        if lost and (name.rpartition(".")[0] in sys.modules or "._C." in name) and not exists(name)
    )


def exists(name: str) -> bool:
    """Return whether a dotted name stands for something, importing its module if it has to be."""
    owner, _, last = name.rpartition(".")
    try:
        return hasattr(_attribute(owner), last) or importlib.util.find_spec(name) is not None
    except (ImportError, AttributeError):
        return False


def _attribute(name: str) -> Any:
    """Return a module, or a part of torch's C extension, which is no package."""
    if name.startswith("torch._C"):
        return functools.reduce(getattr, name.split(".")[1:], torch)
    return importlib.import_module(name)


# -- what they are used for


def wrapped_functions() -> dict[tuple[int, str], dict[str, Any]]:
    """Return the globals of the modules that have a function registered with `torch.fx.wrap`, by id and name."""
    found: dict[tuple[int, str], dict[str, Any]] = getattr(_symbolic_trace, "_wrapped_fns_to_patch", {})
    return found


def without_dispatch() -> AbstractContextManager[Any]:
    """Return a context in which no dispatch mode sees an operator."""
    return cast("AbstractContextManager[Any]", torch._C._DisableTorchDispatch())


without_functions: Callable[[], AbstractContextManager[Any]] = getattr(
    torch._C, "DisableTorchFunction", contextlib.nullcontext
)
"""Return a context in which no function mode sees what is asked of a tensor."""


def is_transforming() -> bool:
    """Return whether a transformation of `torch.func` runs."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def checkpoint_generators() -> tuple[str, ...]:
    """Return the name of the generator that `torch.utils.checkpoint` runs around a function; empty if it is gone.

    Since torch 2.14 the function with the old name calls another one, which torch itself calls too.
    """
    prefix = "_checkpoint_without_reentrant_generator"
    return tuple(name for name in (f"{prefix}_impl", prefix) if hasattr(checkpoint, name))[:1]


CAN_REMEMBER = hasattr(torch._C, "_DisableTorchDispatch") and hasattr(torch._C, "_functorch")
"""Whether results on meta can be remembered: what `without_dispatch` and `is_transforming` need is there."""


def has_composite_kernel(func: OpOverload) -> bool:
    """Return whether an operator has a kernel that calls other operators."""
    has_kernel = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", None)
    return bool(has_kernel and has_kernel(func._name, "CompositeImplicitAutograd"))


def sequence_number() -> int:
    """Return the number that the next function of the backward graph gets."""
    return int(torch._C._autograd._get_sequence_nr())


def fake_tensor_mode() -> Any:
    """Return a `FakeTensorMode` with a shape environment of its own; imports sympy, so it is imported here."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    return FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())


def open_sizes_of_one() -> AbstractContextManager[Any]:
    """Return a context in which torch.export takes a size of one for a size like any other."""
    from torch.fx.experimental import _config

    if not hasattr(_config, "backed_size_oblivious"):
        return contextlib.nullcontext()
    return cast("AbstractContextManager[Any]", cast("Any", _config).patch(backed_size_oblivious=True))


@contextlib.contextmanager
def slow_attention() -> Iterator[None]:
    """Keep torch's own encoder layers in operators that the counter knows; their fast path is one of its own."""
    switch: Any = getattr(torch.backends, "mha", None)
    if switch is None:
        yield
        return
    before = switch.get_fastpath_enabled()
    switch.set_fastpath_enabled(False)
    try:
        yield
    finally:
        switch.set_fastpath_enabled(before)
