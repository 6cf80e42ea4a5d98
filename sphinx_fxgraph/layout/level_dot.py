"""A level as DOT: boxes of fixed size, so that Graphviz only has to place them and to route the edges.

An open module is a table label whose outer size is that of its inside, with a cell as port wherever one of its inputs
or outputs lies. The edges of the spine weigh so much that Graphviz draws them as one straight line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sphinx_fxgraph.view.level import BOUNDARY, Level, Port

SPINE_WEIGHT = 100
PORT = 2
"""Width and height of a port's cell, in points (1 point is 1 user unit of the drawing)."""
_PIN = 14
"""Width that an end of the level takes, so that two of them can be told apart."""
_SKIPS_PER_BOX = 2
"""A column with more edges beside it than that for each box is dense."""
_ROOM = 3
"""Graphviz sees every box larger by this much on each side, ..."""
_ROOM_BESIDE = 7
"""... and an open one by that much across the flow, so that no edge runs along a border or around a corner."""


@dataclass(frozen=True)
class Extent:
    """Outer size of a box, and for an open one where its inputs and outputs lie, from its left edge; in points."""

    width: float
    height: float
    inputs: tuple[float, ...] | None = None
    outputs: tuple[float, ...] = ()
    stack: float = 0.0
    """What is empty of it at its left, where the sheets of a stack stand out at its right."""


def level_dot(level: Level, extents: Sequence[Extent], notes: Sequence[tuple[float, float]]) -> str:
    """One graph: ``n3`` is box 3, ``i0`` and ``o0`` the level's own ends; an edge's ``id`` is its index.

    ``notes`` is the size of the text at each edge; Graphviz keeps room for it.
    """
    return "\n".join(_lines(level, extents, notes)) + "\n"


def digest(dot: str) -> str:
    """What a layout is filed under: it answers this very text."""
    return hashlib.sha256(dot.encode()).hexdigest()[:20]


def _lines(level: Level, extents: Sequence[Extent], notes: Sequence[tuple[float, float]]) -> Iterator[str]:
    yield "digraph {"
    yield f"graph [rankdir=TB nodesep={0.5 if level.pairs else 0.12} ranksep=0.22]"
    yield 'node [shape=box fixedsize=true label=""]'
    yield "edge [arrowhead=none]"
    for index, extent in enumerate(extents):
        if extent.inputs is None:
            size = f"width={(extent.width + 2 * _ROOM) / 72:.4f} height={(extent.height + 2 * _ROOM) / 72:.4f}"
            yield f"n{index} [{size}]"
        else:
            yield f"n{index} [shape=plain fixedsize=false margin=0 label=<{_table(extent)}>]"
    for letter, count, rank in (("i", level.inputs, "source"), ("o", level.outputs, "sink")):
        if count:
            ends = " ".join(f"{letter}{k} [width={_PIN / 72:.4f} height=0.01]" for k in range(count))
            yield f"{{rank={rank} {ends}}}"
    for one, other in level.pairs:
        yield f"{{rank=same n{one} n{other}}}"
    upward = set(level.upward)
    left_out = _dense_skips(level)
    for index, (edge, (width, height)) in enumerate(zip(level.edges, notes, strict=True)):
        if index in left_out:
            continue
        weight = SPINE_WEIGHT if edge.spine else 1
        note = f" label=<{_TABLE}<TR>{_cell(round(width), round(height))}</TR></TABLE>>" if width else ""
        tail, head = _end(edge.tail, extents, "i", "o", "s"), _end(edge.head, extents, "o", "i", "n")
        if edge.head.box in upward and edge.tail.box in upward:  # the engine draws it downwards
            yield f"{head} -> {tail} [id={index} weight={weight}{note}]"
        else:
            side = " constraint=false" if edge.head.box in upward or edge.tail.box in upward else ""
            yield f"{tail} -> {head} [id={index} weight={weight}{note}{side}]"
    yield "}"


def _dense_skips(level: Level) -> set[int]:
    """Return the edges beside a single column that has very many of them, by number.

    The engine need not see them: they move no box, and it takes long for them.
    """
    column = {port.box for edge in level.spine() for port in (edge.tail, edge.head)}
    skips = {index for index, edge in enumerate(level.edges) if not edge.spine}
    inside = all({level.edges[index].tail.box, level.edges[index].head.box} <= column for index in skips)
    return skips if inside and not level.pairs and len(skips) > _SKIPS_PER_BOX * len(column) else set()


def _end(port: Port, extents: Sequence[Extent], boundary: str, letter: str, side: str) -> str:
    if port.box == BOUNDARY:
        return f"{boundary}{port.number}:{side}"
    opened = extents[port.box].inputs is not None
    return f"n{port.box}:{letter}{port.number}:{side}" if opened else f"n{port.box}"


def _table(extent: Extent) -> str:
    width = round(extent.width) + 2 * _ROOM_BESIDE
    inner = round(extent.height) + 2 * (_ROOM - PORT)
    return (
        f"{_TABLE}{_ports('i', extent.inputs or (), width)}"
        f"<TR>{_cell(width, inner)}</TR>{_ports('o', extent.outputs, width)}</TABLE>"
    )


def _ports(letter: str, positions: Sequence[float], width: int) -> str:
    """A row as wide as the box with its room, with a small cell at each position."""
    cells, at = [], 0
    for x, number in sorted((x, number) for number, x in enumerate(positions)):
        left = max(at, min(round(x) + _ROOM_BESIDE - PORT // 2, width - PORT))
        if left > at:
            cells.append(_cell(left - at, PORT))
        cells.append(_cell(PORT, PORT, f' PORT="{letter}{number}"'))
        at = left + PORT
    if at < width:
        cells.append(_cell(width - at, PORT))
    return f"<TR><TD>{_TABLE}<TR>{''.join(cells)}</TR></TABLE></TD></TR>"


_TABLE = '<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="0">'


def _cell(width: int, height: int, port: str = "") -> str:
    return f'<TD WIDTH="{width}" HEIGHT="{height}"{port}></TD>'
