"""What of a record is shown: the record as a look simplifies it, still without levels or coordinates.

Each simplification takes bodies and gives bodies: runs of equal siblings become one node, long flat stretches become
groups, shape arithmetic becomes a remark at its consumer. What comes out is a record again, so that whatever draws a
record draws a simplified one too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sphinx_fxgraph.record.model import Node, Record, TensorMeta

GROUP: Final = "group"
"""The opcode of a node that stands for a stretch of its body: a part of the picture, not of the model."""
ROWS: Final = "rows"
"""The opcode of a node that stands for a straight stretch of operators, drawn as one box with a row for each."""


@dataclass(frozen=True)
class Run:
    """Equal siblings in a row that are drawn once."""

    count: int
    last: str
    """Name of the first node of the last one."""
    weights: str = ""
    """``own`` each, the ``same`` for all, or empty where there are none."""
    tensors: tuple[TensorMeta, ...] = ()
    """The results of members that differ in sizes, as ranges."""
    names: tuple[str, ...] = ()
    """Of the nodes of all members, in the body that they were folded in."""
    carried: tuple[str, ...] = ()
    """The nodes whose results a step of a loop hands to the next: its state."""


@dataclass(frozen=True)
class Stage:
    """Neighbouring blocks of one class that are drawn as one box, which opens to them."""

    count: int
    last: str
    """Name of the last block."""
    difference: str = ""
    """How the first block differs from the others."""


@dataclass(frozen=True)
class Shown:
    """A simplified record, and what was simplified, by name of the body and the node."""

    record: Record
    runs: Mapping[tuple[str, str], Run] = field(default_factory=dict)
    chips: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    rows: Mapping[tuple[str, str], tuple[Node, ...]] = field(default_factory=dict)
    """The operators that a node of opcode `ROWS` stands for."""
    stages: Mapping[tuple[str, str], Stage] = field(default_factory=dict)
    """Of the nodes of opcode `GROUP` that stand for the blocks of a stage."""
    hidden: int = 0
    """How many operators lead to no result and are left out, counted as often as they run."""
    layout: str = "auto"
    """How its levels are arranged, the option of this name."""


def times_run(record: Record, counts: Mapping[str, int]) -> int:
    """Return the sum of ``counts``, which are by body, over all bodies as often as they run."""
    known: dict[str, int] = {}

    def total(name: str) -> int:
        if name not in known:
            inside = (total(node.body) for node in record.bodies[name].nodes if node.body)
            known[name] = counts.get(name, 0) + sum(inside)
        return known[name]

    return total(record.root)
