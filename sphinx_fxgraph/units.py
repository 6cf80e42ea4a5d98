"""How numbers are written: in full with separators, or short with an SI prefix; always with their unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sphinx_fxgraph.words import _

if TYPE_CHECKING:
    from sphinx_fxgraph.record.model import TensorMeta


def format_shape(meta: TensorMeta) -> str:
    """``1×64×56×56``; a tensor without dimensions is a scalar."""
    return "×".join(map(str, meta.shape)) or "scalar"


def format_shapes(tensors: Sequence[TensorMeta]) -> str:
    """The shapes of a result; of more than one tensor with the places where they stand."""
    if len(tensors) == 1:
        return format_shape(tensors[0])
    return ", ".join(f"{meta.path} {format_shape(meta)}".lstrip() for meta in tensors)


FORMATS = ("auto", "SI", "grouped")

_PREFIXES = ("", "k", "M", "G", "T", "P")


@dataclass(frozen=True)
class Units:
    """A project's way of writing numbers."""

    format: str = "auto"
    """``SI`` short, ``grouped`` in full; ``auto`` parameters in full, MACs and bytes in text short."""
    convention: str = "torchvision"
    """What counts as a MAC, one of `sphinx_fxgraph.options.CONVENTIONS`."""

    verdict: str = "full"
    """What is said of the verdict: ``full`` with the reason, ``short`` without, ``none`` nothing."""

    def count(self, number: int) -> str:
        """A number of parameters or operations where the unit stands elsewhere: ``11,689,512``, ``11.7 M``."""
        return _si(number, "") if self.format == "SI" else f"{number:,}"

    def parameters(self, number: int) -> str:
        """``11,689,512 parameters``."""
        return _("{} parameter", self.count(number)) if number == 1 else _("{} parameters", self.count(number))

    def macs(self, number: int) -> str:
        """``1.81 GMACs``."""
        return f"{number:,} MACs" if self.format == "grouped" else _si(number, "MACs")

    def bytes(self, number: int) -> str:
        """``46.8 MB``, which are 46.8 million bytes."""
        return f"{number:,} B" if self.format == "grouped" else _si(number, "B")


PLAIN = Units()
"""Where no project has said anything."""


def _si(number: int, unit: str) -> str:
    """Three significant digits."""
    value, prefix = float(number), 0
    while abs(value) >= 999.5 and prefix < len(_PREFIXES) - 1:
        value, prefix = value / 1000, prefix + 1
    digits = 0 if not prefix or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f} {_PREFIXES[prefix]}{unit}".rstrip()
