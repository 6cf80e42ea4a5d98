"""What the capture of the largest models takes, and torchview beside it on one of them.

``python benchmarks/capture/run.py --out docs/design`` needs torch, transformers and torchview, and writes
``capture-large.csv``. Each capture is a process of its own, on meta, in bfloat16, of `configs.TOKENS` tokens.
Both tools are given the built model, and timed from there to their result: our record, torchview's graph
(``draw_graph(..., device="meta", depth=100)``, since at its default depth it ends with a KeyError); beside them stands
what the plain forward takes. Seconds are those of the CPU, of five rounds the one in the middle, since other processes
make single runs dearer by a third. Memory is the highest resident size of the whole process (``ru_maxrss``), and how
much of it came after the model was built.

Exit status 1 where a capture's process has 1 GB or more, or ours takes more than a third of torchview's time.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MOST_BYTES = 10**9
SHARE = 1 / 3
BESIDE = "Llama-2-7B"
TOOLS = ("sphinx-fxgraph", "torchview", "the model alone")
"""The last one is what a plain forward takes, in the first run of a process as for the others."""


def measure(name: str, tool: str) -> dict[str, Any]:
    """Capture one model with one tool, in this process."""
    import torch
    from configs import TOKENS, build

    with torch.device("meta"):
        model = build(name)
        ids = torch.zeros(1, TOKENS, dtype=torch.int64)
    before = _peak()
    start = time.process_time()
    operators: object = ""
    if tool == "sphinx-fxgraph":
        from sphinx_fxgraph.capture.capture import record_model

        record = record_model(model, (ids,), {})
        if record.failure:
            raise SystemExit(f"{name}: {record.failure.message}")
        operators = record.operators
    elif tool == TOOLS[2]:
        with torch.no_grad():
            model(ids)
    else:
        from torchview import draw_graph  # type: ignore[import-not-found]  # a peer, installed for this alone

        draw_graph(model, input_data=ids, device="meta", depth=100)
    return {
        "Model": name,
        "Parameters": sum(each.numel() for each in model.parameters()),
        "Tool": tool,
        "Operators": operators,
        "CPU seconds": round(time.process_time() - start, 2),
        "Peak MB": round(_peak() / 1e6),
        "Of it added MB": round((_peak() - before) / 1e6),
    }


def _peak() -> int:
    """Bytes: Linux tells kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


_COMPILE = "import torchview, sphinx_fxgraph.capture.capture, sphinx_fxgraph.capture.tracers.auto"
"""As `pip` does for what it installs; that is no part of a capture."""


def apart(name: str, tool: str) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--one", name, tool]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    row: dict[str, Any] = json.loads(said.splitlines()[-1])
    print(row, flush=True)
    return row


def beside(rounds: int) -> list[dict[str, Any]]:
    """All tools on one model, in turn, and of each the round in the middle: single runs differ by a third."""
    runs: dict[str, list[dict[str, Any]]] = {tool: [] for tool in TOOLS}
    for _ in range(rounds):
        for tool in TOOLS:
            runs[tool].append(apart(BESIDE, tool))
    return [sorted(runs[tool], key=lambda row: float(row["CPU seconds"]))[rounds // 2] for tool in TOOLS]


def main() -> int:
    """Measure, write, judge."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="folder of the table")
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "TOOL"), help="only that, in this process")
    parser.add_argument("--rounds", type=int, default=5, help="of the two tools beside each other")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(*asked.one)))
        return 0
    from configs import CONFIGS

    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-c", _COMPILE], check=True)
    both = beside(asked.rounds)
    rows = both + [apart(name, TOOLS[0]) for name in CONFIGS if name != BESIDE]
    if asked.out:
        with (asked.out / "capture-large.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows({**row, "Parameters": f"{row['Parameters']:,}"} for row in rows)
    large = [row["Model"] for row in rows if row["Tool"] == TOOLS[0] and row["Peak MB"] * 1e6 >= MOST_BYTES]
    ratio = both[0]["CPU seconds"] / both[1]["CPU seconds"]
    print(f"{ratio:.2f} of torchview's time on {BESIDE}; 1 GB or more: {', '.join(large) or 'none'}")
    return int(bool(large) or ratio > SHARE)


if __name__ == "__main__":
    sys.exit(main())
