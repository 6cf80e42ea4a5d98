"""Run everything that tries to break a docs build, and print how often it did.

``python benchmarks/faults/run.py [--parts NAME ...] [--folder docs/design] [--torch PYTHON ...]`` runs the fault
table, the environments, the kills, the fuzzer and the load, one after another, which takes some hours. Each part prints
its own table and writes it as CSV into the folder. The last table has a line for each part, also for those that ran
earlier.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Part:
    """A script, and where its table says how much it did and what went wrong."""

    script: str
    what: str
    count: str = ""
    """The column to add up; empty counts lines."""
    wrong: tuple[str, ...] = ()
    """The columns that should be 0."""
    right: str = ""
    """The column that should be ``yes``."""


PARTS = {
    "faults": Part("tests/faults/run.py", "faults injected into builds", "faults", ("wrong",)),
    "environments": Part("tests/faults/environments.py", "environments", right="as expected"),
    "kills": Part("benchmarks/faults/kills.py", "builds killed", "kills", ("process left", "file left", "next wrong")),
    "fuzz": Part("benchmarks/fuzz/run.py", "random inputs", "inputs", ("failures",)),
    "load": Part("benchmarks/load/run.py", "large projects", wrong=("warnings",)),
}


def summarize(part: Part, path: Path) -> tuple[str, str, str]:
    """Return the summary line of a part from its table."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if "all" not in row.values()]
    count = sum(int(row[part.count]) for row in rows) if part.count else len(rows)
    wrong = sum(int(row[name] or 1) for row in rows for name in part.wrong)
    wrong += sum(row[part.right] != "yes" for row in rows if part.right)
    return part.what, str(count), str(wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="*", choices=[*PARTS, []], default=[*PARTS], help="none: only the summary")
    parser.add_argument("--folder", type=Path, default=ROOT / "docs/design")
    parser.add_argument("--torch", nargs="*", default=[], metavar="PYTHON", help="other versions for environments")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.parts:
        more = ["--torch", *options.torch] if name == "environments" else []
        command = [sys.executable, str(ROOT / PARTS[name].script), "--csv", str(options.folder / f"{name}.csv"), *more]
        subprocess.run(command, check=False)
    lines = [("what", "number", "wrong")]
    for name, part in PARTS.items():
        path = options.folder / f"{name}.csv"
        if path.exists():
            lines.append(summarize(part, path))
    csv.writer(sys.stdout).writerows(lines)
    with (options.folder / "robustness.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
    return 0 if len(lines) == len(PARTS) + 1 and all(line[2] == "0" for line in lines[1:]) else 1


if __name__ == "__main__":
    sys.exit(main())
