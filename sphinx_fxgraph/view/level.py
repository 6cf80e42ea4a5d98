"""The parts of a level: boxes, and edges between their ports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from sphinx_fxgraph.record.model import Node, TensorMeta
from sphinx_fxgraph.view.simplified import Run, Stage

BOUNDARY = -1
"""Index of the level itself where an edge starts at one of its inputs or ends at one of its outputs."""


@dataclass(frozen=True, eq=False)
class Box:
    """One thing in a level: a node of the body, open if it shows the level of its own body inside."""

    node: Node
    tensors: tuple[TensorMeta, ...]
    """The tensors in its results: all that a closed box says of its inside."""
    inner: Level | None = None
    run: Run | None = None
    chips: tuple[str, ...] = ()
    """Names of side inputs that have no edge."""
    weight: int = 1
    """How many operators it stands for, be it open or closed."""
    names: tuple[str, ...] = ()
    """Of all nodes of the record that it stands for: those of a run, those of a stretch of operators."""
    arguments: str = ""
    """The arguments of the call, as text."""
    stage: Stage | None = None
    contents: str = ""
    """What a closed module consists of, or which block it repeats."""
    change: str = ""
    """How a closed module changes channels and resolution."""
    shared: str = ""
    """With which other calls it shares its weights, in words."""
    example: bool = False
    """Whether it is open as the example of its kind, while the others are closed."""
    rows: tuple[Box, ...] = ()
    """The operators of a straight stretch that is drawn as one box, from top to bottom."""

    def row(self, number: int) -> Box:
        """Return a row by its number, or the box itself if it has no rows."""
        return self.rows[number] if self.rows else self

    def with_chips(self, names: Iterable[str]) -> Box:
        """Return the box with the names of further side inputs, which belong to its first row if it has rows."""
        chips = (*self.chips, *dict.fromkeys(names))
        rows = (self.rows[0].with_chips(names), *self.rows[1:]) if self.rows else ()
        return dataclasses.replace(self, chips=chips, rows=rows)


@dataclass(frozen=True)
class Port:
    """One end of an edge: output or pin ``number`` of box ``box``."""

    box: int
    number: int = 0


@dataclass(frozen=True)
class Edge:
    """A value on its way."""

    tail: Port
    head: Port
    weak: bool = False
    """One of its ends holds no tensor."""
    spine: bool = False
    """It is part of the level's main path."""
    tensors: tuple[TensorMeta, ...] = ()
    """What flows, where no box says so."""
    count: int = 1
    """How many results it stands for, where results that go to the same places are one line."""


@dataclass(frozen=True, eq=False)
class Level:
    """A body as boxes in execution order and the edges between them."""

    body: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    names: tuple[str, ...]
    """What enters at each pin."""
    pins: tuple[int, ...]
    """The pin at which each input of the body enters."""
    outputs: int
    """How many ends it has."""
    outs: tuple[int, ...]
    """The end at which each output of the body leaves."""
    main_input: int = 0
    main_output: int = 0
    pairs: tuple[tuple[int, int], ...] = ()
    """The boxes side by side where the level is drawn as a U: the ends of each skip, the outermost first."""
    upward: tuple[int, ...] = ()
    """The boxes of the main path that data goes up through, in the order of execution."""

    @property
    def inputs(self) -> int:
        """How many pins it has."""
        return len(self.names)

    def spine(self) -> tuple[Edge, ...]:
        """The edges of the main path, from its start to its end."""
        return tuple(edge for edge in self.edges if edge.spine)
