"""DOT to coordinates: the Graphviz engines.

Three outcomes are told apart: the program is missing, it failed, or it drew and complained. Standard error is never
thrown away (https://github.com/sphinx-doc/sphinx/issues/14362 is what happens otherwise).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sphinx_fxgraph.cache.store import LARGEST
from sphinx_fxgraph.escape import one_line
from sphinx_fxgraph.view.level import BOUNDARY, Level, Port
from sphinx_fxgraph.worker import sandbox

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
    """Return one graph: ``n3`` is box 3, ``i0`` and ``o0`` the level's own ends; an edge's ``id`` is its index.

    ``notes`` is the size of the text at each edge; Graphviz keeps room for it.
    """
    return "\n".join(_lines(level, extents, notes)) + "\n"


def digest(dot: str) -> str:
    """Return the key of a layout, which depends on the whole text."""
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
    """Return a row as wide as the box with its room, with a small cell at each position."""
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


Coordinates = dict[str, Any]
"""A level's layout: ``size`` [width, height], ``nodes`` {name: [x, y]} of their middles and ``edges``
{index: [x, y, x, y, ...]} of Bézier control points, and ``notes`` {index: [x, y]} of the middles of their texts; in
points, y downwards. ``by`` says what made it, where that is not the engine with all its effort."""


class EngineMissingError(Exception):
    """No Graphviz engine is on this machine."""


class EngineFailedError(Exception):
    """The engine ended without coordinates: an error in the DOT, a crash or the time limit."""


@dataclass(frozen=True)
class Engine:
    """A program that reads DOT from standard input and writes ``-Tjson0``."""

    command: str

    @cached_property
    def version(self) -> str:
        """Return the name and version that the program reports; its file name where it reports none."""
        try:
            run = sandbox.run([self.command, "-V"], timeout=30)
        except (OSError, sandbox.ProgramError):
            return Path(self.command).name
        return one_line((run.errors or run.output).decode(errors="replace"), most=80) or Path(self.command).name

    def lay_out(self, graphs: Sequence[str], timeout: float) -> tuple[list[Coordinates], str]:
        """Return coordinates of every graph, in one run, and what the program complained of (empty if it did not).

        Raises:
            EngineMissingError: the program is not there.
            EngineFailedError: it gave no coordinates within ``timeout`` seconds.
        """
        try:
            run = sandbox.run([self.command, "-Tjson0"], "\n".join(graphs).encode(), timeout=timeout)
        except FileNotFoundError as error:
            raise EngineMissingError(f"the Graphviz engine {self.command!r} is not there") from error
        except OSError as error:
            raise EngineFailedError(f"{self.command} cannot be started: {error}") from error
        except sandbox.ProgramError as error:
            raise EngineFailedError(f"{self.command} {error}, for {len(graphs)} graphs") from error
        complaint = one_line(run.errors.decode(errors="replace"), most=300)
        if run.status:
            raise EngineFailedError(f"{self.command} ended with status {run.status}: {complaint or 'no message'}")
        try:
            found = [_coordinates(graph) for graph in _documents(run.output.decode())]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = one_line(repr(error), most=200)
            raise EngineFailedError(f"{self.command} wrote no coordinates that can be read: {reason}") from error
        if len(found) != len(graphs):
            raise EngineFailedError(
                f"{self.command} drew {len(found)} of {len(graphs)} graphs: {complaint or 'no message'}"
            )
        return found, complaint


def find_engine(setting: str = "") -> Engine:
    """Return the engine to use: the setting if there is one, else the ``graphviz-pure`` wheel, else ``dot`` on PATH.

    Raises:
        EngineMissingError: there is none; the message says how to get one.
    """
    if setting:
        command = shutil.which(setting)
        if command is None:
            raise EngineMissingError(f"fxgraph_dot = {setting!r} names a program that is not there")
        return Engine(command)
    # A virtual environment that is not activated has its scripts beside its interpreter but not on PATH.
    for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent), None):
        if command := shutil.which("graphviz-pure", path=folder):
            return Engine(command)
    if command := _script("graphviz-pure"):
        return Engine(command)
    if command := shutil.which("dot"):
        return Engine(command)
    raise EngineMissingError(
        "no Graphviz engine found: run `pip install graphviz-pure`, or install Graphviz, or commit the cache "
        'and build with fxgraph_mode = "cached"'
    )


def _script(distribution: str) -> str | None:
    """Return the path of the program that an importable distribution has installed outside of the usual folders."""
    try:
        installed = importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
    listed = [str(file) for file in installed.files or () if file.stem == distribution]
    beside = [f"{folder}/{distribution}" for folder in ("bin", "Scripts")]  # pip install --target
    found = (str(installed.locate_file(file)) for file in (*listed, *beside))
    return next(filter(None, map(shutil.which, found)), None)


def _documents(text: str) -> Iterator[Any]:
    """Yield the JSON objects that stand one after another in ``text``."""
    decoder, text, at = json.JSONDecoder(), text.strip(), 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        yield document
        while at < len(text) and text[at].isspace():
            at += 1


def _coordinates(graph: dict[str, Any]) -> Coordinates:
    """Return the coordinates in Graphviz' answer; its y axis points up, ours down."""

    def coordinate(value: float) -> float:
        if not abs(value) <= LARGEST:  # nor is NaN
            raise ValueError(f"a coordinate is {value}")
        return round(value, 1)

    _, _, width, height = (float(x) for x in graph["bb"].split(","))

    def point(text: str) -> list[float]:
        x, y = text.split(",")
        return [coordinate(float(x)), coordinate(height - float(y))]

    edges = [edge for edge in graph.get("edges", ()) if "pos" in edge]
    found: Coordinates = {
        "size": [coordinate(width), coordinate(height)],
        "nodes": {item["name"]: point(item["pos"]) for item in graph.get("objects", ()) if "pos" in item},
        "edges": {edge["id"]: [c for text in edge["pos"].split() for c in point(text)] for edge in edges},
    }
    if notes := {edge["id"]: point(edge["lp"]) for edge in edges if "lp" in edge}:
        found["notes"] = notes
    return found
