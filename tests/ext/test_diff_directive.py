"""The directive ``fxgraph-diff``: two models in one drawing and one table, in every kind of output."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bs4 import BeautifulSoup

if TYPE_CHECKING:
    from sphinx.testing.util import SphinxTestApp

pytestmark = pytest.mark.torch

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, kernel=3, gate=True, drop=False):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, kernel, padding=kernel // 2)
        self.blocks = nn.Sequential(nn.ReLU(), *([nn.Dropout()] if drop else []))
        self.gate = gate

    def forward(self, x):
        x = self.blocks(self.conv(x))
        return x * torch.sigmoid(x) if self.gate else x

class Late(Net):
    def forward(self, x):
        return torch.relu(self.conv(x))

class Early(Net):
    def forward(self, x):
        return self.conv(torch.relu(x))
"""

CONF = """
import sys
sys.path.insert(0, {folder!r})
project = "site"
extensions = ["sphinx_fxgraph", "myst_parser"]
html_theme = "basic"
show_warning_types = True
fxgraph_cache_dir = "graphs"
fxgraph_defaults = {{"nets.*": {{"inputs": "1, 3, 8, 8"}}}}
"""

PAGE = """
Site
====

.. fxgraph-diff:: nets.Net(5, gate=False, drop=True)
   :against: nets.Net
   :caption: What the *second* version changed
   :name: second

:ref:`second`

.. toctree::

   other
   moved
   plain
   one
   two
   three
"""

OTHER = """
# Other

```{fxgraph-diff} nets.Net
:against: nets.Net
:against-inputs: 1, 3, 16, 16
:table: none
```
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diff") / "docs"
    folder.mkdir()
    (folder / "nets.py").write_text(NET)
    (folder / "conf.py").write_text(CONF.format(folder=str(folder)))
    (folder / "index.rst").write_text(PAGE)
    (folder / "other.md").write_text(OTHER)
    (folder / "moved.rst").write_text("Moved\n=====\n\n.. fxgraph-diff:: nets.Late\n   :against: nets.Early\n")
    for name in ("plain", "one", "two", "three"):
        (folder / f"{name}.rst").write_text(f"{name.title()}\n=====\n")
    return folder


Builder = Callable[[str], "SphinxTestApp"]


@pytest.fixture
def build(site: Path, make_app: Callable[..., SphinxTestApp]) -> Builder:
    """A build of the site; the first one captures."""

    def run(builder: str) -> SphinxTestApp:
        app = make_app(builder, srcdir=site, builddir=site.parent / "build")
        app.build()
        app.cleanup()  # another one may follow in the same test
        return app

    return run


def page(app: SphinxTestApp, name: str = "index.html") -> BeautifulSoup:
    return BeautifulSoup((app.outdir / name).read_text(encoding="utf-8"), "lxml")


def test_the_drawing_shows_both_and_says_what_differs_in_sign_and_class(build: Builder) -> None:
    app = build("html")
    assert app.warning.getvalue() == ""
    figure = page(app).select_one("figure#second")
    assert figure
    found = {
        kind: sorted(str(box["data-path"]) for box in figure.select(f"svg .fxg-{kind}[data-path]"))
        for kind in ("added", "removed", "changed")
    }
    assert found == {"added": ["blocks.1"], "removed": ["mul", "sigmoid"], "changed": ["blocks", "conv"]}
    text = figure.select_one("svg").get_text(" ")  # type: ignore[union-attr]
    for said in ("~ Conv2d", "3×3 → 5×5", "+ Dropout", "− sigmoid", "~ Sequential"):
        assert said in text
    facts = figure.select_one(".fxg-facts")
    assert facts
    assert facts.get_text().startswith("+ 1 added · − 2 removed · ~ 1 changed · operators")
    assert "parameters 224 → 608" in facts.get_text()


def test_the_table_has_a_row_a_change_linked_with_the_drawing(build: Builder) -> None:
    soup = page(build("html"))
    rows = [[cell.get_text() for cell in row.select("td")] for row in soup.select("table.fxg-changes tbody tr")]
    assert rows[0] == ["~ changed", "conv", "Conv2d", "3×3", "5×5", "+384"]
    assert [row[0] for row in rows] == ["~ changed", "+ added", "− removed", "− removed"]
    assert len(soup.select("svg a")) == 4
    for link in soup.select("table.fxg-changes a, svg a"):
        assert soup.find(id=str(link["href"]).removeprefix("#")), link
    assert "Changes (4 rows)" in soup.get_text()


def test_what_is_gone_is_linked_with_itself_where_the_new_model_uses_its_name(build: Builder) -> None:
    soup = page(build("html"), "moved.html")
    for row in soup.select("table.fxg-changes tbody tr"):
        kind = str(row.select_one("td").get_text()).split()[1]  # type: ignore[union-attr]
        assert row.get_text().count("relu")
        box = soup.find(id=str(row.select_one("a")["href"]).removeprefix("#"))  # type: ignore[index]
        assert box
        assert f"fxg-{kind}" in box["class"]
    assert [row["class"][0] for row in soup.select("table.fxg-changes tbody tr")] == ["fxg-removed", "fxg-added"]


def test_pages_read_and_written_in_parallel_are_the_same(build: Builder, site: Path, tmp_path: Path) -> None:
    serial = build("html").outdir
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "-j", "2", "-d", str(tmp_path / "doctrees")]
    done = subprocess.run(
        [*command, str(site), str(tmp_path / "html")], capture_output=True, check=False, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"reading sources... .*\w \.\. \w", done.stdout), "several pages are one process's"
    assert "capturing" not in done.stdout
    for name in ("index.html", "other.html", "moved.html"):
        assert (tmp_path / "html" / name).read_bytes() == (serial / name).read_bytes()


def test_one_model_with_two_inputs_differs_in_shapes_only(build: Builder) -> None:
    soup = page(build("html"), "other.html")
    assert not soup.select(".fxg-added, .fxg-removed, table.fxg-changes")
    facts = soup.select_one(".fxg-facts")
    assert facts
    assert "output f32[1, 8, 16, 16] → f32[1, 8, 8, 8]" in facts.get_text()
    assert "parameters" not in facts.get_text()


def test_only_pages_with_a_difference_load_its_style(build: Builder) -> None:
    app = build("html")
    links = {name: "fxgraph-diff.css" in str(page(app, name)) for name in ("index.html", "other.html", "plain.html")}
    assert links == {"index.html": True, "other.html": True, "plain.html": False}
    assert (app.outdir / "_static/fxgraph-diff.css").is_file()


@pytest.mark.parametrize(("builder", "file"), [("text", "index.txt"), ("latex", "site.tex"), ("epub", "index.xhtml")])
def test_every_format_tells_the_changes(build: Builder, builder: str, file: str) -> None:
    build("html")
    app = build(builder)
    assert not [line for line in app.warning.getvalue().splitlines() if "fxgraph" in line]
    told = (app.outdir / file).read_text(encoding="utf-8")
    assert "+ added" in told
    assert "Dropout" in told
    assert "capturing" not in app.status.getvalue()


def test_a_warm_build_writes_no_page_and_an_edit_those_that_show_it(build: Builder, site: Path) -> None:
    build("html")
    pages = [site.parent / "build/html" / f"{name}.html" for name in ("index", "other", "plain")]
    written = [path.stat().st_mtime_ns for path in pages]
    build("html")
    assert [path.stat().st_mtime_ns for path in pages] == written
    (site / "nets.py").write_text(NET.replace("nn.ReLU()", "nn.GELU()"))
    try:
        edited = build("html")
        assert "GELU" in (edited.outdir / "index.html").read_text(encoding="utf-8")
    finally:
        (site / "nets.py").write_text(NET)
    assert "GELU" not in (build("html").outdir / "index.html").read_text(encoding="utf-8")


def test_against_what_was_committed_at_a_revision(
    site: Path, make_app: Callable[..., SphinxTestApp], tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("nets.py", "plain.rst"):
        (docs / name).write_bytes((site / name).read_bytes())
    (docs / "conf.py").write_text(CONF.format(folder=str(docs)))
    (docs / "index.rst").write_text("Site\n====\n\n.. fxgraph:: nets.Net\n\n.. toctree::\n\n   plain\n")

    def build() -> SphinxTestApp:
        app = make_app("html", srcdir=docs, builddir=tmp_path / "build")
        app.build()
        app.cleanup()
        return app

    def git(*command: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=docs, check=True)

    build()
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    git("tag", "v1")
    (record,) = [path for path in (docs / "graphs").glob("*.json") if "layout" not in path.name]
    (docs / "old.json").write_bytes(record.read_bytes())
    (docs / "nets.py").write_text(NET.replace("kernel=3", "kernel=5"))
    (docs / "index.rst").write_text(
        "Site\n====\n\n.. fxgraph-diff:: nets.Net\n   :against: v1:nets.Net\n\n"
        ".. fxgraph-diff:: nets.Net\n   :against: old.json\n\n.. toctree::\n\n   plain\n"
    )
    app = build()
    assert app.warning.getvalue() == ""
    assert (app.outdir / "index.html").read_text(encoding="utf-8").count("3×3 → 5×5") >= 2
    # A clone without the revision has its record in the cache.
    git("tag", "-d", "v1")
    (docs / "index.rst").write_text((docs / "index.rst").read_text() + "\nMore.\n")
    again = build()
    assert again.warning.getvalue() == ""
    assert (again.outdir / "index.html").read_text(encoding="utf-8").count("3×3 → 5×5") >= 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("", "against: which model, file or revision?"),
        (":against: none.json", "against: there is no file none.json"),
        (":against: nets.Net(", "never closed"),
        (":against: nets.Net\n   :expect: error", "a difference claims nothing"),
    ],
)
def test_what_is_wrong_is_told_at_the_directive(
    site: Path, make_app: Callable[..., SphinxTestApp], tmp_path: Path, options: str, told: str
) -> None:
    (tmp_path / "conf.py").write_text(CONF.format(folder=str(site)) + "fxgraph_mode = 'off'\n")
    (tmp_path / "index.rst").write_text(f"Site\n====\n\n.. fxgraph-diff:: nets.Net\n   {options}\n")
    app = make_app("html", srcdir=tmp_path, builddir=tmp_path / "build")
    app.build()
    assert told in app.warning.getvalue()
    assert "[fxgraph.option]" in app.warning.getvalue()
    assert "index.rst:4" in app.warning.getvalue()
