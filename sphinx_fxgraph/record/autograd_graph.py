"""A backward graph as plain data: what `autograd_graph` reads from tensors and draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["function", "parameter", "saved", "base", "output"]


@dataclass(frozen=True)
class Edge:
    """From where something comes: ``flow`` along which gradients go back, a tensor that is ``saved``, a ``view``."""

    source: str
    kind: Literal["flow", "saved", "view"] = "flow"


@dataclass(frozen=True)
class BackwardNode:
    """One box."""

    name: str
    """``n1``, ``n2``, ...: it says nothing of the model."""
    role: Role
    title: str
    """``AddmmBackward0``, ``layer1.0.weight``, ``output['loss']``."""
    lines: tuple[str, ...] = ()
    """``f32[1, 64]``, ``scalar f32``, a remark."""
    attributes: tuple[tuple[str, str], ...] = ()
    frame: str = ""
    """Dotted path of the module it stands in."""
    edges: tuple[Edge, ...] = ()
