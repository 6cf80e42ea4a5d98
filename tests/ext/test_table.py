"""Tables of models, and of the stages of several side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bs4 import BeautifulSoup, Tag
from conftest import Build, Project

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.torch

NETS = """\
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + self.fc(x).relu()

class Net(nn.Module):
    def __init__(self, depth=2, width=8, head=False):
        super().__init__()
        self.stem = nn.Linear(4, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, 2) if head else nn.Identity()

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))

class Broken(nn.Module):
    def forward(self, x):
        raise ValueError("not today")
"""

GRAPHS = """\
Graphs
======

.. fxgraph:: nets.Net(2)
   :name: net 2

.. fxgraph:: nets.Net(10)
   :name: net 10

.. fxgraph:: nets.Broken
   :name: broken
   :expect: error
"""

TABLES = """\
Tables
======

.. fxgraph-table:: net *, broken
   :caption: All of them
   :name: models

.. fxgraph-table::
   :columns: name, trainable, size, ops

   nets.Net(2)
   The wide one <nets.Net(2, width=16)>
   net 3

.. fxgraph-table:: net 2, deep <net 10>, nets.Net(3, head=True)
   :compare:
   :class: wide

:numref:`models`
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Build]:
    project = Project(tmp_path_factory.mktemp("tables"))
    project.configure("numfig = True\nfxgraph_defaults = {'nets.*': {'inputs': '1, 4'}}\n")
    project.write("nets.py", NETS)
    project.write("index.rst", "Index\n=====\n\n.. toctree::\n\n   tables\n   graphs\n")
    project.write("graphs.rst", GRAPHS)
    project.write("tables.rst", TABLES)
    return project, project.build("html", "-j2")


@pytest.fixture(scope="module")
def tables(site: tuple[Project, Build]) -> list[Tag]:
    return BeautifulSoup(site[1].page("tables.html"), "lxml").select("table.fxg-table")


def rows(table: Tag) -> list[list[str]]:
    return [[cell.get_text(" ", strip=True) for cell in row.select("th, td")] for row in table.select("tr")]


def test_a_row_for_each_graph_that_a_pattern_fits(tables: list[Tag]) -> None:
    assert rows(tables[0]) == [
        ["name", "parameters", "MACs", "activations", "input", "output", "depth", "verdict"],
        ["net 2", "184", "160 MACs", "256 B", "1×4", "1×8", "3", "every input"],
        ["net 10", "760", "672 MACs", "1.02 kB", "1×4", "1×8", "11", "every input"],
        ["broken", "0", "", "", "1×4", "", "", "The model cannot be run"],
    ]
    links = [link["href"] for link in tables[0].select("a.reference.internal")]
    assert links == ["graphs.html#net-2", "graphs.html#net-10", "graphs.html#broken"]


def test_a_row_for_a_target_leads_to_its_graph_if_there_is_one(tables: list[Tag]) -> None:
    assert rows(tables[1]) == [
        ["name", "trainable", "size", "ops"],
        ["Net", "184", "736 B", "10"],
        ["The wide one", "624", "2.50 kB", "10"],
    ]
    assert [link["href"] for link in tables[1].select("a.reference.internal")] == ["graphs.html#net-2"]


def test_stages_side_by_side(tables: list[Tag]) -> None:
    assert rows(tables[2]) == [
        ["", "net 2", "deep", "Net"],
        ["stem", "Linear 4→8 1×8", "Linear 4→8 1×8", "Linear 4→8 1×8"],
        ["blocks", "Block ×2 1×8", "Block ×10 1×8", "Block ×3 1×8"],
        ["head", "Identity 1×8", "Identity 1×8", "Linear 8→2 1×2"],
        ["parameters", "184", "760", "274"],
        ["MACs", "160 MACs", "672 MACs", "240 MACs"],
        ["depth", "3", "11", "5"],
    ]
    assert "wide" in tables[2]["class"]


def test_unknown_names_are_told_and_failures_only_where_they_are_not_expected(site: tuple[Project, Build]) -> None:
    project, build = site
    (warning,) = build.warnings.splitlines()
    assert "/tables.rst:8: WARNING: undefined graph: net 3" in warning  # Sphinx 8 adds the type, [ref.model]
    assert "Table 1" in build.page("tables.html")
    plain = project.build("text").page("tables.txt")
    assert "| net 10 | 760        | 672 MACs | 1.02 kB     |" in plain


def test_a_page_without_a_table_has_no_script_for_it(site: tuple[Project, Build]) -> None:
    assert "fxgraph-table.js" in site[1].page("tables.html")
    assert "fxgraph-table" not in site[1].page("graphs.html")


@pytest.mark.browser
def test_a_click_sorts(site: tuple[Project, Build], browser: Browser) -> None:
    page = browser.new_page()
    page.goto((site[1].folder / "tables.html").as_uri())
    table = page.locator("table.fxg-table").first

    def names() -> list[str]:
        return table.locator("tbody tr td:first-child").all_inner_texts()

    def sort(column: str) -> list[str]:
        table.get_by_role("button", name=column).click()
        return names()

    assert names() == ["net 2", "net 10", "broken"]
    assert sort("activations") == ["net 2", "net 10", "broken"]  # by size, not by letters; unknown is last
    assert sort("activations") == ["net 10", "net 2", "broken"]
    assert table.locator("th[aria-sort=descending]").inner_text().startswith("activations")
    assert sort("name") == ["broken", "net 2", "net 10"]
    assert page.locator("table.fxg-compare button").count() == 0
    page.close()


def test_a_table_of_nothing_is_told_and_left_out(project: Project) -> None:
    project.write("index.rst", "Nets\n====\n\n.. fxgraph-table::\n")
    build = project.build("html")
    assert build.status == 0
    assert "index.rst:4: WARNING: which models?" in build.warnings
    assert "<table" not in build.page()
