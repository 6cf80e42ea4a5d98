"""Numbers and names of a graph in running text."""

from __future__ import annotations

import re

import pytest
from bs4 import BeautifulSoup, Tag
from conftest import Build, Project

pytestmark = pytest.mark.torch

MODEL = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, {width}), torch.nn.ReLU(), torch.nn.Linear({width}, 2))

    def forward(self, x):
        return self.body(x).softmax(-1)
"""

GRAPH = "Model\n=====\n\n.. fxgraph:: net.Net\n   :inputs: 3, 4\n   :name: my net\n"

TEXT = """\
Text
====

It has :fx:params:`my net` and takes :fx:macs:`my net` for :fx:shape:`my net`;
its body :fx:params:`my net:body`, :fx:macs:`my net:body`, :fx:shape:`my net:body`,
the first layer :fx:macs:`my net:body.0`, the second :fx:macs:`my net:body.1`.
See :fx:model:`my net`, :fx:model:`the net <my net>`, :fx:node:`my net:body.0` and :any:`my net`.
"""


def fill(project: Project, width: int = 8) -> Project:
    project.write("net.py", MODEL.format(width=width))
    project.write("index.rst", "Index\n=====\n\n.. toctree::\n\n   text\n   model\n   other\n")
    project.write("model.rst", GRAPH)
    project.write("text.rst", TEXT)
    project.write("other.rst", "Other\n=====\n\n")
    return project


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The pages, read by two processes."""
    return fill(Project(tmp_path_factory.mktemp("roles"))).build("html", "-nW", "-j2")


def paragraph(page: str) -> Tag:
    found = BeautifulSoup(page, "lxml").select_one("section > p")
    assert found is not None
    return found


def test_numbers_and_shapes_are_those_of_the_record(built: Build) -> None:
    assert (built.status, built.warnings) == (0, "")
    said = " ".join(paragraph(built.page("text.html")).get_text().split())
    assert said.startswith(
        "It has 58 parameters and takes 144 MACs for 3×4 → 3×2; its body 58 parameters, 144 MACs, 3×2, "
        "the first layer 96 MACs, the second 0 MACs."
    )
    abbreviation = paragraph(built.page("text.html")).abbr
    assert abbreviation is not None
    assert "convolutions, matrix products and attention" in str(abbreviation["title"])


def test_names_lead_to_the_graph_and_its_nodes(built: Build) -> None:
    links = [(link.get_text(), link["href"]) for link in paragraph(built.page("text.html")).select("a")]
    assert links == [
        ("Model", "model.html#my-net"),
        ("the net", "model.html#my-net"),
        ("body.0", "model.html#my-net-body.0"),
        ("Model", "model.html#my-net"),
    ]
    assert BeautifulSoup(built.page("model.html"), "lxml").find(id="my-net-body.0")


def test_other_projects_can_refer_to_graphs_and_nodes(built: Build, project: Project) -> None:
    project.write(
        "conf.py",
        "extensions = ['sphinx_fxgraph', 'sphinx.ext.intersphinx']\n"
        f"intersphinx_mapping = {{'net': ('https://net.example/', {str(built.folder / 'objects.inv')!r})}}\n",
    )
    external = ":external:fx:node:`my net:body.0` :external+net:fx:model:`my net`"
    project.write("index.rst", f"Index\n=====\n\n:fx:model:`my net` :fx:node:`my net:body.0` {external}\n")
    other = project.build("html", "-nW")
    assert (other.status, other.warnings) == (0, "")
    links = [link["href"] for link in paragraph(other.page()).select("a")]
    model, node = "https://net.example/model.html#my-net", "https://net.example/model.html#my-net-body.0"
    assert links == [model, node, node, model]


def test_the_index_of_models_leads_to_all_graphs(built: Build) -> None:
    index = BeautifulSoup(built.page("fx-models.html"), "lxml")
    heading, table = index.h1, index.select_one("table.indextable")
    assert heading
    assert table
    assert heading.get_text() == "Model index"
    assert [(link.get_text(), link["href"]) for link in table.select("a")] == [("Model", "model.html#my-net")]
    assert "(net.Net)" in table.get_text()


def test_a_changed_model_changes_every_page_that_tells_of_it_and_no_other(project: Project) -> None:
    folder = fill(project).build().folder
    before = {path.stem: path.stat().st_mtime_ns for path in folder.glob("*.html")}
    fill(project, width=16)
    built = project.build()
    assert "It has 114 parameters" in paragraph(built.page("text.html")).get_text()
    after = {path.stem: path.stat().st_mtime_ns for path in folder.glob("*.html")}
    assert after["text"] != before["text"]
    assert after["model"] != before["model"]
    assert after["other"] == before["other"]


def test_a_project_chooses_format_and_convention(project: Project) -> None:
    project.write("text.rst", ":orphan:\n\nText\n====\n\n:fx:macs:`norm` :fx:params:`norm`\n")
    project.write(
        "index.rst",
        "Other\n=====\n\n.. fxgraph:: torch.nn.BatchNorm2d(1000)\n   :inputs: 1, 1000, 2, 2\n   :name: norm\n",
    )
    assert paragraph(project.build().page("text.html")).get_text() == "0 MACs 2,000 parameters"
    project.configure("fxgraph_macs = 'all'\nfxgraph_number_format = 'SI'\n")
    built = project.build()
    assert paragraph(built.page("text.html")).get_text() == "8.00 kMACs 2.00 k parameters"
    assert "2.00 k parameters · 8.00 kMACs with norms and pooling" in built.page()
    assert "8.00 kMACs 2.00 k parameters" in project.build("text").page("text.txt")


def test_what_is_wrong_is_told_in_every_build(project: Project) -> None:
    fill(project)
    project.write("other.rst", "Other\n=====\n\n:fx:params:`nothing` :fx:node:`my net:body.7`\n")
    project.write("model.rst", GRAPH + "   :expect: f32[3, 5]\n   :expect-params: 1,058\n   :expect-macs: 0.15k\n")
    expected = [
        "model.rst:4: WARNING: net.Net: expected to return f32[3, 5], but it returns f32[3, 2] [fxgraph.expect]",
        "model.rst:4: WARNING: net.Net: expected to have 1,058 parameters, but it has 58 [fxgraph.expect]",
        "model.rst:4: WARNING: net.Net: expected to have 0.15k MACs, but it has 144 [fxgraph.expect]",
        "other.rst:4: WARNING: undefined graph, or node in a graph: nothing",
        "other.rst:4: WARNING: undefined graph, or node in a graph: my net:body.7",
    ]
    warnings = re.sub(r" \[ref\.\w+\]$", "", project.build().warnings, flags=re.MULTILINE).splitlines()  # of Sphinx 8
    assert [line.rpartition("/")[2] for line in warnings] == expected
    # What a model is not is told again although nothing is read; an undefined name with its page, as of any reference.
    assert [line.rpartition("/")[2] for line in project.build().warnings.splitlines()] == expected[:3]
    project.write("model.rst", GRAPH + "   :expect: 3, 2\n   :expect-params: 58\n   :expect-macs: 0.14k\n")
    assert "fxgraph.expect" not in project.build().warnings
