"""What a small model's capture costs in a fresh process, against ``import torch``.

``python benchmarks/cold_capture/run.py`` starts Python again and again, in turn for ``import torch`` alone and for the
capture of a small model, and compares the medians of the whole processes' CPU seconds, with children. Exit status 1
where the capture costs more than `MOST` times the import, or imports sympy or torch._dynamo.

CPU seconds, since other processes on the machine make a run longer but hardly dearer.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

MOST = 1.5
DOCS = Path(__file__).parents[2] / "docs"
IMPORT = "import torch"
CAPTURE = """
import sys
from sphinx_fxgraph.capture.capture import record_spec
from sphinx_fxgraph.spec.spec import GraphSpec
record = record_spec(GraphSpec.parse("zoo.two_inputs.TwoInputs", "(1, 3, 16, 16), (1, 2, 8, 8)"))
assert record.failure is None and record.operators > 5, record.failure
print(*sorted({"sympy", "torch._dynamo"} & set(sys.modules)))
"""


def seconds(code: str) -> tuple[float, str]:
    """CPU seconds of a Python that runs some code, and what it prints."""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=DOCS, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"ended with status {process.returncode}: {code}")
    return used.ru_utime + used.ru_stime, said.strip()


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    seconds(CAPTURE)  # compiles what is not compiled yet
    imports, captures, loaded = [], [], ""
    for _ in range(asked.rounds):
        imports.append(seconds(IMPORT)[0])
        spent, loaded = seconds(CAPTURE)
        captures.append(spent)
    ratio = statistics.median(captures) / statistics.median(imports)
    medians = f"import torch {statistics.median(imports):.2f} s, capture {statistics.median(captures):.2f} s of CPU"
    print(f"{medians} (medians of {asked.rounds}): {ratio:.2f} times; heavy imports: {loaded or 'none'}")
    return int(ratio > MOST or bool(loaded))


if __name__ == "__main__":
    sys.exit(main())
