"""The tables of the handbook from the lines that sweeps have written.

``python benchmarks/coverage/table.py results*.jsonl --out docs/design`` writes ``coverage.csv``, a line a model,
``coverage-counts.csv`` and ``coverage-faults.csv``. Later lines win over earlier ones of the same model. With
``docs/design/coverage.csv`` as the first file the models that were not captured again stay.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_COLUMNS = (
    "zoo",
    "name",
    "outcome",
    "tracer",
    "verdict",
    "operators",
    "parameters",
    "inputs",
    "reason",
    "versions",
)


def main() -> None:
    """Read the lines, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of the tables")
    asked = parser.parse_args()
    found = {(result["zoo"], result["name"]): result for file in asked.results for result in _read(file)}
    results = [found[key] | {"reason": _portable(found[key]["reason"])} for key in sorted(found)]
    _write(asked.out / "coverage.csv", _COLUMNS, ([result[name] for name in _COLUMNS] for result in results))
    _write(asked.out / "coverage-counts.csv", _COUNTS, _counts(results))
    faults = [result for result in results if result["outcome"] != "right"]
    _write(
        asked.out / "coverage-faults.csv",
        ("Package", "Model", "Outcome", "Reason"),
        ([result["zoo"], result["name"], result["outcome"], _plain(_short(result["reason"]))] for result in faults),
    )


def _read(file: Path) -> list[dict[str, Any]]:
    text = file.read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines())) if file.suffix == ".csv" else [*map(json.loads, text.splitlines())]


_COUNTS = ("Versions", "Models", "Run by themselves", "Right", "Share", "From the traced graph", "From the run")


def _counts(results: list[dict[str, Any]]) -> Iterable[list[object]]:
    for versions in dict.fromkeys(result["versions"] for result in results):
        mine = [result for result in results if result["versions"] == versions]
        runnable = [result for result in mine if result["outcome"] != "no run"]
        right = [result for result in runnable if result["outcome"] == "right"]
        tracers = Counter(result["tracer"] for result in right)
        share = f"{len(right) / len(runnable):.1%}" if runnable else ""
        yield [versions, len(mine), len(runnable), len(right), share, tracers["symbolic"], tracers["observed"]]


def _portable(text: str) -> str:
    """A reason without the folders of the machine that found it."""
    return re.sub(r"(?<![\w.])/(?:[\w.+-]+/)*[\w.+-]*", "…", text)


def _plain(text: str) -> str:
    """A text of a page, which is reStructuredText."""
    return re.sub(r"([*`|_\\])", r"\\\1", text)


def _short(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _write(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
