"""What a case of the battery is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import nn


@dataclass(frozen=True)
class Case:
    """A model, what it is called with, and what must be seen of it."""

    name: str
    model: Callable[[], nn.Module]
    args: Callable[[], tuple[Any, ...]]
    graph: str
    """What is seen of a run."""
    kwargs: Callable[[], dict[str, Any]] = dict
    traced: bool = False
    """Whether torch.fx follows the model, and what it finds is right."""
    marks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By operator; ``in place`` is one of them."""
    result: str = "f32[2, 4]"
    values: bool = False
    """Whether it needs real tensors: what runs depends on values, or no meta tensor can do it."""


CASES: dict[str, Case] = {}

Model = TypeVar("Model", bound=type[nn.Module])


def x() -> tuple[torch.Tensor]:
    """The one argument of most cases."""
    return (torch.linspace(-1, 1, 8).reshape(2, 4),)


def case(graph: str, args: Callable[[], tuple[Any, ...]] = x, **facts: Any) -> Callable[[Model], Model]:
    """Make a case of a model that is made without arguments."""

    def add(model: Model) -> Model:
        CASES[model.__name__] = Case(model.__name__, model, args, graph, **facts)
        return model

    return add
