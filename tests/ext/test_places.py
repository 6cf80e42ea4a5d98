"""Graphs and tables of models wherever a figure can stand, and names that are used twice or shown by some builders."""

from __future__ import annotations

import re
import zipfile

import pytest
from bs4 import BeautifulSoup
from conftest import Build, Project

pytestmark = pytest.mark.torch

MODEL = """\
import torch

class Net(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))

    def forward(self, x):
        return self.body(x).softmax(-1)
"""

PLACES = """\
Places
======

.. list-table::

   * - A
     - .. fxgraph:: net.Net
          :inputs: 3, 4
          :caption: In a cell
          :name: cell
   * - B
     - .. fxgraph-table:: cell

+-----+---------------------------+
| x   | .. fxgraph:: net.Net(7)   |
|     |    :inputs: 3, 4          |
|     |    :stages:               |
+-----+---------------------------+
| y   | .. fxgraph-report::       |
+-----+---------------------------+
| z   | .. fxgraph-diff:: net.Net |
|     |    :against: net.Net(7)   |
|     |    :inputs: 3, 4          |
+-----+---------------------------+

.. note::

   .. fxgraph:: net.Net(5)
      :inputs: 3, 4

.. hlist::

   * .. fxgraph:: net.Net(5)
        :inputs: 3, 4

   * other

Term
   .. fxgraph:: net.Net(5)
      :inputs: 3, 4

.. [#f] A note.

   .. fxgraph:: net.Net(5)
      :inputs: 3, 4

.. sidebar:: Aside

   .. fxgraph:: net.Net(5)
      :inputs: 3, 4

.. topic:: Topic

   .. fxgraph-table:: cell

Text [#f]_, :any:`cell`, :any:`bare`, :fx:model:`cell`, :fx:params:`{} weights <cell>`.

.. fxgraph:: net.Net(6)
   :inputs: 3, 4
   :name: bare

.. only:: latex

   .. fxgraph:: net.Net(9)
      :inputs: 3, 4
      :name: paper

.. ifconfig:: project == "another"

   .. fxgraph:: net.Net(9)
      :inputs: 3, 4
      :name: other project

:fx:node:`paper:body.0`, :fx:model:`other project`, :fx:node:`bare:body.0`, :fx:node:`bare:body`, :fx:params:`paper`

.. fxgraph-table:: paper, other project, bare
"""

MARKDOWN = """\
# Markdown

[](#cell), [text](#cell), {any}`cell`

| graph |
|-------|
| {fx:params}`cell` |

````{list-table}
* - ```{fxgraph} net.Net
    :inputs: 3, 4
    ```
````
"""

OTHER = """
from docutils import nodes

class other(nodes.Element):
    pass

def setup(app):
    skip = (lambda *_: None, lambda *_: None)
    app.add_node(other, epub=skip, html=skip, dirhtml=skip)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("places"))
    project.configure("extensions.append('sphinx.ext.ifconfig')\nversion = copyright = '1'\n" + OTHER)
    project.write("net.py", MODEL)
    project.write("index.rst", "Index\n=====\n\n.. toctree::\n\n   places\n   markdown\n")
    project.write("places.rst", PLACES)
    project.write("markdown.md", MARKDOWN)
    return project


@pytest.mark.parametrize("builder", ["html", "dirhtml", "singlehtml", "epub", "latex", "text", "man", "texinfo", "xml"])
def test_a_graph_stands_wherever_a_figure_can(project: Project, builder: str) -> None:
    build = project.build(builder, "-nW", "--keep-going")
    assert (build.warnings, build.status) == ("", 0)


def dead_links(pages: dict[str, str]) -> set[str]:
    """The links of the pages that lead to no id."""
    ids = {page: set(re.findall(r' id="([^"]*)"', text)) for page, text in pages.items()}
    dead = set()
    for page, text in pages.items():
        for address in re.findall(r'<a [^>]*href="([^"]*#[^"]+)"', text):
            other, _, fragment = address.partition("#")
            if (other or page) in ids and fragment not in ids[other or page]:
                dead.add(address)
    return dead


@pytest.mark.parametrize("builder", ["html", "epub"])
def test_all_links_lead_to_something(project: Project, builder: str) -> None:
    build = project.build(builder)
    if builder == "epub":
        (book,) = build.folder.glob("*.epub")
        with zipfile.ZipFile(book) as archive:
            names = [name for name in archive.namelist() if name.endswith(".xhtml")]
            pages = {name: archive.read(name).decode() for name in names}
    else:
        pages = {f"{name}.html": build.page(f"{name}.html") for name in ("index", "places", "markdown")}
    assert any('href="#' in text for text in pages.values())
    assert dead_links(pages) == set()
    text = pages["places.xhtml" if builder == "epub" else "places.html"]
    row = "bare-row-body.0" if builder == "epub" else "bare-body.0"
    assert f'href="#{row}"' in text
    assert "#paper" not in text
    assert "#other" not in text


def test_titles_stand_for_graphs(project: Project) -> None:
    soup = BeautifulSoup(project.build("html").page("places.html"), "lxml")
    text = " ".join(soup.get_text().split())
    assert "In a cell, bare, In a cell, 58 weights." in text
    assert "61 parameters" not in text
    assert [cell.get_text(strip=True) for cell in soup.select("#places > table.fxg-table td:first-child")] == [
        "paper",
        "other project",
        "bare",
    ]


def test_tables_of_a_graph_in_a_cell_stand_behind_the_table(project: Project) -> None:
    build = project.build("text")
    text = build.page("places.txt")
    assert text.index("**net.Net**") > text.index("| B ")
    assert "* In a cell: parameters: 58" in text


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Build:
    project = Project(tmp_path_factory.mktemp("twice"))
    project.write("net.py", MODEL)
    graph = "{0}\n=\n\n.. fxgraph:: net.Net({1})\n   :inputs: 3, 4\n   :name: same\n\nIt has :fx:params:`same`.\n"
    project.write("index.rst", "Index\n=====\n\n.. toctree::\n\n   a\n   b\n")
    project.write("a.rst", graph.format("A", 8))
    project.write("b.rst", graph.format("B", 10))
    project.build("html")
    return project.build("html")


def test_a_name_that_is_used_twice_is_a_warning_in_every_build(twice: Build) -> None:
    assert "b.rst:4: WARNING: the graph name 'same' is used twice" in twice.warnings
    assert "a.rst:4" in twice.warnings


def test_of_two_graphs_with_one_name_the_one_on_the_page_counts(twice: Build) -> None:
    assert "58 parameters" in BeautifulSoup(twice.page("a.html"), "lxml").select("section > p")[-1].get_text()
    assert "72 parameters" in BeautifulSoup(twice.page("b.html"), "lxml").select("section > p")[-1].get_text()
