"""torch's operators of control flow, run as what they mean: an ``if`` or a ``while`` of Python, whose path is taken."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from sphinx_fxgraph.capture.torch_private import HigherOrderOperator


@functools.lru_cache(maxsize=4096)
def plain(function: Any) -> Callable[..., Any] | None:
    """What an operator of control flow means; nothing for any other function."""
    return _MEANING.get(function.__name__) if isinstance(function, HigherOrderOperator) else None


def uncompiled(model: Any = None, **_options: Any) -> Any:
    """In place of `torch.compile`, by which torch also runs these operators: all stays as it is written."""
    return uncompiled if model is None else model


def _cond(condition: Any, yes: Callable[..., Any], no: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    return (yes if condition else no)(*operands)


def _while_loop(
    condition: Callable[..., Any], body: Callable[..., Any], carried: Sequence[Any], others: Sequence[Any] = ()
) -> Any:
    while condition(*carried, *others):
        result = body(*carried, *others)
        carried = (result,) if isinstance(result, torch.Tensor) else result
    return tuple(carried)


_MEANING: dict[str, Callable[..., Any]] = {"cond": _cond, "while_loop": _while_loop}
