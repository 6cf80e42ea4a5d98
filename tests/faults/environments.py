"""Build one small docs project in every environment, and print what each build says.

``python tests/faults/environments.py [--csv FILE] [--torch PYTHON ...]``: status 0 if every build ends well, draws what
it can and says in one typed warning what is missing. ``--torch`` names interpreters with other versions of torch; each
needs the package's dependencies.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODEL = """\
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 2))
"""
PAGE = "Net\n===\n\n.. fxgraph:: net.Net\n   :inputs: 1, 4\n   :timeout: 20\n"
CONF = "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nextensions = ['sphinx_fxgraph']\n"
CONF += "html_theme = 'basic'\nshow_warning_types = True\nfxgraph_cache_dir = 'graphs'\n"
WARNING = re.compile(r"(?:[^\n]*?: )?WARNING: (?P<text>[^\n]+) \[fxgraph\.(?P<type>\w+)\]")


@dataclass(frozen=True)
class Environment:
    """Where a build takes place, and what it should come to."""

    name: str
    words: str = ""
    """A part of the only warning; empty where there should be none."""
    draws: bool = True
    without: tuple[str, ...] = ()
    """Distributions that are not installed."""
    torch: str | None = None
    """The code of a package that is found in place of torch; empty for a folder without any file."""
    dot: str | None = None
    """The code of a program ``dot``; None where there is none on PATH."""
    settings: tuple[str, ...] = ()
    """Configuration values, as ``name=value``."""
    environ: tuple[tuple[str, str | None], ...] = ()
    """Environment variables; None removes one."""
    folder: str = "docs"
    """The folder of the project."""
    is_script: bool = False
    """Whether a script without a main guard runs Sphinx."""
    year: int = 0
    """The date of all files; 0 is today."""
    is_cached: bool = False
    """Whether the cache is filled already."""
    python: str = sys.executable


ENVIRONMENTS = (
    Environment("torch, graphviz-pure"),
    Environment("no torch", "pip install 'sphinx-fxgraph[torch]'", draws=False, without=("torch",)),
    Environment("no torch, committed cache", without=("torch", "graphviz-pure"), is_cached=True),
    Environment(
        "torch whose library does not load",
        "libtorch_cpu.so: cannot open shared object file",
        draws=False,
        torch="raise OSError('libtorch_cpu.so: cannot open shared object file: No such file or directory')",
    ),
    Environment(
        "torch that lacks a package",
        "No module named 'sympy'",
        draws=False,
        torch="raise ModuleNotFoundError(\"No module named 'sympy'\", name='sympy')",
    ),
    Environment("torch half removed", "only a folder of it is here: reinstall it", draws=False, torch=""),
    Environment("torch 1.13", "torch 1.13.1 is too old", draws=False, torch="__version__ = '1.13.1'"),
    Environment(
        "torch that crashes",
        "torch cannot be imported: the process was ended by SIGABRT",
        draws=False,
        torch="import os; os.abort()",
    ),
    Environment(
        "torch that exits",
        "torch cannot be imported: the process ended with status 3",
        draws=False,
        torch="import os; os._exit(3)",
    ),
    Environment("no Graphviz", "pip install graphviz-pure", draws=False, without=("graphviz-pure",)),
    Environment("no Graphviz, committed cache", without=("graphviz-pure",), is_cached=True),
    Environment(
        "fxgraph_dot names nothing",
        "fxgraph_dot = 'no-such-dot' names a program that is not there",
        draws=False,
        settings=("fxgraph_dot=no-such-dot",),
    ),
    Environment(
        "Graphviz that fails",
        "cannot open shared object file",
        without=("graphviz-pure",),
        dot="echo 'dot: libgvc.so.6: cannot open shared object file' >&2; exit 127",
    ),
    Environment("no HOME", environ=(("HOME", None), ("USER", None), ("XDG_CACHE_HOME", None))),
    Environment("HOME that is not there", environ=(("HOME", "/nowhere/at/all"),)),
    Environment("locale C, ASCII", environ=(("LC_ALL", "C"), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0"))),
    Environment("a path of spaces, quotes and accents", folder="a b/d'ö\"c$s %20 #1"),
    Environment("a script without a main guard", is_script=True),
    Environment("files of the year 1980", year=1980),
    Environment("files of the year 2100", year=2100),
)


@dataclass(frozen=True)
class Result:
    """How a build went."""

    environment: Environment
    status: int
    seconds: float
    warnings: tuple[str, ...]
    """The text of each."""
    stray: tuple[str, ...]
    """Lines on standard error that are no warning of ours."""
    drawn: bool
    page: str = field(repr=False)

    @property
    def is_right(self) -> bool:
        """Whether the build did what it should do."""
        expected = self.environment
        said = [text for text in self.warnings if expected.words in text] if expected.words else []
        return (
            (self.status, self.stray, self.drawn) == (0, (), expected.draws)
            and len(self.warnings) == len(said) == bool(expected.words)
            and "net.Net" in self.page
        )


def make_interpreter(folder: Path, without: Sequence[str]) -> str:
    """Make a virtual environment with all that this one has but some distributions, and return its interpreter."""
    venv.create(folder, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    names = {"torch": ("torch", "functorch", "torchgen", "torchvision")}
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        top = re.split(r"[-.]", entry.name)[0].lower().replace("_", "-")
        if not any(top in names.get(name, (name,)) for name in without):
            (site / entry.name).symlink_to(entry)
    return str(folder / "bin/python")


def build(environment: Environment, folder: Path, cache: Path) -> Result:
    """Build the project.

    Args:
        environment: where.
        folder: an empty folder.
        cache: the cache of a build that went well, for environments that have one.
    """
    docs, path = folder / environment.folder, folder / "path"
    docs.mkdir(parents=True)
    path.mkdir()
    (docs / "conf.py").write_text(CONF)
    (docs / "net.py").write_text(MODEL)
    (docs / "index.rst").write_text(PAGE)
    if environment.is_cached:
        shutil.copytree(cache, docs / "graphs")
    if environment.year:
        date = dt.datetime(environment.year, 1, 1, tzinfo=dt.UTC).timestamp()
        for file in docs.iterdir():
            os.utime(file, (date, date))
    places = [str(ROOT)]
    if environment.torch is not None:
        (folder / "shadow/torch").mkdir(parents=True)
        places.insert(0, str(folder / "shadow"))
        if environment.torch:
            (folder / "shadow/torch/__init__.py").write_text(environment.torch)
    if environment.dot is not None:
        (path / "dot").write_text(f"#!/bin/sh\n{environment.dot}\n")
        (path / "dot").chmod(0o755)
    without = list(environment.without)
    if environment.torch == "":  # any other torch would be preferred to a folder without files
        without.append("torch")
    python = make_interpreter(folder / "venv", without) if without else environment.python
    settings = [part for setting in environment.settings for part in ("-D", setting)]
    arguments = ["-b", "html", "--no-color", *settings, str(docs), str(folder / "html")]
    command = ["-m", "sphinx", *arguments]
    if environment.is_script:
        (docs / "build.py").write_text(f"from sphinx.cmd.build import main\nraise SystemExit(main({arguments!r}))\n")
        command = [str(docs / "build.py")]
    surroundings = {"PATH": str(path), "PYTHONPATH": os.pathsep.join(places), "PYTHONWARNINGS": "ignore"}
    variables = {**os.environ, **surroundings, **dict(environment.environ)}
    start = time.monotonic()
    run = subprocess.run(
        [python, *command],
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=600,
        env={name: value for name, value in variables.items() if value is not None},
    )
    seconds = time.monotonic() - start
    lines = [line.replace(str(folder), "…") for line in run.stderr.splitlines() if line.strip()]
    page = folder / "html/index.html"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    return Result(
        environment,
        run.returncode,
        seconds,
        tuple(match["text"] for line in lines if (match := WARNING.fullmatch(line))),
        tuple(line for line in lines if not WARNING.fullmatch(line)),
        "fxg-svg" in text,
        text,
    )


def main() -> int:
    """Build in every environment and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--torch", nargs="*", default=[], metavar="PYTHON")
    options = parser.parse_args()
    environments = list(ENVIRONMENTS)
    if dot := shutil.which("dot"):
        said = subprocess.run([dot, "-V"], capture_output=True, text=True, check=False).stderr
        version = re.search(r"version ([\d.]+)", said)
        name = f"Graphviz {version[1] if version else ''}"
        environments.append(Environment(name, without=("graphviz-pure",), dot=f'exec {dot} "$@"'))
    for python in options.torch:
        asked = [python, "-c", "import torch; print(torch.__version__.partition('+')[0])"]
        found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
        environments.append(Environment(f"torch {found}", python=python))
    lines = [("environment", "seconds", "drawn", "warning", "as expected")]
    with tempfile.TemporaryDirectory(prefix="environments-") as name:
        for number, environment in enumerate(environments):
            result = build(environment, Path(name, str(number)), Path(name, "0/docs/graphs"))
            words = " ".join(result.warnings + result.stray)
            facts = (f"{result.seconds:.0f}", "yes" if result.drawn else "no", words)
            lines.append((environment.name, *facts, "yes" if result.is_right else "no"))
            print(*lines[-1], sep=" | ", flush=True)
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)
    return 0 if all(line[-1] == "yes" for line in lines[1:]) else 1


if __name__ == "__main__":
    sys.exit(main())
