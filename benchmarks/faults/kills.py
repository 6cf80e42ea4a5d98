"""End docs builds at random moments, and see what they leave behind.

``python benchmarks/faults/kills.py [--count 200] [--csv FILE]``. Each build has a process group of its own and a cold
or half-filled cache. It is ended by SIGTERM, SIGINT or SIGKILL, sent to the build alone or to its group. A second later
no process of it may be there and no temporary file. After every tenth, a build must be right.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

MODELS = """\
import tempfile, time
from torch import nn

class Net(nn.Module):
    def __init__(self, number, seconds=0.0):
        super().__init__()
        tempfile.mkdtemp()
        time.sleep(seconds)
        self.first, self.last = nn.Linear(4, number), nn.Linear(number, 2)

    def forward(self, x):
        return self.last(self.first(x).relu())
"""
GRACE = 1.0
"""Seconds after which nothing may be left."""


def write_project(folder: Path, count: int) -> None:
    """Write a docs project with so many models."""
    (folder / "docs").mkdir()
    (folder / "tmp").mkdir()
    (folder / "docs/nets.py").write_text(MODELS)
    (folder / "docs/conf.py").write_text(
        "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nextensions = ['sphinx_fxgraph']\n"
        "fxgraph_cache_dir = 'cache'\nfxgraph_workers = 2\n"
    )
    shown = "\n".join(f".. fxgraph:: nets.Net({4 + n}, {n % 3 / 5})\n   :inputs: 1, 4\n" for n in range(count))
    (folder / "docs/index.rst").write_text(f"Nets\n====\n\n{shown}")


def start(folder: Path, mark: str) -> subprocess.Popen[bytes]:
    """Start a build."""
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-b", "html", str(folder / "docs"), str(folder / "html")]
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(folder / "tmp"), "FXGRAPH_KILLS": mark},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )


def left(folder: Path, mark: str) -> list[str]:
    """Return the processes and temporary files of a build."""
    found = [f"file {path.name}" for path in (folder / "tmp").glob("*") if not path.name.startswith("sphinx-err")]
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and mark.encode() in (place / "environ").read_bytes():
                command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"process {place.name}: {command[:60]!r}")
    return found


def main() -> int:
    """Kill the builds and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    chance = random.Random(options.seed)  # noqa: S311 - moments, not secrets
    rows: dict[tuple[str, str], Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="kills-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_project(folder, 8)
        begin = time.monotonic()
        assert start(folder, "x").wait() == 0, "the project does not build"
        seconds = time.monotonic() - begin
        page = (folder / "html/index.html").read_bytes()
        for number in range(options.count):
            if number % 2:
                shutil.rmtree(folder / "docs/cache", ignore_errors=True)
            mark = uuid.uuid4().hex
            run = start(folder, mark)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(chance.uniform(0.05, 1.1) * seconds)
            sent = chance.choice((signal.SIGTERM, signal.SIGINT, signal.SIGKILL))
            group = chance.random() < 0.5
            counts = rows.setdefault((sent.name, "group" if group else "build alone"), Counter())
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, sent) if group else os.kill(run.pid, sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(10)
            time.sleep(GRACE)
            found = left(folder, mark)
            counts["kills"] += 1
            counts["left something"] += bool(found)
            counts["process left"] += any(each.startswith("process") for each in found)
            counts["file left"] += any(each.startswith("file") for each in found)
            if found:
                print(number, sent.name, group, found, flush=True)
                time.sleep(4 * GRACE)
                counts["left after 5 s"] += bool(left(folder, mark))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            for path in (folder / "tmp").glob("*"):
                shutil.rmtree(path, ignore_errors=True)
            if number % 10 == 9:
                good = start(folder, mark)
                good.communicate()
                counts["builds after"] += 1
                right = good.returncode == 0 and (folder / "html/index.html").read_bytes() == page
                counts["next wrong"] += not right
    heads = ("kills", "process left", "file left", "left after 5 s", "builds after", "next wrong")
    lines = [("signal", "sent to", *heads)]
    lines += [(*key, *(str(rows[key][head]) for head in heads)) for key in sorted(rows)]
    total = sum(rows.values(), Counter())
    lines.append(("all", "", *(str(total[head]) for head in heads)))
    csv.writer(sys.stdout).writerows(lines)
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)
    return 1 if total["left something"] or total["next wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
