"""How legible default views are, and what their layout costs. Prints two tables; exit status 1 if a target is missed.

Run ``python benchmarks/legibility/run.py`` with torch, monai and playwright installed and Chromium on PATH; names of
models as arguments measure only those. ``--out docs/design`` writes the tables of the handbook.

CPU seconds are those of this process and of the engines it starts; both sides of a comparison are measured in one run.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from browser import chromium, overflowing
from geometry import faults
from models import MODELS, OTHERS, record
from others import Flat

from sphinx_fxgraph.capture.capture import record_model
from sphinx_fxgraph.layout.graphviz import Engine, find_engine
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import document
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.render.dot import model_digraph

MOST = {"boxes": 100, "elements": 1_500, "width": 1_400}
STRAIGHT = 0.9
OPEN_WIDTH = {"DenseNet-121": 800, "Llama-80": 1_400}
TIMES_LESS = {"DenseNet-121": 10, "Llama-80": 50}
PAGE_DATA = {"DenseNet-121": 15_000, "Llama-80": 60_000}
"""Bytes of the insides of closed modules, gzip."""
GROWTH = 1.5


@dataclass
class Picture:
    """What was measured of one picture, and what is wrong with it."""

    name: str
    text: str
    row: list[object]
    missed: list[str] = field(default_factory=list)


def picture(name: str, found: Record, engine: Engine, look: ViewOptions) -> Picture:
    """Draw one model and measure it."""
    job = compose.Job(found, look)
    said = compose.lay_out([job], engine)
    drawn = compose.scene(job)
    text = document.page_svg(drawn, figure="f", title=name, description="", rows=True)
    wrong, counts = faults(text)
    spine = [abs(line.points[0][0] - line.points[-1][0]) < 1 for line in _lines(drawn) if line.spine]
    straight = sum(spine) / len(spine) if spine else 1.0
    sizes = {"boxes": counts["boxes"], "elements": counts["elements"], "width": int(drawn.width)}
    missed = [f"{key} {value} > {MOST[key]}" for key, value in sizes.items() if value > MOST[key]]
    for kind in ("overlaps", "crossings", "titles", "close"):
        missed += [f"{kind}: {where}" for where in getattr(wrong, kind)]
    if straight < STRAIGHT:
        missed.append(f"main path straight in {straight:.0%}")
    row = [
        name,
        found.operators,
        *sizes.values(),
        int(drawn.height),
        *(len(getattr(wrong, kind)) for kind in ("overlaps", "crossings", "titles", "close")),
        f"{straight:.0%}",
    ]
    return Picture(name, text, row, missed + said)


def _lines(frame: compose.Frame) -> Iterator[Any]:
    yield from frame.lines
    for inner in frame.frames:
        yield from _lines(inner)


# -- costs


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of some work, with the processes that it starts."""

    def now() -> float:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + ended.ru_utime + ended.ru_stime

    start = now()
    work()
    return now() - start


def at_once(found: Record, engine: Engine) -> None:
    """The whole graph in one run of the engine."""
    dot = model_digraph(found).source.encode()
    subprocess.run([engine.command, "-Tjson0"], input=dot, stdout=subprocess.DEVNULL, check=True)


COSTS = ("model", "layout", "whole graph at once", "times less", "width, everything open", "data for drill-down")


def costs(records: dict[str, Record], engine: Engine) -> tuple[list[tuple[str, ...]], list[str]]:
    """Layout against one run of the engine on the whole graph, the width with everything open, and the page's data.

    Returns:
        A row of `COSTS` a model, and the targets that are missed.
    """
    rows, missed = [], []
    for name, least in TIMES_LESS.items():
        if name not in records:
            continue
        found = records[name]
        ours = min(cpu(lambda: compose.lay_out([compose.Job(found)], engine)) for _ in range(3))  # noqa: B023
        whole = cpu(lambda: at_once(found, engine))  # noqa: B023
        opened = picture(name, found, engine, ViewOptions(open=("*",)))
        job = compose.Job(found, inside=True)
        compose.lay_out([job], engine)
        inside = {key: document.inside_svg(value, figure="f", rows=True) for key, value in compose.insides(job).items()}
        data = len(gzip.compress(json.dumps(inside, separators=(",", ":")).encode()))
        times, wide = f"{whole / ours:.0f}", str(opened.row[4])
        rows.append(
            (name, f"{ours:.2f} s", f"{whole:.1f} s", times, wide, f"{data / 1000:.1f} kB" if inside else "none")
        )
        if whole < least * ours:
            missed.append(f"{name}: layout costs only {whole / ours:.1f} times less, not {least}")
        if int(str(opened.row[4])) > OPEN_WIDTH[name]:
            missed.append(f"{name}: everything open is {opened.row[4]} wide")
        if data > PAGE_DATA[name]:
            missed.append(f"{name}: {data} bytes of data for drill-down")
    return rows, missed


GROWN = ("operators", "layout and drawing, each")


def growth(engine: Engine, sizes: Sequence[int] = (100, 1_000, 10_000)) -> tuple[list[tuple[str, ...]], list[str]]:
    """Cost per operator of a flat module without repeats, everything open, as it grows.

    Returns:
        A row of `GROWN` a size, and the target if it is missed.
    """
    each = {}
    for size in sizes:
        with torch.device("meta"):
            found = record_model(Flat(size), (torch.empty(2, 3),), {}, tracer="symbolic")

        def draw(found: Record = found) -> None:
            job = compose.Job(found, ViewOptions(open=("*",)))
            compose.lay_out([job], engine)
            document.page_svg(compose.scene(job), figure="f", title="", description="")

        each[size] = min(cpu(draw) for _ in range(3 if size < 10_000 else 1)) / size
    grown = each[sizes[-1]] / each[sizes[0]]
    rows = [(f"{size:,}", f"{seconds * 1e6:,.0f} µs") for size, seconds in each.items()]
    return rows, [f"cost per operator grows {grown:.1f} times"] if grown > GROWTH else []


# -- all of it


def main() -> int:
    """Measure, print, and say whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join((*MODELS, *OTHERS)))
    parser.add_argument("--engine", default="", help="a program instead of the one that would be found")
    parser.add_argument("--tracer", default="symbolic", help="of the capture")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write the tables there, too")
    parser.add_argument("--save", metavar="DIR", help="keep the pictures, as they are printed")
    options = parser.parse_args()
    engine = find_engine(options.engine)
    print(f"{engine.version}\n")
    records = {}
    for name in options.models or (*MODELS, *OTHERS):
        try:
            records[name] = record(name, "auto" if name in OTHERS else options.tracer)
        except ImportError as error:
            print(f"{name}: left out, {error}")
    pictures = [picture(name, found, engine, ViewOptions()) for name, found in records.items()]
    labels: list[dict[str, list[str]]] = [{} for _ in pictures]
    if shutil.which("chromium"):
        with chromium() as browser:
            labels = overflowing(browser, [one.text for one in pictures])
    for one, fonts in zip(pictures, labels, strict=True):
        one.row.append(sum(map(len, fonts.values())) if fonts else "?")
        one.missed += [f"label wider than its box in {font}: {text}" for font, texts in fonts.items() for text in texts]
    missed = [f"{one.name}: {what}" for one in pictures for what in one.missed]
    tables = {"legibility": [HEAD, *([str(cell) for cell in one.row] for one in pictures)]}
    print_table(tables["legibility"])
    found, more = costs(records, engine)
    tables["legibility-costs"], missed = [COSTS, *found], missed + more
    print_table(tables["legibility-costs"])
    if not options.models:
        found, more = growth(engine)
        tables["legibility-growth"], missed = [GROWN, *found], missed + more
        print_table(tables["legibility-growth"])
    if options.out:
        write(options.out, tables, engine)
    if options.save:
        save(options.save, records, engine)
    print("\n" + ("\n".join(missed) if missed else "every target is met"))
    return 1 if missed else 0


HEAD = (
    "model",
    "ops",
    "boxes",
    "elements",
    "width",
    "height",
    "over",
    "cross",
    "titles",
    "close",
    "straight",
    "labels",
)
"""Of the table. Overlaps, crossings, edges through titles, edges along boxes; labels that overflow in either font."""


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print the measurements in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]))
    print(flush=True)


def write(folder: Path, tables: dict[str, Sequence[Sequence[str]]], engine: Engine) -> None:
    """Write the tables, and what they were measured with."""
    for name, rows in tables.items():
        with folder.joinpath(f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    versions = [f"{package} {version(package)}" for package in ("sphinx-fxgraph", "torch", "monai", "transformers")]
    used = ", ".join([*versions, engine.version.removeprefix("graphviz-pure - ")])
    folder.joinpath("legibility-versions.txt").write_text(f"{used}\n", encoding="utf-8")


def save(folder: str, records: dict[str, Record], engine: Engine) -> None:
    """Write the pictures to look at."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, found in records.items():
        job = compose.Job(found)
        compose.lay_out([job], engine)
        text = document.print_svg(compose.scene(job), title=name, description="")
        Path(folder, name.replace(" ", "_").replace("/", "-") + ".svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
