"""What the tests share: a docs project in a temporary folder, built by a real Sphinx process, and a browser."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest_plugins = ("sphinx.testing.fixtures",)

WITHOUT = ("torch", "graphviz", "graphviz_pure", "pygraphviz", "pydot")
"""What a docs build needs none of, where all is in the cache."""

DOCS = Path(__file__).parent.parent / "docs"
"""The project's own docs; `zoo`, the gallery's models, is imported from here."""

CHROMIUM_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


NEED_ALL = "FXGRAPH_TESTS_NEED_ALL"
"""Environment variable: where it is set, a program that is not installed makes a test fail."""


def needs(*programs: str) -> str:
    """Return the path of the first of these programs that is installed, and skip the test if none of them is.

    `.ci/run` installs all of them and sets `NEED_ALL`: there, the test fails.
    """
    for program in programs:
        if path := shutil.which(program):
            return path
    reason = f"{programs[0]} is not installed"
    if os.environ.get(NEED_ALL):
        pytest.fail(f"{reason}, and {NEED_ALL} is set", pytrace=False)
    pytest.skip(reason)


@dataclass(frozen=True)
class Build:
    """What one run of sphinx-build left behind."""

    status: int
    output: str
    """Standard output: the progress lines."""
    warnings: str
    """Standard error, without colours."""
    folder: Path

    def page(self, name: str = "index.html") -> str:
        """The text of a written file."""
        return (self.folder / name).read_text(encoding="utf-8")


class Project:
    """A docs project: files under `source`, built into `build/<builder>`, doctrees in `build/doctrees`."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "docs"
        self.target = folder / "build"
        self.source.mkdir()
        self.configure()

    def configure(self, text: str = "") -> None:
        """Write conf.py: the extension and MyST, this folder and the zoo importable, then `text`."""
        head = (
            "import sys\n"
            f"sys.path[:0] = [{str(self.source)!r}, {str(DOCS)!r}]\n"
            "project = 'project'\n"
            "extensions = ['sphinx_fxgraph', 'myst_parser']\n"
            "html_theme = 'basic'\n"
        )
        self.write("conf.py", head + text)

    def write(self, name: str, text: str) -> Path:
        """Write a source file; a file that already says so keeps its time."""
        path = self.source / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return path

    def build(self, builder: str = "html", *arguments: str, **environment: str) -> Build:
        """Run sphinx-build in a process of its own, as a user does."""
        folder = self.target / builder
        command = [sys.executable, "-m", "sphinx", "-b", builder, "-d", str(self.target / "doctrees"), "--no-color"]
        run = subprocess.run(
            [*command, *arguments, str(self.source), str(folder)],
            capture_output=True,
            check=False,
            cwd=self.source,
            encoding="utf-8",
            env={**os.environ, **environment},
        )
        return Build(run.returncode, run.stdout, run.stderr, folder)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api")
    executable = needs("chromium", "google-chrome")
    with playwright.sync_playwright() as driver:
        instance = driver.chromium.launch(executable_path=executable, args=list(CHROMIUM_FLAGS))
        yield instance
        instance.close()


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that has what is installed here, but neither torch nor anything of Graphviz."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder / "env", symlinks=True)
    (site,) = (folder / "env").glob("[Ll]ib/**/site-packages")
    for name in _needed("sphinx") | _needed("msgspec"):
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            top = file.parts[0]
            here = site / top
            if top not in ("..", "__pycache__") and not here.exists():
                here.symlink_to(Path(str(distribution.locate_file(top))))
    (site / "ours.pth").write_text(str(Path(__file__).parents[1]))
    python = folder / "env" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    look = f"import importlib.util as u; print([n for n in {WITHOUT} if u.find_spec(n)])"
    found = subprocess.run([str(python), "-c", look], capture_output=True, check=True, encoding="utf-8")
    assert found.stdout.strip() == "[]"
    return str(python)


def _needed(name: str) -> set[str]:
    """A distribution and what it requires."""
    found: set[str] = set()
    todo = [name]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            for requirement in importlib.metadata.requires(name) or ():
                if "extra ==" not in requirement:
                    needed = re.match(r"[\w.-]+", requirement)
                    assert needed is not None
                    try:
                        importlib.metadata.distribution(needed[0])
                    except importlib.metadata.PackageNotFoundError:
                        continue  # for another Python or platform
                    todo.append(needed[0])
    return found
