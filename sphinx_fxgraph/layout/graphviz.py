"""DOT to coordinates: the Graphviz engines.

Three outcomes are told apart: the program is missing, it failed, or it drew and complained. Standard error is never
thrown away (https://github.com/sphinx-doc/sphinx/issues/14362 is what happens otherwise).
"""

from __future__ import annotations

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
from sphinx_fxgraph.text.escape import one_line
from sphinx_fxgraph.worker import programs

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
            run = programs.run([self.command, "-V"], timeout=30)
        except (OSError, programs.ProgramError):
            return Path(self.command).name
        return one_line((run.errors or run.output).decode(errors="replace"), most=80) or Path(self.command).name

    def lay_out(self, graphs: Sequence[str], timeout: float) -> tuple[list[Coordinates], str]:
        """Coordinates of every graph, in one run, and what the program complained of (empty if it did not).

        Raises:
            EngineMissingError: the program is not there.
            EngineFailedError: it gave no coordinates within ``timeout`` seconds.
        """
        try:
            run = programs.run([self.command, "-Tjson0"], "\n".join(graphs).encode(), timeout=timeout)
        except FileNotFoundError as error:
            raise EngineMissingError(f"the Graphviz engine {self.command!r} is not there") from error
        except OSError as error:
            raise EngineFailedError(f"{self.command} cannot be started: {error}") from error
        except programs.ProgramError as error:
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
    """The engine to use: the setting if there is one, else the ``graphviz-pure`` wheel, else ``dot`` on PATH.

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
    """The JSON objects that stand one after another in ``text``."""
    decoder, text, at = json.JSONDecoder(), text.strip(), 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        yield document
        while at < len(text) and text[at].isspace():
            at += 1


def _coordinates(graph: dict[str, Any]) -> Coordinates:
    """Of all that Graphviz says of a graph, what we draw; its y axis points up, ours down."""

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
