"""DOT to coordinates: the Graphviz engines.

Three outcomes are told apart: the program is missing, it failed, or it drew and complained. Standard error is never
thrown away (https://github.com/sphinx-doc/sphinx/issues/14362 is what happens otherwise).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

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
        """Name and version as the program tells them."""
        run = subprocess.run([self.command, "-V"], capture_output=True, text=True, check=False, timeout=30)
        return (run.stderr or run.stdout).strip().splitlines()[0]

    def lay_out(self, graphs: Sequence[str], timeout: float) -> tuple[list[Coordinates], str]:
        """Coordinates of every graph, in one run, and what the program complained of (empty if it did not).

        Raises:
            EngineMissingError: the program is not there.
            EngineFailedError: it gave no coordinates within ``timeout`` seconds.
        """
        try:
            run = subprocess.run(
                [self.command, "-Tjson0"],
                input="\n".join(graphs).encode(),
                capture_output=True,
                check=False,
                timeout=timeout,
            )
        except FileNotFoundError as error:
            raise EngineMissingError(f"the Graphviz engine {self.command!r} is not there") from error
        except OSError as error:
            raise EngineFailedError(f"{self.command} cannot be started: {error}") from error
        except subprocess.TimeoutExpired as error:
            raise EngineFailedError(
                f"{self.command} needed more than {timeout:g} s for {len(graphs)} graphs"
            ) from error
        complaint = run.stderr.decode(errors="replace").strip()
        if run.returncode:
            raise EngineFailedError(f"{self.command} ended with status {run.returncode}: {complaint or 'no message'}")
        try:
            found = [_coordinates(graph) for graph in _documents(run.stdout.decode())]
        except (ValueError, KeyError, TypeError) as error:
            raise EngineFailedError(f"{self.command} wrote no coordinates that can be read: {error!r}") from error
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
    if command := shutil.which("dot"):
        return Engine(command)
    raise EngineMissingError(
        "no Graphviz engine found: run `pip install graphviz-pure`, or install Graphviz, or commit the cache "
        'and build with fxgraph_mode = "cached"'
    )


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
    _, _, width, height = (float(x) for x in graph["bb"].split(","))

    def point(text: str) -> list[float]:
        x, y = text.split(",")
        return [round(float(x), 1), round(height - float(y), 1)]

    edges = [edge for edge in graph.get("edges", ()) if "pos" in edge]
    found: Coordinates = {
        "size": [round(width, 1), round(height, 1)],
        "nodes": {item["name"]: point(item["pos"]) for item in graph.get("objects", ()) if "pos" in item},
        "edges": {edge["id"]: [c for text in edge["pos"].split() for c in point(text)] for edge in edges},
    }
    if notes := {edge["id"]: point(edge["lp"]) for edge in edges if "lp" in edge}:
        found["notes"] = notes
    return found
