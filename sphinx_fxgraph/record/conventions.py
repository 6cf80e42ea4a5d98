"""What counts as a MAC."""

from __future__ import annotations

from collections.abc import Collection, Iterable
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


# -- operators that are not counted

NOT_COUNTED = "not counted: "
"""How the mark of a node begins whose MACs are not counted, or not all of them; the operators follow."""


def uncounted(marks: Iterable[str]) -> tuple[str, ...]:
    """Return the operators in the marks of a node that its MACs leave out."""
    found = (mark.removeprefix(NOT_COUNTED) for mark in marks if mark.startswith(NOT_COUNTED))
    return tuple(name for names in found for name in names.split(", "))


def not_counted(names: Collection[str], most: int = 3) -> str:
    """Return what the MACs leave out as text, ``not counted: cholesky, _fft_r2c``; empty if they leave out nothing.

    Args:
        names: the operators.
        most: how many of them to name.
    """
    if not names:
        return ""
    shown = ", ".join(sorted(names)[:most])
    return NOT_COUNTED + shown + (f" and {len(names) - most} more" if len(names) > most else "")


def macs_text(count: str | None, uncounted: Collection[str]) -> str:
    """Return the cell of a number of MACs.

    Args:
        count: the number as text, or None if there is none.
        uncounted: the operators that it leaves out.
    """
    left_out = not_counted(uncounted)
    return f"{count} ({left_out})" if count and left_out else count or left_out
