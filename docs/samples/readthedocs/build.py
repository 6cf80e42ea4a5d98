"""Build a sample as Read the Docs does: a fresh environment, its requirements, no network, its own command.

    python docs/samples/readthedocs/build.py committed
    python docs/samples/readthedocs/build.py torch-cpu

The environment is made with pip from the index that pip is set to. For ``committed`` the cache is filled first by this
interpreter, which needs torch, as the project's people do before they commit. ``--python`` builds with an environment
that is there already.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import yaml

HERE = Path(__file__).parent
PROJECT = HERE.parent / "project"
CHECKOUT = HERE.parents[2]
SAMPLES = ("committed", "torch-cpu")


def prepared(sample: str, folder: Path) -> Path:
    """The project of the samples with the configuration of one of them, as a clone has it."""
    clone = folder / "clone"
    shutil.copytree(PROJECT, clone, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(HERE / sample, clone, dirs_exist_ok=True)
    if sample == "committed":
        subprocess.run([sys.executable, "-m", "sphinx_fxgraph", "warm", "-q", "docs"], cwd=clone, check=True)
        assert len(list((clone / "docs/graphs").iterdir())) == 3
    return clone


def environment(sample: str, clone: Path, folder: Path) -> str:
    """The interpreter of a fresh environment with the requirements of the sample; sphinx-fxgraph is this checkout's."""
    venv.create(folder / "environment", with_pip=True)
    python = str(folder / "environment/bin/python")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    wanted = [
        str(CHECKOUT) if line == "sphinx-fxgraph" else line
        for line in (clone / "docs/requirements.txt").read_text(encoding="utf-8").split()
    ]
    if sample == "torch-cpu":  # where no index of CPU wheels is named, that of pip
        index = os.environ.get("TORCH_CPU_INDEX")
        subprocess.run([*pip, *(["--index-url", index] if index else []), "torch"], check=True)
    subprocess.run([*pip, *wanted], check=True)
    return python


def built(clone: Path, python: str, *, without: str = "") -> Path:
    """The pages, made by the command of Read the Docs: nothing else on the path; where the system allows, no network.

    Args:
        clone: what is built.
        python: of the environment.
        without: a package that must not be there.
    """
    settings = yaml.safe_load((clone / ".readthedocs.yaml").read_text(encoding="utf-8"))
    conf = clone / settings["sphinx"]["configuration"]
    command = [python, "-m", "sphinx", "-T", "-b", "html", "-d", "_build/doctrees", "-D", "language=en"]
    command += ["-W", "--keep-going"] if settings["sphinx"]["fail_on_warning"] else []
    if without:
        code = f"import importlib.util as u, sys; sys.exit(u.find_spec({without!r}) is not None)"
        subprocess.run([python, "-c", code], check=True)
    offline = ["unshare", "--user", "--map-root-user", "--net"]
    if not shutil.which(offline[0]) or subprocess.run([*offline, "true"], capture_output=True, check=False).returncode:
        print("the network cannot be taken away here")
        offline = []
    output = clone / "_readthedocs/html"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PATH"] = str(Path(python).parent)
    command = [shutil.which(offline[0]) or "", *offline[1:], *command] if offline else command
    subprocess.run([*command, ".", str(output)], cwd=conf.parent, env=environment, check=True)
    assert "<svg" in (output / "index.html").read_text(encoding="utf-8")
    return output


def main() -> None:
    """Build the sample that is named."""
    parser = argparse.ArgumentParser(description="Build a sample as Read the Docs does.")
    parser.add_argument("sample", choices=SAMPLES)
    parser.add_argument("--python", help="an environment that is there already, instead of a fresh one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="readthedocs-") as name:
        folder = Path(name)
        clone = prepared(options.sample, folder)
        python = options.python or environment(options.sample, clone, folder)
        built(clone, python, without="torch" if options.sample == "committed" else "")
    print(f"{options.sample}: built without a warning")


if __name__ == "__main__":
    main()
