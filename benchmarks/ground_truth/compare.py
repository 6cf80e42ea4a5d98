"""Captures models of ``published.csv`` and compares parameters and MACs with what their projects have published.

    python benchmarks/ground_truth/compare.py --python /envs/zoo/bin/python [--python ...] [PATTERN ...]

Each row runs under the first interpreter that has its package. What was found goes to ``results.csv``; with patterns,
only the rows whose target fits one are captured, and the others stay as they were; without a row to capture the files
are written anew. A summary is printed, and goes to the handbook.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TypeVar

from sphinx_fxgraph.record.metrics import macs_of
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker import pool

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "design"

Line = TypeVar("Line")

_PROPOSALS = "how many proposals the heads get depends on trained weights and on the picture"
REASONS = dict.fromkeys(("fasterrcnn", "FasterRCNN", "MaskRCNN", "maskrcnn", "KeypointRCNN"), _PROPOSALS)
"""Why a published number cannot be had from the architecture alone, by what its target contains."""


@dataclass(frozen=True)
class Row:
    """A line of ``published.csv``."""

    source: str
    convention: str
    target: str
    inputs: str
    parameters: str
    """In full, or in millions to two digits: ``5.72M``."""
    gmacs: str
    """In thousand millions; torchvision prints three digits without the zeros at the end, timm two."""

    @property
    def spec(self) -> GraphSpec:
        return GraphSpec.parse(self.target, self.inputs)

    @property
    def package(self) -> str:
        return self.target.partition(".")[0]

    @property
    def key(self) -> tuple[str, ...]:
        return self.source, self.target, self.inputs, self.parameters, self.gmacs


@dataclass(frozen=True)
class Result:
    """A line of ``results.csv``."""

    source: str
    target: str
    inputs: str
    published_parameters: str
    parameters: str
    published_gmacs: str
    gmacs: str
    parameters_equal: str
    """``yes`` or ``no``: to all digits that are published."""
    gmacs_equal: str
    deviation: str
    """In percent, where the MACs are not equal."""
    remark: str

    @property
    def key(self) -> tuple[str, ...]:
        return self.source, self.target, self.inputs, self.published_parameters, self.published_gmacs


def read(name: str, kind: type[Line]) -> list[Line]:
    """The lines of a file beside this one."""
    path = HERE / name
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [kind(**line) for line in csv.DictReader(file)]


def compare(row: Row, record: Record) -> Result:
    """One row with its record."""
    totals, failure = record.totals, record.failure
    found = f"{round(totals.parameters / 1e6, 2)}M" if row.parameters.endswith("M") else str(totals.parameters)
    same = float(found.rstrip("M")) == float(row.parameters.rstrip("M"))
    macs = macs_of(totals, row.convention)
    gmacs = equal = deviation = remark = ""
    if row.gmacs and macs is not None:
        digits = 3 if row.convention == "torchvision" else 2
        gmacs, is_equal = f"{macs / 1e9:.{digits + 1}f}", round(macs / 1e9, digits) == float(row.gmacs)
        equal = "yes" if is_equal else "no"
        if not is_equal:
            deviation = f"{100 * (macs / 1e9 / float(row.gmacs) - 1):+.2f}"
            remark = next((text for part, text in REASONS.items() if part in row.target), "")
    if failure:
        remark, equal = f"{failure.stage}: {failure.message}", "no" if row.gmacs else ""
    parameters = str(totals.parameters) if record.modules else ""
    return Result(
        row.source,
        row.target,
        row.inputs,
        row.parameters,
        parameters,
        row.gmacs,
        gmacs,
        "yes" if same else "no",
        equal,
        deviation,
        " ".join(remark.split()),
    )


def summary(found: Sequence[Result]) -> list[list[str]]:
    """A row a source: how many of its numbers are ours to all digits that it has published."""
    lines = [
        ["source", "models", "parameters equal", "models with MACs", "MACs equal", "within 1.5 %", "depends on weights"]
    ]
    for source in dict.fromkeys(each.source for each in found):
        rows = [each for each in found if each.source == source]
        macs = [each for each in rows if each.published_gmacs]
        open_ = [each for each in macs if each.gmacs_equal != "yes"]
        near = [each for each in open_ if each.deviation and abs(float(each.deviation)) <= 1.5]
        weights = [each for each in open_ if each not in near and each.remark == _PROPOSALS]
        counts = (
            len(rows),
            sum(each.parameters_equal == "yes" for each in rows),
            len(macs),
            len(macs) - len(open_),
            len(near),
            len(weights),
        )
        lines.append([source, *map(str, counts)])
    return lines


def differences(found: Sequence[Result]) -> list[list[str]]:
    """The models that are not as published."""
    rows = [each for each in found if "no" in (each.parameters_equal, each.gmacs_equal)]
    head = ["model", "parameters", "published", "GMACs", "published", "deviation in %"]
    return [head, *([_short(row.target), row.parameters, row.published_parameters, *_macs(row)] for row in rows)]


def _short(target: str) -> str:
    """A target by its last name, and the backbone it is given: a table has no room for more."""
    backbone = re.search(r"backbone_name='(\w+)'", target)
    return GraphSpec.parse(target).label + (f" on {backbone[1]}" if backbone else "")


def _macs(row: Result) -> list[str]:
    return [row.gmacs, row.published_gmacs, row.deviation]


def capture(rows: Sequence[Row], pythons: Sequence[str], workers: int) -> Iterator[Result]:
    """The rows that can be captured here, as they get done."""
    left = list(rows)
    for python in pythons:
        there = {name for name in {row.package for row in left} if _has(python, name)}
        mine = [row for row in left if row.package in there]
        left = [row for row in left if row.package not in there]
        for spec, record in pool.capture([row.spec for row in mine], python=python, workers=workers, timeout=1800):
            yield from (compare(row, record) for row in mine if row.spec.id == spec.id)


def _has(python: str, package: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([python, "-P", "-c", code], check=False).returncode == 0


def write(found: Iterable[Result]) -> None:
    """Write ``results.csv`` in the order of ``published.csv``, and the summaries that the handbook shows."""
    known = {each.key: each for each in found}
    results = [known[row.key] for row in read("published.csv", Row) if row.key in known]
    _put(HERE / "results.csv", [[field.name for field in fields(Result)], *map(list, map(astuple, results))])
    _put(DOCS / "ground-truth.csv", summary(results))
    _put(DOCS / "ground-truth-differences.csv", differences(results))


def _put(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> None:
    """Compare, keep and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"], help="of targets")
    parser.add_argument("--python", action="append", help="an interpreter that has torch and packages of models")
    parser.add_argument("--workers", type=int, default=0, help="captures at a time")
    arguments = parser.parse_args()
    fits = [fnmatch.translate(pattern) for pattern in arguments.patterns]
    rows = [row for row in read("published.csv", Row) if any(re.match(fit, row.target) for fit in fits)]
    start = time.monotonic()
    write(read("results.csv", Result))
    found = []
    for result in capture(rows, arguments.python or [sys.executable], arguments.workers):
        found.append(result)
        write([*read("results.csv", Result), result])  # each as it comes: a run may be ended and taken up again
        print(f"{len(found)}/{len(rows)} {result.target}", file=sys.stderr, flush=True)
    print(f"{len(found)} of {len(rows)} rows in {time.monotonic() - start:.0f} s", file=sys.stderr)
    for line in (*summary(found), *differences(found)):
        print(*line, sep=" | ")


if __name__ == "__main__":
    main()
