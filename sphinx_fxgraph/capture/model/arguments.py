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
from sphinx_fxgraph.capture.trace import leaves


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
