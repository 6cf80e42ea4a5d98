"""Measure what a page of a captured model costs: its levels, its layout from the cache, its SVG and its tables.

    python benchmarks/pages/run.py RECORDS [--rounds 3] [--against CHECKOUT]

RECORDS is a folder of records, as ``sphinx-fxgraph draw MODEL -o name.json`` writes them. Every level is laid out once
before the clock starts, as in a build whose cache has all layouts. Each number is processor time of the fastest round.
With a checkout of another commit, processes of both take turns, so that what else the machine does falls on both, and
the ratio of each stage is printed too.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

STAGES = ("read", "levels", "place", "SVG", "tables", "downloads")
CHECKOUT = Path(__file__).parents[2]
T = TypeVar("T")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        json.dump(measure(options.records, options.measure), sys.stdout)
        return
    checkouts = [CHECKOUT, *([options.against] if options.against else [])]
    rounds: dict[Path, list[dict[str, dict[str, float]]]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="pages-") as folder:
        for _ in range(options.rounds):
            for number, checkout in enumerate(checkouts):
                layouts = Path(folder, f"layouts-{number}.json")
                rounds[checkout].append(run(checkout, options.records, layouts))
    report([fastest(rounds[checkout]) for checkout in checkouts])


def run(checkout: Path, records: Path, layouts: Path) -> dict[str, dict[str, float]]:
    """Measure one checkout in a process of its own; the first time it lays out, too."""
    command = [sys.executable, __file__, str(records), "--measure", str(layouts)]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
    times: dict[str, dict[str, float]] = json.loads(found.stdout)
    return times


def fastest(rounds: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the least time of each stage of each model."""
    return {
        model: {stage: min(times[model][stage] for times in rounds) for stage in STAGES} for model in sorted(rounds[0])
    }


def report(found: list[dict[str, dict[str, float]]]) -> None:
    """Print milliseconds a model by stage, and for two checkouts the ratio."""
    times = found[0]
    print(f"{len(times)} models\n{'ms a model':12}{'mean':>8}{'median':>8}{'largest':>9}   of")
    for stage in (*STAGES, "page"):
        by_model = {model: 1000 * _of(stages, stage) for model, stages in times.items()}
        largest = max(by_model, key=lambda model: by_model[model])
        mean, median = statistics.fmean(by_model.values()), statistics.median(by_model.values())
        ratio = ""
        if len(found) > 1:
            before = sum(_of(stages, stage) for stages in found[1].values())
            ratio = f"   {sum(by_model.values()) / 1000 / before:.2f} of the other checkout's"
        print(f"{stage:12}{mean:8.1f}{median:8.1f}{by_model[largest]:9.1f}   {largest}{ratio}")


def _of(stages: dict[str, float], stage: str) -> float:
    """Return a stage, or all that a page needs where nothing is captured: not the files that it offers."""
    return stages[stage] if stage in stages else sum(stages[name] for name in ("levels", "place", "SVG", "tables"))


def measure(folder: Path, layouts: Path) -> dict[str, dict[str, float]]:
    """Return seconds of processor time by model and stage."""
    from sphinx_fxgraph.layout.graphviz import find_engine
    from sphinx_fxgraph.record.model import Record
    from sphinx_fxgraph.render import drawing

    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.json"))}
    if not layouts.exists():
        jobs = {name: drawing.Job(Record.from_json(text), inside=True) for name, text in texts.items()}
        drawing.lay_out(list(jobs.values()), find_engine(), 600)
        layouts.write_text(json.dumps({name: job.layouts for name, job in jobs.items()}), encoding="utf-8")
    known = json.loads(layouts.read_text(encoding="utf-8"))
    return {name: page(name, text, dict(known[name])) for name, text in texts.items()}


def page(name: str, text: str, layouts: dict[str, Any]) -> dict[str, float]:
    """Make everything that stands in the page of a model, and return what each stage took."""
    from sphinx_fxgraph.escape import json_block
    from sphinx_fxgraph.options import COLUMNS
    from sphinx_fxgraph.record.model import Record
    from sphinx_fxgraph.render import colors, document, drawing, summary
    from sphinx_fxgraph.render.dot import source
    from sphinx_fxgraph.render.html_page import node_data
    from sphinx_fxgraph.render.node_table import node_rows, node_table
    from sphinx_fxgraph.render.stage_table import stages
    from sphinx_fxgraph.units import PLAIN

    times: dict[str, float] = defaultdict(float)

    def timed(stage: str, action: Callable[[], T]) -> T:
        start = time.process_time()
        result = action()
        times[stage] += time.process_time() - start
        return result

    gc.collect()
    record = timed("read", functools.partial(Record.from_json, text))
    job = drawing.Job(record, layouts=layouts, inside=True)
    timed("levels", lambda: job.composer)
    timed("place", job.complete)
    picture, insides = timed("place", lambda: (drawing.scene(job), drawing.insides(job)))
    shares = colors.Shares(record)
    timed("SVG", lambda: document.page_svg(picture, figure="f", title=name, description="", shares=shares, rows=True))

    def inside_data() -> str:
        found = {
            body: document.inside_svg(inside, figure="f", shares=shares.inside(body), rows=True)
            for body, inside in insides.items()
        }
        return json_block(found)

    timed("SVG", inside_data)
    timed("SVG", lambda: colors.html_list(picture, (inside.picture for inside in insides.values())))
    timed("tables", lambda: (summary.describe(record), summary.facts(record), stages(record)))
    rows = timed("tables", lambda: node_rows(record))
    timed("tables", lambda: node_table(rows, COLUMNS, PLAIN, prefix="f", drawn=str))
    timed("tables", lambda: json_block(node_data(record, PLAIN, columns=COLUMNS)))
    timed("downloads", lambda: (source(record), record.to_json()))
    return times


if __name__ == "__main__":
    main()
