"""Times what a newcomer does: from pip to the first figure, from a clone to the gallery, and from a clone to the tests.

    python benchmarks/newcomer/run.py [--only figure gallery tests] [--csv docs/design/newcomer.csv]

Each way begins in an empty folder with this interpreter alone and runs the lines that README.md names, with this
checkout for sphinx-fxgraph. Packages come from the index that pip is set to; its cache of downloads is not used.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def line(pattern: str) -> str:
    """Return the only line of README.md that fits a pattern."""
    (found,) = re.findall(rf"^{pattern}$", README, re.MULTILINE)
    return str(found)


def run(command: str, folder: Path) -> None:
    """Run a line of a shell, with the environment of the folder first on PATH."""
    path = os.pathsep.join([str(folder / "env/bin"), str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PIP_CONSTRAINT")}
    environment = {**kept, "PATH": path, "PIP_NO_CACHE_DIR": "1"}
    subprocess.run(command, shell=True, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)  # noqa: S602 - lines of our README


def clone(folder: Path) -> Path:
    """Return a clone of the last commit."""
    run(f"git clone -q {ROOT} clone", folder)
    return folder / "clone"


def figure(folder: Path) -> str:
    """From ``pip install`` to the file that the first command of README.md draws."""
    run(f"{sys.executable} -m venv env", folder)
    install = line(r"pip install 'sphinx-fxgraph\[torch,print\]'")
    run(install.replace("'sphinx-fxgraph[", f"'{ROOT}["), folder)
    command = line("sphinx-fxgraph draw .*svg")
    run(command, folder)
    written = folder / command.split()[-1]
    return f"{written.name}, {written.stat().st_size / 1000:.0f} kB"


def gallery(folder: Path) -> str:
    """From ``git clone`` to the pages."""
    source = clone(folder)
    run(line("python3 .*tox -e docs"), source)
    pages = len(list((source / "docs/_build/html").rglob("*.html")))
    return f"{pages} pages"


def tests(folder: Path) -> str:
    """From ``git clone`` to the end of the tests."""
    run(line("python3 .*tox -e py"), clone(folder))
    return "all tests"


WAYS: dict[str, Callable[[Path], str]] = {"figure": figure, "gallery": gallery, "tests": tests}


def main() -> None:
    """Go each way once and print how long it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = [("way", "minutes", "result")]
    for name in arguments.only:
        folder = Path(tempfile.mkdtemp(prefix="newcomer-"))
        start = time.monotonic()
        result = WAYS[name](folder)
        said = (WAYS[name].__doc__ or "").partition("\n")[0].rstrip(".").replace("``", "")
        rows.append((said, f"{(time.monotonic() - start) / 60:.1f}", result))
        print(*rows[-1], sep=" | ", flush=True)
        shutil.rmtree(folder)
    if arguments.csv:
        with arguments.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
