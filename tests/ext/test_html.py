"""The page: what is in it, where its links lead, and what it loads."""

from __future__ import annotations

import gzip
import re
from urllib.parse import unquote, urlsplit

import pytest
import sphinx
from bs4 import BeautifulSoup, Tag
from conftest import Build, Project

pytestmark = pytest.mark.torch

INDEX = """
Models
======

.. fxgraph:: zoo.two_inputs.TwoInputs
   :inputs: (1, 3, 16, 16), (1, 2, 8, 8)
   :caption: Two inputs
   :name: fig-two
   :align: right
   :class: wide
   :height: 300px
   :alt: A small model

.. fxgraph:: zoo.two_inputs.TwoInputs
   :inputs: (1, 3, 16, 16), (1, 2, 8, 8)
   :table: output shape, name

.. fxgraph:: zoo.two_inputs.TwoInputs
   :inputs: (1, 3, 32, 32), (1, 2, 8, 8)
   :table: none

.. fxgraph:: torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sequential(torch.nn.ReLU()), torch.nn.Tanh())
   :inputs: 1, 4

.. fxgraph:: torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU(), torch.nn.Tanh())
   :inputs: 1, 4

:numref:`fig-two` and :ref:`fig-two` and :py:class:`torch.nn.Conv2d`

.. py:class:: torch.nn.Conv2d

.. toctree::

   deep/resnet
   plain
"""

RESNET = """
ResNet
======

.. fxgraph:: zoo.resnet.resnet18
   :inputs: 1, 3, 224, 224

.. fxgraph:: zoo.resnet.resnet18
   :inputs: 1, 3, 224, 224
   :depth: 1
   :name: fig-closed
   :legend: no
   :stages:

:ref:`fig-two`
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Build]:
    project = Project(tmp_path_factory.mktemp("html"))
    project.configure("numfig = True\nnitpicky = True\n")
    project.write("index.rst", INDEX)
    project.write("deep/resnet.rst", RESNET)
    project.write("plain.rst", "Plain\n=====\n\nNo graph.\n")
    return project, project.build("html", "-nW", "--keep-going")


@pytest.fixture(scope="module")
def index(site: tuple[Project, Build]) -> BeautifulSoup:
    return BeautifulSoup(site[1].page(), "lxml")


@pytest.fixture(scope="module")
def resnet(site: tuple[Project, Build]) -> BeautifulSoup:
    return BeautifulSoup(site[1].page("deep/resnet.html"), "lxml")


def one(page: BeautifulSoup | Tag, selector: str) -> Tag:
    found = page.select(selector)
    assert len(found) == 1, selector
    return found[0]


def cells(page: BeautifulSoup, row: str) -> list[str]:
    found = page.find("tr", id=row)
    assert isinstance(found, Tag), row
    return [cell.text for cell in found.select("td")]


def test_it_builds_without_a_warning_though_no_class_of_torch_is_documented(site: tuple[Project, Build]) -> None:
    assert site[1].warnings == ""
    assert site[1].status == 0


def test_the_figure_says_what_it_shows(index: BeautifulSoup) -> None:
    figure = one(index, "figure#fig-two")
    assert set(figure["class"]) >= {"fxgraph", "wide", "align-right"}
    graph = one(figure, "div.fxg-graph")
    assert graph["data-model"] == "zoo.two_inputs.TwoInputs"
    assert graph["data-tracer"] == "symbolic"
    assert graph["data-height"] == "300px"
    assert one(graph, "svg.fxg-svg > title").text == "zoo.two_inputs.TwoInputs"
    assert one(graph, "svg.fxg-svg > desc").text == "A small model"
    assert one(figure, ".caption-text").text == "Two inputs"
    assert one(figure, "p.fxg-facts").text.startswith(
        "14 ops · 93 parameters · 7.68 kMACs · 1×3×16×16, 1×2×8×8 → 1×4×16×16"
    )


def test_the_figure_can_be_referred_to(index: BeautifulSoup, resnet: BeautifulSoup) -> None:
    texts = [link.text for link in index.select('p > a.reference.internal[href="#fig-two"]')]
    assert texts == ["Fig. 1", "Two inputs"]
    assert one(resnet, 'p > a.reference.internal[href="../index.html#fig-two"]').text == "Two inputs"


def test_the_table_has_a_row_for_each_operator(index: BeautifulSoup) -> None:
    table = one(index, '.fxg-tables[data-figure="fig-two"] table.fxg-nodes')
    assert [head.text for head in table.select("th")] == [
        "name",
        "op",
        "target",
        "arguments",
        "input shape",
        "output shape",
        "dtype",
        "parameters",
        "MACs",
        "connected to",
    ]
    assert len(table.select("tr[id]")) == 14
    assert cells(index, "fig-two-row-skip") == [
        "skip",
        "call_module Conv2d",
        "skip",
        "y",
        "1×2×8×8",
        "1×4×8×8",
        "f32",
        "76",
        "4,608",
        "add",
    ]
    assert cells(index, "fig-two-row-size")[-6:] == ["1×4×16×16", "", "", "", "", "getitem"]


def test_the_table_option_picks_and_orders_columns(index: BeautifulSoup) -> None:
    table = one(index, '.fxg-tables[data-figure="fx-index-TwoInputs"] table')
    assert [head.text for head in table.select("th")] == ["output shape", "name"]
    assert cells(index, "fx-index-TwoInputs-row-skip") == ["1×4×8×8", "skip"]
    assert not index.select('.fxg-tables[data-figure="fx-index-TwoInputs-2"]')


def test_documented_classes_are_links(index: BeautifulSoup) -> None:
    row = one(index, "tr#fig-two-row-skip")
    assert one(row, 'a[href="#torch.nn.Conv2d"]').text == "Conv2d"


@pytest.mark.parametrize("page", ["index.html", "deep/resnet.html"])
def test_ids_are_unique_and_every_link_leads_somewhere(site: tuple[Project, Build], page: str) -> None:
    html = BeautifulSoup(site[1].page(page), "lxml")
    ids = [element["id"] for element in html.select("[id]")]
    assert len(ids) == len(set(ids))
    for link in html.select("figure a[href], .fxg-tables a[href]"):
        url = urlsplit(str(link["href"]))
        if url.path:
            target = (site[1].folder / page).parent / unquote(url.path)
            assert target.is_file() or (target / "index.html").is_file(), link
        else:
            assert unquote(url.fragment) in ids, link
    for reference in re.findall(r"url\(#([^)]+)\)", site[1].page(page)):
        assert reference in ids


def test_links_hold_in_other_kinds_of_html(site: tuple[Project, Build]) -> None:
    project, _ = site
    for builder, pages in (("singlehtml", ["index.html"]), ("dirhtml", ["index.html", "deep/resnet/index.html"])):
        build = project.build(builder, "-nW", "--keep-going")
        assert build.status == 0, build.warnings
        for page in pages:
            test_ids_are_unique_and_every_link_leads_somewhere((project, build), page)
    assert 'href="../../#fig-two"' in build.page("deep/resnet/index.html")


def test_a_repeated_body_has_one_row_and_an_anchor_for_each_place(resnet: BeautifulSoup) -> None:
    rows = [str(row["id"]) for row in resnet.select("table.fxg-nodes tr[id]")]
    first = "fx-deep-resnet-resnet18-row-layer1.0.conv1"
    again = "fx-deep-resnet-resnet18-row-layer1.1.conv1"
    assert first in rows
    assert again not in rows
    anchor = resnet.find(id=again)
    assert isinstance(anchor, Tag)
    row = anchor.find_parent("tr")
    assert row is not None
    assert row["id"] == first
    assert any(heading.text.strip() == "layer1.0 BasicBlock ×2" for heading in resnet.select("tr.fxg-body"))


def test_a_row_of_what_is_not_drawn_leads_to_the_module_around_it(resnet: BeautifulSoup) -> None:
    assert not resnet.select('[id="fig-closed-layer1.0.conv1"]')
    row = one(resnet, '[id="fig-closed-row-layer1.0.conv1"]')
    assert row.select('a[href="#fig-closed-layer1.0"]')


def test_the_stages_are_rows_that_lead_into_the_drawing(resnet: BeautifulSoup) -> None:
    (table,) = resnet.select("table.fxg-stages")
    assert one(resnet, '.fxg-tables[data-figure="fig-closed"]').find("table") is table
    rows = [[cell.text for cell in row.select("td")] for row in table.select("tbody tr")]
    assert rows[2] == ["layer1", "BasicBlock ×2", "1×64×56×56", "147,968", "462,422,016"]
    assert one(table, 'a[href="#fig-closed-layer1"]').text == "layer1"
    assert one(table, 'a[href="#fig-closed-conv1"]').text == "conv1 … relu"


def test_the_stages_are_a_plain_table_elsewhere(site: tuple[Project, Build]) -> None:
    build = site[0].build("text", "-nW", "--keep-going")
    assert build.warnings == ""
    cells = [line.split("|") for line in build.page("deep/resnet.txt").splitlines() if "BasicBlock ×2" in line]
    assert ["layer1", "147,968"] in [[cell[1].strip(), cell[4].strip()] for cell in cells if len(cell) == 7]


def test_the_legend_has_the_kinds_in_the_picture_and_hides_those_that_may_be_opened(resnet: BeautifulSoup) -> None:
    (legend,) = resnet.select("ul.fxg-legend")
    figure = legend.find_parent("figure")
    assert figure is not None
    shown = [str(entry["data-key"]) for entry in legend.select("li:not([hidden])")]
    assert shown == ["matmul", "norm", "act", "pool", "math", "shape", "io", "closed"]
    assert all(figure.select(f"svg .fxg-{key}") for key in shown)
    assert not resnet.select("#fig-closed .fxg-legend")


def test_names_of_operators_lead_to_their_rows_where_there_is_a_table(index: BeautifulSoup) -> None:
    assert one(index, '#fig-two g[data-path="skip"] a')["href"] == "#fig-two-row-skip"
    without = index.select("figure.fxgraph")[2]
    assert without.select("svg .fxg-op")
    assert not without.select("svg a")


def test_edges_tell_what_they_join(resnet: BeautifulSoup) -> None:
    edges = {(edge.get("data-from"), edge.get("data-to")) for edge in resnet.select("figure svg path.fxg-edge")}
    assert {("maxpool", "layer1"), ("", "conv1"), ("", "add"), ("bn2", "add")} <= edges


def test_the_download_is_the_classic_dot(site: tuple[Project, Build], index: BeautifulSoup) -> None:
    links = [str(link["href"]) for link in index.select("a.fxg-dot")]
    assert len(links) == 5
    assert links[0] == links[1]
    dot = site[1].page(links[0])
    assert dot.startswith("digraph")
    assert "bilinear" in dot


def test_assets_are_where_a_graph_is_and_nowhere_else(site: tuple[Project, Build]) -> None:
    for page in ("index.html", "deep/resnet.html"):
        head = one(BeautifulSoup(site[1].page(page), "lxml"), "head")
        assert one(head, 'script[src*="fxgraph.js"]').has_attr("defer")
        assert head.select('link[rel="stylesheet"][href*="fxgraph.css"]')
    for page in ("plain.html", "search.html", "genindex.html"):
        assert "fxgraph" not in one(BeautifulSoup(site[1].page(page), "lxml"), "head").decode()


def test_nothing_needs_an_inline_style_or_script_or_another_host(site: tuple[Project, Build]) -> None:
    for page in ("index.html", "deep/resnet.html"):
        html = BeautifulSoup(site[1].page(page), "lxml")
        parts = [*html.select("figure.fxgraph"), *html.select(".fxg-tables")]
        assert parts
        for element in (found for part in parts for found in [part, *part.find_all(True)]):
            assert element.name != "style", element
            assert element.name != "script" or element["type"] == "application/json", element
            assert not [name for name in element.attrs if name == "style" or name.startswith("on")], element
    static = site[1].folder / "_static"
    for asset in ("fxgraph.js", "fxgraph.css"):
        assert not re.search(
            r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(", (static / asset).read_text(encoding="utf-8")
        )


def test_the_search_index_has_names_and_no_path_data(site: tuple[Project, Build]) -> None:
    terms = re.search(r'"terms": ?({.*?}), ?"', site[1].page("searchindex.js"))
    assert terms
    words = set(re.findall(r'"?([\w.]+)"?:', terms[1]))
    assert {"interpol", "conv2d", "downsampl"} <= words
    # Before Sphinx 8.2 nothing could be kept out of the index.
    assert sphinx.version_info < (8, 2) or not [word for word in words if re.fullmatch(r"\d+|bilinear|f32|m\d.*", word)]


def test_a_page_is_light(site: tuple[Project, Build]) -> None:
    """ResNet-18 with everything it loads that is ours stays below 100 kB."""
    static = site[1].folder / "_static"
    scripts = [static / name for name in ("fxgraph.js", "fxgraph-nodes.js")]
    files = [site[1].folder / "deep" / "resnet.html", *scripts, static / "fxgraph.css"]
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < 100_000
    assert len(gzip.compress((static / "fxgraph.js").read_bytes())) < 14_000
    assert len(gzip.compress((static / "fxgraph.css").read_bytes())) < 4_500


def test_a_newer_style_sheet_replaces_the_older_one_without_a_warning(project: Project) -> None:
    project.write(
        "index.rst", "Page\n====\n\n.. fxgraph:: zoo.two_inputs.TwoInputs\n   :inputs: (1, 3, 8, 8), (1, 2, 4, 4)\n"
    )
    first = project.build("html", "-W")
    sheet = first.folder / "_static" / "fxgraph.css"
    current = sheet.read_text(encoding="utf-8")
    sheet.write_text("/* of an older version */", encoding="utf-8")
    project.write("other.rst", ":orphan:\n\nOther\n=====\n")
    again = project.build("html", "-W")
    assert again.status == 0, again.warnings
    assert sheet.read_text(encoding="utf-8") == current
