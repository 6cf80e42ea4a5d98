"""Run the whole table of faults in one build, and print what came of it.

``python tests/faults/run.py [--csv FILE] [--kinds NAME ...]``: status 0 if every fault ended in a graph or in one typed
warning at its place, the pages of the good models are the same byte for byte, and nothing is left behind.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import cases
import project


def main() -> int:
    """Run and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, help="write the summary there")
    parser.add_argument("--kinds", nargs="*", help="only these kinds of models, and no directives")
    options = parser.parse_args()
    chosen = [*cases.models(options.kinds)] + ([] if options.kinds else [*cases.directives()])
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as name:
        alone = project.build(Path(name, "site"), [])
        print(f"without faults: {alone.seconds:.0f} s, status {alone.status}, {len(alone.stray)} stray lines")
        run = project.build(Path(name, "site"), chosen)
        print(f"with {len(chosen)} faults: {run.seconds:.0f} s, status {run.status}")
        after = project.build(Path(name, "site"), [], "-E")
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for outcome in run.outcomes:
        what = "graph" if outcome.drawn and not outcome.warnings else "one warning" if outcome.is_right else "wrong"
        rows[outcome.case.group, outcome.case.stage][what] += 1
        if not outcome.is_right:
            print("wrong:", outcome.case.group, outcome.case.kind, outcome.case.stage, outcome.drawn, outcome.warnings)
    same = bool(run.neighbours) and run.neighbours == alone.neighbours == after.neighbours
    print(f"neighbours byte-identical: {same}; left behind: {run.left or 'nothing'}")
    print(*run.stray, sep="\n")
    lines = [("group", "stage", "faults", "graph", "one warning", "wrong")]
    for (group, stage), counts in rows.items():
        lines.append((group, stage, *map(str, (counts.total(), *(counts[each] for each in lines[0][3:])))))
    total = sum(rows.values(), Counter())
    lines.append(("all", "", *map(str, (total.total(), *(total[each] for each in lines[0][3:])))))
    csv.writer(sys.stdout).writerows(lines)
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)
    return 0 if same and not (total["wrong"] or run.stray or run.left or run.status) else 1


if __name__ == "__main__":
    sys.exit(main())
