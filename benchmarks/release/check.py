"""Builds the release and tries it: wheel and sdist, their contents, and installs into empty environments.

    python benchmarks/release/check.py --tools PYTHON --python PYTHON ... --torch PYTHON

``--tools`` has ``build`` and ``twine``. An empty environment is made of each ``--python``, with the wheel and without
torch: there the commands answer and the committed example builds. ``--torch`` has torch: the wheel is installed there,
and a model is drawn. Without these options, this interpreter is used. The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
IN_WHEEL = (
    "sphinx_fxgraph/py.typed",
    "sphinx_fxgraph/static/fxgraph.css",
    "sphinx_fxgraph/static/fxgraph.js",
    "licenses/LICENSE",
    "entry_points.txt",
)
"""Ends of paths that the wheel must have; the catalogues are compared with the checkout."""
IN_SDIST = ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "tox.ini", "docs/conf.py", "tests/conftest.py")
TRANSFORMER = "torch.nn.Transformer(d_model=64, nhead=4, num_encoder_layers=2, num_decoder_layers=2)"


def run(*command: str | Path, folder: Path | None = None) -> str:
    """Run a command with nothing of this checkout on its path, and return what it printed.

    Raises:
        SystemExit: it failed; the message has its output.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PIP_CONSTRAINT")}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, check=False, encoding="utf-8"
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(python: str, folder: Path) -> tuple[Path, Path]:
    """Return the wheel and the sdist, built from a copy of what git has and checked by twine."""
    source = folder / "source"
    source.mkdir()
    files = run("git", "ls-files", "-z", folder=ROOT).split("\0")
    for name in filter(None, files):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    run(python, "-m", "build", "--outdir", folder / "dist", source)
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    run(python, "-m", "twine", "check", "--strict", wheel, sdist)
    return wheel, sdist


def missing(wheel: Path, sdist: Path) -> list[str]:
    """Return what a package lacks."""
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = archive.namelist()
    with tarfile.open(sdist) as archive:
        in_sdist = archive.getnames()
    tracked = run("git", "ls-files", "sphinx_fxgraph", folder=ROOT).split()
    found = [f"wheel: {end}" for end in IN_WHEEL if not _has(in_wheel, end)]
    found += [f"wheel: {name}" for name in tracked if name not in in_wheel]
    found += [f"sdist: {name}" for name in (*IN_SDIST, *tracked) if not _has(in_sdist, f"/{name}")]
    return found


def _has(names: Iterable[str], end: str) -> bool:
    return any(name.endswith(end) for name in names)


def environment(python: str, folder: Path, wheel: Path) -> Path:
    """Return the interpreter of a new environment that has the wheel and what it requires."""
    run(python, "-m", "venv", folder)
    made = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(made, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel)
    return made


def try_without_torch(python: Path, folder: Path) -> str:
    """Run the commands and build the committed example; return what was done."""
    run(python, "-c", "import importlib.util as u; raise SystemExit(u.find_spec('torch') is not None)")
    command = python.with_name("sphinx-fxgraph")
    assert "draw" in run(command, "--help")
    example = folder / "tinyzoo"
    shutil.copytree(ROOT / "docs/examples/tinyzoo", example, ignore=shutil.ignore_patterns("models", "_build"))
    run(python, "-m", "sphinx", "-nW", "-q", "docs", "docs/_build/html", folder=example)
    pages = sorted((example / "docs/_build/html/models").glob("*.html"))
    drawn = [page.stem for page in pages if "fxg-svg" in page.read_text(encoding="utf-8")]
    assert len(drawn) == 5, drawn
    return f"{len(drawn)} pages from the committed cache"


def try_with_torch(python: Path, folder: Path) -> str:
    """Draw a model; return what was done."""
    command = python.with_name("sphinx-fxgraph")
    picture = folder / "transformer.svg"
    run(command, "draw", TRANSFORMER, "--inputs", "f32[9, 1, 64], f32[7, 1, 64]", "-o", picture)
    assert "<svg" in picture.read_text(encoding="utf-8")
    return f"torch.nn.Transformer drawn, {picture.stat().st_size / 1000:.0f} kB"


def main() -> int:
    """Build, look and try."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default=sys.executable, help="an interpreter with build and twine")
    parser.add_argument("--python", action="append", help="an interpreter to make an empty environment of")
    parser.add_argument("--torch", help="the interpreter of an environment with torch; the wheel is installed there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        folder = Path(name)
        wheel, sdist = build(arguments.tools, folder)
        print(f"{wheel.name} {wheel.stat().st_size / 1000:,.0f} kB, {sdist.name} {sdist.stat().st_size / 1000:,.0f} kB")
        if lacking := missing(wheel, sdist):
            print("missing:", *lacking, sep="\n  ")
            return 1
        for number, python in enumerate(arguments.python or [sys.executable]):
            place = folder / str(number)
            place.mkdir()
            made = environment(python, place / "environment", wheel)
            version = run(made, "-c", "import platform; print(platform.python_version())").strip()
            print(f"Python {version} without torch: {try_without_torch(made, place)}", flush=True)
        if arguments.torch:
            run(arguments.torch, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", wheel)
            run(arguments.torch, "-m", "pip", "install", "-q", wheel)
            version = run(arguments.torch, "-c", "import torch; print(torch.__version__)").strip()
            print(f"torch {version}: {try_with_torch(Path(arguments.torch), folder)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
