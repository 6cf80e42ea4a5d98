"""Times warm builds of a hundred graphs against the same site with the same drawings as static files.

    python benchmarks/warm_build/run.py [--rounds 5] [--folder DIR] [--table none]

The sites are built in turn, in processes of their own, so that what else the machine does falls on both; what is
given is processor time, or with ``WALL=1`` the time on the wall. "Again" is a build with nothing changed, and "anew"
is one without doctrees and output, as after a fresh clone: then our pages also have tables of their operators, which
static files have not, unless ``--table none`` is given.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hundred

WATCH = """
import sys

def setup(app):
    watched = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system")
    started = []
    sys.addaudithook(lambda event, args: event in watched and started.append(event))
    app.connect(
        "build-finished", lambda app, error: print("torch:", "torch" in sys.modules, "processes:", len(started))
    )
"""


def main() -> None:
    """Build both sites, and print the times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="kept afterwards; a folder of cached records is used again")
    parser.add_argument("--table", default="", help="what :table: says in each directive")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warm-build-") as temporary:
        measure(options.folder or Path(temporary), options.rounds, options.table)


def measure(folder: Path, rounds: int, table: str) -> None:
    """Prepare both sites, then build them in turn."""
    for name in ("graphs", "static"):
        for part in ("docs", "build"):
            shutil.rmtree(folder / name / part, ignore_errors=True)
    graphs = hundred.write(folder / "graphs", graphs=True, table=table)
    seconds, _ = build(graphs)
    print(f"first build, with what is captured in it: {seconds:.1f} s")
    watch(graphs)
    static = hundred.write(folder / "static", graphs=False)
    found = hundred.drawings(graphs.parent / "build/html")
    if len(found) != hundred.GRAPHS:
        raise SystemExit(f"{len(found)} drawings instead of {hundred.GRAPHS}")
    for number, drawing in enumerate(found):
        (static / f"graph-{number:02}.svg").write_text(drawing, encoding="utf-8")
    build(static)
    for kind, fresh in (("again", False), ("anew", True)):
        times: dict[Path, list[float]] = {graphs: [], static: []}
        for _ in range(rounds):
            for docs, taken in times.items():
                seconds, _ = build(docs, fresh=fresh)
                taken.append(seconds)
        ours, theirs = (statistics.median(taken) for taken in times.values())
        print(f"{kind}: {ours:.2f} s with graphs, {theirs:.2f} s with static files, ratio {ours / theirs:.2f}")
    print("no torch in sys.modules, no process started")


def watch(docs: Path) -> None:
    """Build twice, again and anew, and see what starts and what is imported; the watching itself takes time."""
    conf = docs / "conf.py"
    plain = conf.read_text(encoding="utf-8")
    conf.write_text(plain + WATCH, encoding="utf-8")
    for fresh in (False, True):
        _, output = build(docs, fresh=fresh)
        if "torch: False processes: 0" not in output:
            raise SystemExit(f"a warm build must start nothing and import no torch:\n{output}")
    conf.write_text(plain, encoding="utf-8")


def build(docs: Path, *, fresh: bool = False) -> tuple[float, str]:
    """Seconds of processor time that one build takes, and what it prints."""
    target = docs.parent / "build"
    if fresh:
        shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-d", str(target / "doctrees")]
    before = os.times()
    start = time.perf_counter()
    # Installed packages are compiled, so ours is too.
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run(
        [*command, str(docs), str(target / "html")], capture_output=True, text=True, check=False, env=compiled
    )
    wall = time.perf_counter() - start
    after = os.times()
    if run.returncode or run.stderr:
        raise SystemExit(f"status {run.returncode}\n{run.stdout}\n{run.stderr}")
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return (wall if os.environ.get("WALL") else processor), run.stdout


if __name__ == "__main__":
    main()
