"""Builds this handbook where neither torch, nor a model's package, nor Graphviz is, and compares it with a full build.

    python benchmarks/committed/prove.py [--cache DIR] [--folder DIR]

A fresh environment gets Sphinx, the theme and the extensions in the versions that are here, and nothing more. With
``--cache`` the full build starts from a folder that has records already. Pages must be the same byte for byte, but for
those that autodoc fills: these need what they document.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = ("sphinx", "furo", "myst-parser", "msgspec")
WITHOUT = ("torch", "graphviz", "graphviz_pure", "pygraphviz", "monai", "transformers", "torchvision")


def main() -> None:
    """Build twice, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--folder", type=Path, help="kept afterwards")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="committed-") as temporary:
        prove(options.folder or Path(temporary), options.cache)


def prove(folder: Path, cache: Path | None) -> None:
    """Say how many pages are the same; end with 1 if one is not that should be."""
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("_build"))
    shutil.copy(ROOT / "CHANGELOG.md", folder)  # a page includes it
    if cache:
        shutil.copytree(cache, folder / "cache")
    full = build(folder, "full", sys.executable, dict(os.environ))
    python = bare(folder / "env")
    empty = build(
        folder, "bare", python, {"PATH": str(Path(python).parent), "PYTHONPATH": str(ROOT)}, "-D", "fxgraph_mode=cached"
    )
    filled = {path.with_suffix("").relative_to(folder / "docs") for path in pages_of_autodoc(folder / "docs")}
    filled.add(Path("genindex"))
    same, others = 0, []
    for page in sorted((folder / "full").rglob("*.html")):
        name = page.relative_to(folder / "full")
        if page.read_bytes() == (folder / "bare" / name).read_bytes():
            same += 1
        elif name.with_suffix("") not in filled:
            others.append(name)
    ours = [line for line in empty.splitlines() if "[fxgraph" in line or "svg" in line]
    print(
        f"{same} pages are the same, {len(filled)} are filled by autodoc, {len(others)} others differ:",
        *others,
    )
    print(f"warnings of ours without torch: {len(ours)}, with it: {full.count('[fxgraph')}")
    for line in ours:
        print(line)
    raise SystemExit(1 if others or (ours and not cache) else 0)


def pages_of_autodoc(docs: Path) -> list[Path]:
    """The sources with an autodoc directive."""
    return [path for path in docs.rglob("*.rst") if re.search(r"\.\. auto\w+::", path.read_text(encoding="utf-8"))]


def bare(folder: Path) -> str:
    """The interpreter of a fresh environment."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin/python")
    wanted = [f"{name}=={importlib.metadata.version(name)}" for name in NEEDED]
    subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
    look = f"import importlib.util as u; print([name for name in {WITHOUT} if u.find_spec(name)])"
    found = subprocess.run([python, "-c", look], capture_output=True, check=True, text=True).stdout.strip()
    if found != "[]" or shutil.which("dot", path=str(folder / "bin")):
        raise SystemExit(f"the fresh environment has {found}")
    return python


def build(folder: Path, name: str, python: str, environment: dict[str, str], *settings: str) -> str:
    """Build the handbook; what it warns of."""
    command = [python, "-m", "sphinx", "-n", "--no-color", "-d", str(folder / f"{name}-doctrees")]
    options = ["-D", "fxgraph_cache_dir=../cache", "-D", "show_warning_types=1", *settings]
    run = subprocess.run(
        [*command, *options, str(folder / "docs"), str(folder / name)],
        capture_output=True,
        check=False,
        env=environment,
        text=True,
    )
    if run.returncode:
        raise SystemExit(run.stdout + run.stderr)
    return run.stderr


if __name__ == "__main__":
    main()
