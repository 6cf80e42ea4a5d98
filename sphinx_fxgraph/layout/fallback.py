"""Many graphs laid out in few runs of the engine; where one fails, one by one, so that one costs the others nothing.

A graph that fails by itself is tried again with less effort (https://graphviz.org/docs/attrs/nslimit/). What then has
no coordinates is left to `plain`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from sphinx_fxgraph.layout.graphviz import Coordinates, Engine, EngineFailedError

_LESS_EFFORT = "nslimit=2 nslimit1=2 mclimit=0.2 splines=line"
"""Fewer rounds for ranks, order and places, and straight edges, which cost no search for a way."""
_TOGETHER = 60
"""Graphs in one run: the start of the engine is little of its time, and the cores share the runs."""
_SHARE = 4
"""A graph by itself may take that part of the time that all together may."""


def lay_out(engine: Engine, graphs: Mapping[str, str], timeout: float) -> tuple[dict[str, Coordinates], dict[str, str]]:
    """Coordinates of every graph that the engine can lay out, and what went wrong, both by the graphs' keys.

    Args:
        engine: what lays out.
        graphs: DOT by key.
        timeout: seconds for each run of many. One by one they may take as long once more, all in all.

    Raises:
        EngineMissingError: the program is not there.
    """
    found: dict[str, Coordinates] = {}
    said: dict[str, str] = {}
    keys = list(graphs)
    parts = [{key: graphs[key] for key in keys[at : at + _TOGETHER]} for at in range(0, len(keys), _TOGETHER)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for coordinates, complaints in pool.map(lambda part: _lay_out(engine, part, timeout), parts):
            found |= coordinates
            said |= complaints
    return found, said


def _lay_out(
    engine: Engine, graphs: Mapping[str, str], timeout: float
) -> tuple[dict[str, Coordinates], dict[str, str]]:
    """The same for the graphs of one run."""
    found: dict[str, Coordinates] = {}
    said: dict[str, str] = {}
    try:
        coordinates, complaint = engine.lay_out(list(graphs.values()), timeout)
        if not complaint:
            return dict(zip(graphs, coordinates, strict=True)), {}
    except EngineFailedError:
        pass
    end = time.monotonic() + timeout
    for key, dot in graphs.items():
        for effort, text in (("", dot), ("; drawn with less effort", dot.replace("{\n", f"{{\n{_LESS_EFFORT}\n", 1))):
            left = min(timeout / _SHARE, end - time.monotonic())
            if left <= 0:
                said[key] = "; ".join(filter(None, (said.get(key), "there was no time left")))
                break
            try:
                (coordinate,), complaint = engine.lay_out([text], left)
            except EngineFailedError as error:
                said.setdefault(key, str(error))
                continue
            found[key] = coordinate | ({"by": "less effort"} if effort else {})
            if complaint or effort:
                said[key] = said.get(key, complaint) + effort
            break
    return found, said
