"""Build large projects, and measure time, memory and the size of pages.

``python benchmarks/load/run.py [--csv FILE] [CASE ...]``. Each case is a docs project of its own, built from nothing
and once more unchanged. Memory is the peak of the Sphinx process, and of
the largest process that it has started. The data of a page is what its viewers load when a reader opens a module, asks
for details or searches.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODELS = """\
import torch
from torch import nn

class Wide(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(4, 4) for _ in range(count))

    def forward(self, x):
        return sum(part(x) for part in self.parts)

class Long(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.count = count

    def forward(self, x):
        for number in range(self.count // 2):
            x = x.relu() if number % 3 else x.sigmoid()
            x = x + number
        return x

class Inputs(nn.Module):
    def forward(self, *xs):
        return torch.stack(xs).sum(0)

class Outputs(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(4, 4) for _ in range(count))

    def forward(self, x):
        return tuple(part(x) for part in self.parts)

def deep(levels):
    net = nn.Linear(4, 4)
    for _ in range(levels):
        net = nn.Sequential(net, nn.ReLU())
    return net

def small(number):
    return nn.Sequential(nn.Linear(4, number), nn.ReLU(), nn.Linear(number, 4))
"""
PLAIN = "1, 4"
CASES: dict[str, tuple[int, list[tuple[str, str]]]] = {
    "1,000 directives in 100 pages, 50 models": (100, [(f"small({4 + n % 50})", PLAIN) for n in range(1000)]),
    "50 models on a page": (1, [(f"small({4 + n})", PLAIN) for n in range(50)]),
    "10,000 operators in a row": (1, [("Long(10000)", PLAIN)]),
    "5,000 parallel modules": (1, [("Wide(5000)", PLAIN)]),
    "300 inputs": (1, [("Inputs()", ", ".join(["(1, 4)"] * 300))]),
    "200 outputs": (1, [("Outputs(200)", PLAIN)]),
    "30 levels": (1, [("deep(30)", PLAIN)]),
    **{
        f"{count} models of 100 operators, 10 on a page": (
            count // 10,
            [(f"Long({100 + 2 * n})", PLAIN) for n in range(count)],
        )
        for count in (10, 40, 160)
    },
}
HEADS = ("case", "build, s", "again, s", "Sphinx, MB", "worker, MB", "largest page, kB", "its data, kB", "warnings")


def write_project(folder: Path, pages: int, models: list[tuple[str, str]]) -> None:
    """Write a docs project that shows some models on so many pages."""
    docs = folder / "docs"
    docs.mkdir()
    (docs / "nets.py").write_text(MODELS)
    (docs / "conf.py").write_text(
        "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n"
        "extensions = ['sphinx_fxgraph']\nhtml_theme = 'basic'\n"
    )
    (docs / "index.rst").write_text("Load\n====\n\n.. toctree::\n   :glob:\n\n   page*\n")
    share = len(models) // pages
    for page in range(pages):
        shown = "\n".join(
            f".. fxgraph:: nets.{target}\n   :inputs: {inputs}\n"
            for target, inputs in models[page * share : (page + 1) * share]
        )
        (docs / f"page{page}.rst").write_text(f"Page {page}\n=========\n\n{shown}")


def build(folder: Path, seconds: float) -> tuple[float, float, float, str]:
    """Build, and return seconds, megabytes of Sphinx and of the largest process below it, and standard error."""
    code = (
        "import resource, sys\nfrom sphinx.cmd.build import main\nstatus = main(sys.argv[1:])\n"
        "each = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)\n"
        "print('peak', *(resource.getrusage(who).ru_maxrss for who in each))\n"
        "sys.exit(status)"
    )
    command = [sys.executable, "-c", code, "-b", "html", "--no-color", str(folder / "docs"), str(folder / "html")]
    start = time.monotonic()
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds)
    taken = time.monotonic() - start
    own, below = (int(number) / 1024 for number in run.stdout.rpartition("peak ")[2].split())
    return taken, own, below, run.stderr


def measure(name: str, seconds: float) -> tuple[str, ...]:
    """Return the row of a case."""
    pages, models = CASES[name]
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        write_project(Path(folder), pages, models)
        try:
            first, own, below, said = build(Path(folder), seconds)
            again, *_ = build(Path(folder), seconds)
        except subprocess.TimeoutExpired:
            return name, f"more than {seconds:.0f}", "", "", "", "", "", ""
        except subprocess.CalledProcessError as error:
            return name, f"failed: {error.stderr.strip().splitlines()[-1][:200]}", "", "", "", "", "", ""
        page = max(Path(folder, "html").glob("page*.html"), key=lambda path: path.stat().st_size)
        names = set(re.findall(r'="(_static/fxgraph/[^"?]+[.]js)"', page.read_text(encoding="utf-8")))
        sizes = page.stat().st_size, sum(Path(folder, "html", name).stat().st_size for name in names)
    numbers = (
        f"{first:.1f}",
        f"{again:.1f}",
        *(f"{size:.0f}" for size in (own, below, *(each / 1000 for each in sizes))),
    )
    return (name, *numbers, str(said.count("WARNING")))


def main() -> None:
    """Measure the cases and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--seconds", type=float, default=600, help="for one build")
    options = parser.parse_args()
    os.environ["PYTHONWARNINGS"] = "ignore"
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rows = [HEADS]
    for name in options.cases or CASES:
        rows.append(measure(name, options.seconds))
        print(*rows[-1], sep=" | ", flush=True)
        if options.csv:
            with options.csv.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
