"""Builds this handbook where neither torch, nor a model's package, nor Graphviz is, and compares it with a full build.

    python benchmarks/committed/prove.py [--folder DIR]

As a project does it: a clone of what is committed here, its cache filled by ``sphinx_fxgraph warm``; the pages built
from it by this interpreter; and built again from another clone with that cache, by a fresh environment that has Sphinx,
the theme and the extensions in the versions that are here, and nothing more, with the network off. Warnings are errors
in both. Every file must be the same byte for byte, but for what autodoc and viewcode fill: these import what they
document.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = "graphs"
"""Below ``docs``, as a project sets it that commits its cache."""
NEEDED = ("sphinx", "furo", "myst-parser", "msgspec")
WITHOUT = ("torch", "graphviz", "graphviz_pure", "pygraphviz", "pydot", "monai", "transformers", "efficientnet_pytorch")
FILLED = ("api", "_modules", "genindex.html", "py-modindex.html", "objects.inv", "searchindex.js", ".fxgraph.json")
"""What autodoc and viewcode fill, and what lists the names that they found, or all pages."""
OFFLINE = ("unshare", "--user", "--map-root-user", "--net")


def main() -> None:
    """Build twice, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="an empty one, which is kept afterwards")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="committed-") as temporary:
        raise SystemExit(prove((options.folder or Path(temporary)).absolute()))


def prove(folder: Path) -> int:
    """Say how many files are the same; 1 if one is not that should be."""
    here, there = cloned(folder / "full"), cloned(folder / "bare")
    run("warm", here, sys.executable, "-m", "sphinx_fxgraph", "warm", "-q", "docs", "-D", f"fxgraph_cache_dir={CACHE}")
    shutil.copytree(here / "docs" / CACHE, there / "docs" / CACHE)
    full = pages("with torch", here, sys.executable)
    kept = contents(there / "docs" / CACHE)
    python = bare(folder / "env")
    without = pages("without", there, python, *offline(), PATH=str(Path(python).parent))
    alike, others = compared(full, without)
    if contents(there / "docs" / CACHE) != kept:
        others.append(Path("the cache"))
    print(f"{len(alike)} files are the same, {sum(name.suffix == '.html' for name in alike)} of them pages")
    print(f"{len(others)} differ that should not", *others, sep="\n  ")
    return 1 if others or not alike else 0


def cloned(folder: Path) -> Path:
    """What is committed, and nothing else."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)  # noqa: S607 - whichever git there is
    return folder


def bare(folder: Path) -> str:
    """The interpreter of a fresh environment."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin/python")
    known = {found.metadata["Name"]: found.version for found in importlib.metadata.distributions()}
    versions = folder / "constraints.txt"
    versions.write_text("".join(f"{name}=={version}\n" for name, version in sorted(known.items())))
    subprocess.run([python, "-m", "pip", "install", "-qq", "-c", str(versions), *NEEDED], check=True)
    look = f"import importlib.util as u; print(*[name for name in {WITHOUT} if u.find_spec(name)])"
    found = subprocess.run([python, "-c", look], capture_output=True, check=True, text=True).stdout.strip()
    if found or shutil.which("dot", path=str(folder / "bin")):
        raise SystemExit(f"the fresh environment has {found or 'dot'}")
    return python


def offline() -> tuple[str, ...]:
    """What takes the network away from a command, if the system allows it."""
    program = shutil.which(OFFLINE[0])
    if not program or subprocess.run([program, *OFFLINE[1:], "true"], capture_output=True, check=False).returncode:
        raise SystemExit("this system lets nobody take the network away, so nothing is proved")
    return program, *OFFLINE[1:]


def pages(name: str, clone: Path, python: str, *before: str, **environment: str) -> Path:
    """Build the handbook of a clone; the folder of the pages."""
    output = clone / "html"
    options = ["-nW", "--keep-going", "-q", "-d", str(clone / "doctrees"), "-D", f"fxgraph_cache_dir={CACHE}"]
    run(f"pages {name}", clone, *before, python, "-m", "sphinx", *options, "docs", str(output), **environment)
    return output


def run(name: str, clone: Path, *command: str, **environment: str) -> None:
    """Run a command with the clone's copy of us, and say what it took."""
    begun = time.monotonic()
    done = subprocess.run(
        command, cwd=clone, env={**os.environ, "PYTHONPATH": str(clone), **environment}, check=False
    ).returncode
    print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    if done:
        raise SystemExit(f"{name}: exit status {done}")


def compared(full: Path, without: Path) -> tuple[list[Path], list[Path]]:
    """The files that are the same in both outputs, and those that are not, by name; not what autodoc fills."""
    ours, theirs = contents(full), contents(without)
    names = sorted(name for name in ours.keys() | theirs.keys() if name.parts[0] not in FILLED)
    alike = [name for name in names if ours.get(name) == theirs.get(name)]
    return alike, [name for name in names if name not in alike]


def contents(folder: Path) -> dict[Path, bytes]:
    """All files of a folder."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


if __name__ == "__main__":
    main()
