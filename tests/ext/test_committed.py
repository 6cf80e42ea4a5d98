"""A committed cache: filled and checked on the command line, and built from where there is nothing but Sphinx."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import DOCS
from msgspec import structs
from older import older_json

from sphinx_fxgraph.record.header import SCHEMA
from sphinx_fxgraph.record.model import Record

if TYPE_CHECKING:
    from sphinx.testing.util import SphinxTestApp

pytestmark = pytest.mark.torch

NET = """
    from torch import nn

    class Net(nn.Module):
        def __init__(self, width=4):
            super().__init__()
            self.conv = nn.Conv2d(3, width, 3)
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(self.conv(x))
"""

CONF = """
import os
import sys
sys.path.insert(0, os.path.abspath("../src"))
project = "site"
extensions = ["sphinx_fxgraph"]
html_theme = "basic"
show_warning_types = True
fxgraph_cache_dir = "_graphs"
"""

PAGE = """
Site
====

.. fxgraph:: net.Net
   :inputs: 1, 3, 8, 8

.. fxgraph:: net.Net(8)
   :inputs: 1, 3, 8, 8
   :caption: Wide
"""


@dataclass(frozen=True)
class Done:
    status: int
    output: str
    errors: str


@dataclass(frozen=True)
class Site:
    folder: Path

    @property
    def graphs(self) -> Path:
        return self.folder / "docs/_graphs"

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

    def run(self, *command: str, python: str = sys.executable, **environment: str) -> Done:
        """Run a module with an interpreter, as a user does in the docs' folder."""
        run = subprocess.run(
            [python, "-m", *command],
            cwd=self.folder / "docs",
            capture_output=True,
            check=False,
            encoding="utf-8",
            timeout=300,
            env={**os.environ, **environment},
        )
        return Done(run.returncode, run.stdout, run.stderr)

    def fxgraph(self, *arguments: str) -> Done:
        return self.run("sphinx_fxgraph", *arguments)

    def html(self, name: str, *arguments: str, python: str = sys.executable, **environment: str) -> Done:
        target = self.folder / name
        command = ["sphinx", "-b", "html", "-E", "-d", str(target / "doctrees"), "--no-color", *arguments]
        return self.run(*command, ".", str(target / "html"), python=python, **environment)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(self.graphs.iterdir())}


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Done]:
    """A site whose cache was filled by the command line."""
    site = Site(tmp_path_factory.mktemp("warm"))
    site.write("src/net.py", NET)
    site.write("docs/conf.py", CONF)
    site.write("docs/index.rst", PAGE)
    return site, site.fxgraph("warm", ".", "-q")


@pytest.fixture
def site(warm: tuple[Site, Done], tmp_path: Path) -> Site:
    """A copy of it, as a fresh clone is."""
    shutil.copytree(warm[0].folder, tmp_path / "clone")
    return Site(tmp_path / "clone")


# -- without torch, Graphviz and the model


@pytest.fixture(scope="module")
def full(warm: tuple[Site, Done], tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site as it is built where everything is installed."""
    shutil.copytree(warm[0].folder, tmp_path_factory.mktemp("full") / "clone")
    site = Site(tmp_path_factory.getbasetemp() / "full0" / "clone")
    built = site.html("with", "-nW")
    assert (built.status, built.errors) == (0, "")
    return site


@pytest.mark.parametrize("mode", ["auto", "cached"])
def test_a_site_is_built_with_nothing_but_sphinx(full: Site, site: Site, bare: str, mode: str) -> None:
    shutil.rmtree(site.folder / "src")
    kept = site.files()
    built = site.html("without", "-nW", "-D", f"fxgraph_mode={mode}", python=bare, PATH=str(Path(bare).parent))
    assert (built.status, built.errors) == (0, "")
    assert site.files() == kept
    for name in ("index.html", "searchindex.js", "objects.inv"):
        pages = (site.folder / "without/html" / name, full.folder / "with/html" / name)
        # The data of nodes leads to source lines where there is a source; its file is named by what it holds.
        without, complete = (re.sub(rb"-[0-9a-f]{8}(?=\.nodes\.js)", b"", page.read_bytes()) for page in pages)
        assert without == complete
    assert (site.folder / "without/html/index.html").read_text(encoding="utf-8").count("<svg") == 2


def test_what_is_stale_is_shown_and_told_with_what_changed(site: Site, bare: str) -> None:
    site.write("src/net.py", NET + "\n# edited\n")
    built = site.html("out", python=bare, PATH="")
    assert built.errors.count("shown as it was captured before: net.py changed [fxgraph.cache]") == 2
    assert built.errors.count("WARNING") == 2
    warmed = site.run("sphinx_fxgraph", "warm", "-q", ".", python=bare, PATH="")
    assert warmed.status == 1
    assert "nothing is captured here, since torch is not installed here" in warmed.output
    assert "0 of 2 graphs are in _graphs" in warmed.output
    assert (site.folder / "out/html/index.html").read_text(encoding="utf-8").count("<svg") == 2


def test_what_is_missing_is_told_with_the_remedy(site: Site, bare: str) -> None:
    for path in site.graphs.glob("*"):
        path.unlink()
    built = site.html("out", python=bare, PATH="")
    assert built.errors.count("torch is not installed here (pip install 'sphinx-fxgraph[torch]')") == 2
    assert built.errors.count("[fxgraph.cache]") == 2
    assert "net.Net(8)" in (site.folder / "out/html/index.html").read_text(encoding="utf-8")


def test_an_older_format_is_shown_and_told_and_blanks_no_page(site: Site, bare: str) -> None:
    for path in set(site.graphs.glob("*.json")) - set(site.graphs.glob("*.layout.json")):
        record = Record.from_json(path.read_text(encoding="utf-8"))
        path.write_text(older_json(record, SCHEMA - 1), encoding="utf-8")
    built = site.html("out", "-D", "fxgraph_mode=cached", python=bare, PATH="")
    assert built.errors.count(f"written in format {SCHEMA - 1}, today's is {SCHEMA} [fxgraph.cache]") == 2
    assert (site.folder / "out/html/index.html").read_text(encoding="utf-8").count("<svg") == 2


def test_an_interpreter_that_has_torch_captures_for_one_that_has_not(site: Site, bare: str) -> None:
    kept = site.files()
    shutil.rmtree(site.graphs)
    built = site.html("out", "-nW", "-D", f"fxgraph_python={sys.executable}", python=bare)
    assert "capturing graphs" in built.output
    # Without an engine nothing can be laid out; the records are those that this interpreter has written for itself.
    records = [name for name in kept if name.endswith(".json") and "layout" not in name]
    assert {name: site.files()[name] for name in records} == {name: kept[name] for name in records}


# -- warm, check, diff


def test_warm_captures_and_lays_out_and_writes_no_page(warm: tuple[Site, Done]) -> None:
    site, done = warm
    assert (done.status, done.errors) == (0, "")
    assert done.output.startswith("2 of 2 graphs are in ")
    assert len(site.files()) == 6
    assert not list(site.folder.rglob("*.html"))
    assert sorted(path.name for path in (site.folder / "docs").iterdir()) == ["_graphs", "conf.py", "index.rst"]


def test_the_builders_do_the_same_for_those_who_run_sphinx(
    site: Site, make_app: Callable[..., SphinxTestApp], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kept = site.files()
    for builder, said in (
        ("fxgraph-check", "2 of 2 graphs are up to date in "),
        ("fxgraph-warm", "2 of 2 graphs are in "),
    ):
        app = make_app(builder, srcdir=site.folder / "docs", builddir=tmp_path / "build")
        app.build()
        app.cleanup()  # another one follows
        assert (app.statuscode, app.warning.getvalue()) == (0, "")
        assert capsys.readouterr().out.startswith(said)
    assert site.files() == kept


def test_check_tells_how_the_architecture_changed_and_warm_mends_it(site: Site) -> None:
    kept = site.files()
    site.write("src/net.py", NET.replace("width, 3)", "width, 5)"))
    site.write("src/tail.py", NET)
    site.write("docs/index.rst", PAGE.replace("net.Net(8)", "tail.Net(5)"))
    (site.graphs / "README.md").write_text("mine")
    done = site.fxgraph("check", ".", "-q")
    assert done.status == 1
    assert "index.rst:5: WARNING: net.Net: net.py changed\n" in done.errors
    handbook = (DOCS / "usage/committed.rst").read_text(encoding="utf-8")
    example = handbook[handbook.index("   docs/index.rst:4: WARNING") : handbook.index("   1 of 2 graphs")]
    shown = [line.strip().removesuffix(" [fxgraph.cache]") for line in example.partition("WARNING: ")[2].splitlines()]
    assert "\n".join(shown) in "\n".join(line.strip() for line in done.errors.splitlines())
    assert "index.rst:8: WARNING: tail.Net(5): it was never captured [fxgraph.cache]" in done.errors
    assert done.output.count(": no page uses it") == 3
    assert "sphinx-fxgraph warm --prune ." in done.output
    assert "0 of 2 graphs are up to date in " in done.output
    assert "sphinx-fxgraph warm " in done.output
    assert {name: content for name, content in site.files().items() if name != "README.md"} == kept

    warmed = site.fxgraph("warm", ".", "-q", "--prune")
    assert (warmed.status, warmed.errors) == (0, "")
    assert warmed.output.count("which no page uses") == 3
    assert len(site.files()) == 7
    checked = site.fxgraph("check", ".", "-q")
    assert (checked.status, checked.errors) == (0, "")


def test_check_passes_an_edit_that_changed_no_architecture(site: Site) -> None:
    site.write("src/net.py", "# a remark\n" + textwrap.dedent(NET))
    done = site.fxgraph("check", ".", "-q")
    assert (done.status, done.errors) == (0, "")
    assert "the code has changed, the architecture has not: net.Net" in done.output
    assert "2 of 2 graphs are up to date" in done.output


def as_of(site: Site, **versions: str) -> None:
    """Let the records say that they were made with other releases."""
    for path in set(site.graphs.glob("*.json")) - set(site.graphs.glob("*.layout.json")):
        record = Record.from_json(path.read_text(encoding="utf-8"))
        assert record.distributions.keys() >= versions.keys()
        moved = structs.replace(record, distributions={**record.distributions, **versions})
        path.write_text(moved.to_json(), encoding="utf-8")


def test_a_release_that_moved_is_one_line_where_nothing_is_captured(site: Site, bare: str) -> None:
    import torch

    as_of(site, torch="2.0.0")
    now = torch.__version__.partition("+")[0]
    line = f"2 graphs are shown as captured before (torch 2.0.0 → {now}), since"
    built = site.html("out", "-W", "-D", "fxgraph_mode=cached")
    assert (built.status, built.errors) == (0, "")
    assert built.output.count(line) == 1
    for mode in ("auto", "cached"):  # torch is not there at all
        built = site.html(mode, "-W", "-D", f"fxgraph_mode={mode}", python=bare, PATH="")
        assert (built.status, built.errors) == (0, "")
    done = site.fxgraph("check", ".", "-q")
    assert (done.status, done.errors) == (0, "")
    assert "the code has changed, the architecture has not" in done.output
    ignoring = site.html("ignoring", "-W", "-D", "fxgraph_mode=cached", "-D", "fxgraph_ignore_packages=tor*")
    assert (ignoring.status, line in ignoring.output) == (0, False)


def test_check_tells_of_a_drawing_that_is_missing_and_shards_are_parts_that_together_are_all(site: Site) -> None:
    everything = set(site.files())
    for path in site.graphs.glob("*.layout.json"):
        path.unlink()
    done = site.fxgraph("check", ".", "-q")
    assert done.status == 1
    assert done.errors.count("its drawing is not in the cache") == 2
    for part, drawn in ("1/2", 1), ("2/2", 2):
        warmed = site.fxgraph("warm", ".", "-q", "--shard", part)
        assert (warmed.status, warmed.errors) == (0, "")
        assert warmed.output.startswith("1 of 1 graphs are in ")
        assert len(list(site.graphs.glob("*.layout.json"))) == drawn
    assert set(site.files()) == everything


@pytest.mark.parametrize(
    ("arguments", "conf", "told"),
    [
        (["."], CONF.replace('fxgraph_cache_dir = "_graphs"', ""), "set fxgraph_cache_dir in conf.py"),
        ([".", "--shard", "3/2"], CONF, "write 3/16 for the third of sixteen"),
        (["../src"], CONF, "../src has no conf.py; name the folder of the docs"),
    ],
)
def test_a_wrong_command_is_told_in_words(site: Site, arguments: list[str], conf: str, told: str) -> None:
    site.write("docs/conf.py", conf)
    done = site.fxgraph("warm", "-q", *arguments)
    assert done.status == 2
    assert told in done.errors
    assert "Traceback" not in done.errors


def test_a_capture_that_fails_fails_warm_unless_it_shall(site: Site) -> None:
    site.write(
        "docs/index.rst", PAGE.replace("net.Net(8)", "net.Net(-8)") + "\n.. fxgraph:: net.Net(-9)\n   :expect: error\n"
    )
    done = site.fxgraph("warm", ".", "-q")
    assert done.status == 1
    assert done.errors.count("WARNING") == 1
    assert "net.Net(-8): The model cannot be built" in done.errors
    assert "2 of 3 graphs are in _graphs; 1 could not be captured" in done.output
    checked = site.fxgraph("check", ".", "-q")  # of a cache that is up to date, but of which a build would warn
    assert checked.status == 1
    assert checked.errors == done.errors
    assert "3 of 3 graphs are up to date in _graphs" in checked.output


def test_diff_of_two_targets_and_of_a_record_that_was_kept(site: Site) -> None:
    (kept,) = [
        name for name in site.files() if '"net.Net(8)"' in (site.graphs / name).read_text() and "layout" not in name
    ]
    shutil.copy(site.graphs / kept, site.folder / "docs/old.json")
    environment = {"PYTHONPATH": os.pathsep.join(["../src", *filter(None, [os.environ.get("PYTHONPATH")])])}
    done = site.run("sphinx_fxgraph", "diff", "old.json", "net.Net", **environment)
    assert done.status == 0, done.errors
    assert "~ conv  Conv2d  8 · 1×8×6×6 f32 → 4 · 1×4×6×6 f32  −112 parameters" in done.output
    same = site.run("sphinx_fxgraph", "diff", "old.json", "old.json")
    assert (same.status, same.output.splitlines()[1:]) == (0, ["no difference"]), same.errors
    for file, told in ("conf.py", "conf.py is no record"), ("none.json", "there is no file none.json"):
        wrong = site.run("sphinx_fxgraph", "diff", file, "net.Net")
        assert wrong.status == 2
        assert told in wrong.errors


def test_diff_with_a_revision_reads_what_was_committed(site: Site) -> None:
    for command in (["init", "-q"], ["add", "docs/_graphs"], ["commit", "-qm", "1"], ["tag", "v1"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=site.folder, check=True)
    done = site.fxgraph("diff", "v1:net.Net", "v1:net.Net(8)")
    assert done.status == 0, done.errors
    assert "  parameters: 112 → 224" in done.output
    wrong = site.fxgraph("diff", "v1:net.Nit", "v1:net.Net")
    assert (wrong.status, wrong.errors) == (2, "sphinx-fxgraph diff: error: v1 has no record 'net.Nit'\n")
