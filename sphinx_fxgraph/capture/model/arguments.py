"""The arguments of a call: how they fit a signature, and copies that a model may write into."""

from __future__ import annotations

import copy
import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.torch_private import pytree as torch_pytree
from sphinx_fxgraph.capture.trace import leaves
from sphinx_fxgraph.dtypes import DTYPES


class ArgumentError(TypeError):
    """The inputs do not fit the signature of ``forward``."""


def bind(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    """The arguments by the names of the parameters.

    Raises:
        ArgumentError: they do not fit.
    """
    try:
        return inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{function.__qualname__}: {error}") from None


def arrivals(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[fx.Node, str]:
    """The nodes in the arguments of a module call, by the parameter of ``forward`` that each arrives by."""
    try:
        signature = _signature(module.forward)
        arguments = signature.bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # the call is about to fail, or is one of a function written in C
        return {}
    names: dict[fx.Node, str] = {}
    for name, value in arguments.items():
        loose = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        for key, item in value.items() if loose else [(name, value)]:
            for path, leaf in leaves(item):
                if isinstance(leaf, fx.Node):
                    names.setdefault(leaf, key + path)
    return names


_signatures: weakref.WeakKeyDictionary[Any, inspect.Signature] = weakref.WeakKeyDictionary()


def _signature(method: Callable[..., Any]) -> inspect.Signature:
    """The signature of a method, found once for all objects of its class."""
    function = getattr(method, "__func__", None)
    if function is None:
        return inspect.signature(method)
    if function not in _signatures:
        _signatures[function] = inspect.signature(method)
    return _signatures[function]


def named(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Every argument with the name that it has as an input of the model, in the order of the signature.

    Raises:
        ArgumentError: they do not fit.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one written in C, or in TorchScript
        return [*((f"input_{number}" if number else "input", arg) for number, arg in enumerate(args)), *kwargs.items()]
    bound = bind(function, args, kwargs)
    found: list[tuple[str, Any]] = []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            found += ((f"{name}_{number}", item) for number, item in enumerate(value))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            found += value.items()
        else:
            found.append((name, value))
    return found


def copied(value: Any) -> Any:
    """A copy of an argument, so that a model may write into it, and so that two arguments are never one tensor."""
    if not any(True for _ in pytree.tensors(value)):
        return value
    if isinstance(value, torch.Tensor):
        return value.clone()
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - an object of the model's own that cannot be copied
        return value


def positional(args: Any) -> tuple[Any, ...]:
    """Return positional arguments as a tuple; a single tensor is one argument.

    Raises:
        TypeError: ``args`` is neither a tuple, a list nor a tensor.
    """
    if isinstance(args, torch.Tensor):
        return (args,)
    if isinstance(args, tuple | list):
        return tuple(args)
    name = type(args).__name__
    raise TypeError(f"args: write a tuple of the positional arguments or a single tensor, not one {name}")


def cast_copies(
    dtype: str, model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[nn.Module, Sequence[Any], Mapping[str, Any]]:
    """Return copies of a model and its arguments in another floating dtype.

    Args:
        dtype: torch's abbreviation, ``bf16``.
        model: the model, which is left as it was.
        args: the positional arguments; integers and bools keep their dtype.
        kwargs: the keyword arguments.
    """
    to = getattr(torch, DTYPES[dtype])

    def cast(value: Any) -> Any:
        return value.to(to) if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    args, kwargs = torch_pytree.tree_map(cast, (tuple(args), dict(kwargs)))
    return copy.deepcopy(model).to(to), args, kwargs
