"""What counts as a MAC."""

from __future__ import annotations

from typing import Protocol

CONVENTIONS = {
    "torchvision": "multiply-accumulate operations of convolutions, matrix products and attention",
    "all": "multiply-accumulate operations, with those of norms, resizing and adaptive average pooling",
}
"""What counts as a MAC: as torchvision publishes it (its "GFLOPS"), or as timm does, whose tables fvcore counts."""


class Counted(Protocol):
    """An operator or a model."""

    @property
    def macs(self) -> int | None:
        """Multiply-accumulate operations."""

    @property
    def extra_macs(self) -> int | None:
        """What the convention ``all`` counts beside."""


def macs_of(counted: Counted, convention: str) -> int | None:
    """The MACs of an operator or a model in a convention; None where there are none."""
    extra = counted.extra_macs if convention == "all" else None
    return counted.macs if extra is None else (counted.macs or 0) + extra
