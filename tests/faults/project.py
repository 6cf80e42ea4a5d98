"""A docs project with many faults, built once beside good models, and what came of each fault."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases import Case  # noqa: TC002 - a file of this folder

GOOD = """\
from torch import nn
import torch

NUMBER, TEXT = 7, "text"

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))

def lazy(): return nn.Sequential(nn.LazyConv2d(8, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(3))
def deep(): return nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(4)))
"""
NEIGHBOURS = """\
:orphan:

Neighbours
==========

.. fxgraph:: good.Net
   :inputs: 1, 4
   :caption: A good model

.. fxgraph:: good.lazy
   :inputs: 1, 3, 8, 8

.. fxgraph:: good.deep
   :inputs: 1, 4
   :stages:
"""
WARNING = re.compile(r"(?P<place>[^\n]*?\.rst):(?P<line>\d+): WARNING: (?P<text>[^\n]*) \[(?P<type>[\w.]+)\]")


@dataclass(frozen=True)
class Outcome:
    """What a build made of one faulty directive."""

    case: Case
    warnings: tuple[tuple[str, str], ...]
    """Type and text."""
    drawn: bool

    @property
    def is_right(self) -> bool:
        """Whether there is a graph, or one typed warning at the directive's place."""
        types = [kind for kind, _ in self.warnings]
        return (self.drawn and not types) or (len(types) == 1 and types[0].startswith("fxgraph."))


@dataclass(frozen=True)
class Built:
    """A build."""

    status: int
    seconds: float
    neighbours: str
    """The page of the good models."""
    stray: tuple[str, ...]
    """Lines on standard error that belong to no warning of a fault."""
    outcomes: tuple[Outcome, ...]
    left: tuple[str, ...]
    """Processes and temporary files that are still there."""


def build(folder: Path, cases: Iterable[Case], *arguments: str, timeout: float = 3000) -> Built:
    """Build the good models and some faults.

    Args:
        folder: where sources, output and cache are; an earlier build's are used.
        cases: the faults; each kind has a page.
        arguments: of sphinx-build.
        timeout: seconds after which the build counts as one that does not end.
    """
    docs, models, temporary = folder / "docs", folder / "models", folder / "tmp"
    shutil.rmtree(docs, ignore_errors=True)
    for each in (docs, models, temporary):
        each.mkdir(parents=True, exist_ok=True)
    (models / "good.py").write_text(GOOD)
    (docs / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(models)!r})\nextensions = ['sphinx_fxgraph']\n"
        "html_theme = 'basic'\nshow_warning_types = True\nproject = 'faults'\n"
    )
    (docs / "index.rst").write_text("Faults\n======\n")
    (docs / "neighbours.rst").write_text(NEIGHBOURS)
    places: dict[tuple[str, int], Case] = {}
    pages: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        pages[f"{case.group}-{re.sub('[^a-z0-9]+', '-', case.kind.lower())}"].append(case)
        if case.module:
            (models / f"{case.module}.py").write_text(case.code, encoding="utf-8", errors="surrogatepass")
    for name, members in pages.items():
        lines = [":orphan:", "", "Fault", "====="]
        for number, case in enumerate(members):
            lines += ["", f"Case {number}", "-" * 9, ""]
            places[name, len(lines) + 1] = case
            lines += case.directive.rstrip("\n").split("\n")
        (docs / f"{name}.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")
    mark = uuid.uuid4().hex
    command = [sys.executable, "-m", "sphinx", "-b", "html", "--no-color", *arguments, str(docs), str(folder / "html")]
    start = time.monotonic()
    run = subprocess.run(
        command,
        capture_output=True,
        check=False,
        timeout=timeout,
        env={**os.environ, "TMPDIR": str(temporary), "FXGRAPH_FAULTS": mark, "PYTHONWARNINGS": "ignore"},
    )
    seconds = time.monotonic() - start
    found: dict[tuple[str, int], list[tuple[str, str]]] = defaultdict(list)
    stray = []
    for line in run.stderr.decode(errors="replace").splitlines():
        match = WARNING.fullmatch(line)
        place = (Path(match["place"]).stem, int(match["line"])) if match else None
        if match and place in places:
            found[place].append((match["type"], match["text"]))
        elif line.strip():
            stray.append(line[:300])
    drawn = {name: _drawn(folder / "html" / f"{name}.html", len(members)) for name, members in pages.items()}
    outcomes = [
        Outcome(case, tuple(found[place]), drawn[place[0]][pages[place[0]].index(case)])
        for place, case in places.items()
    ]
    page = folder / "html" / "neighbours.html"
    return Built(
        run.returncode,
        seconds,
        page.read_text(encoding="utf-8") if page.exists() else "",
        tuple(stray),
        tuple(outcomes),
        (*processes(mark), *sorted(str(path.relative_to(temporary)) for path in temporary.glob("*"))),
    )


def _drawn(page: Path, count: int) -> Sequence[bool]:
    """Whether each section of a page has a drawing."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    sections = re.split(r"<h2>", text)[1:]
    return [number < len(sections) and "fxg-svg" in sections[number] for number in range(count)]


def processes(mark: str) -> list[str]:
    """The processes that have a mark in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (place / "environ").read_bytes() and int(place.name) != os.getpid():
                found.append(f"process {(place / 'cmdline').read_bytes().replace(bytes(1), b' ')[:80].decode()}")
        except OSError:
            continue
    return found
