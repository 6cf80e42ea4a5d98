"""How shapes are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for annotations alone: this folder imports nothing of ours
    from sphinx_fxgraph.record.model import TensorMeta


def format_shape(meta: TensorMeta) -> str:
    """``1×64×56×56``; a tensor without dimensions is a scalar."""
    return "×".join(map(str, meta.shape)) or "scalar"


def format_shapes(tensors: Sequence[TensorMeta]) -> str:
    """The shapes of a result; of more than one tensor with the places where they stand."""
    if len(tensors) == 1:
        return format_shape(tensors[0])
    return ", ".join(f"{meta.path} {format_shape(meta)}".lstrip() for meta in tensors)
