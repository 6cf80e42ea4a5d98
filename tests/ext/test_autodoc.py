"""Graphs in API docs: `fxgraph_autodoc`, and models that another tool documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bs4 import BeautifulSoup

if TYPE_CHECKING:
    from conftest import Build, Project

pytestmark = pytest.mark.torch

MODELS = '''\
"""Models."""
from torch import Tensor, nn

class Net(nn.Module):
    """A net.

    Parameters
    ----------
    width : int
        The width.
    """

    def __init__(self, width: int = 8) -> None:
        """Build it."""
        super().__init__()
        self.body = nn.Linear(4, width)

    def forward(self, x: Tensor) -> Tensor:
        """Run it."""
        return self.body(x).relu()

class Bare(nn.Module):
    def forward(self, x):
        return x + 1

class Shown(nn.Module):
    """Has a graph already.

    .. fxgraph::
       :inputs: 1, 4
    """
    def forward(self, x):
        return x * 2

class Config:
    """No model."""

def net_large() -> Net:
    """A large one."""
    return Net(64)

def count(model) -> int:
    """No builder."""

def hidden() -> Net:
    """Turned off."""
'''
CONF = """
extensions += ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
autoclass_content = "{content}"
autodoc_default_options = {{"members": True, "undoc-members": True}}
fxgraph_autodoc = {{"models.*": {{"inputs": "1, 4", "table": "none"}}, "models.hidden": None}}
templates_path = ["_templates"]
"""
MODELS_WITH_GRAPHS = ["models.Bare", "models.Net", "models.Shown", "models.net_large"]
TEMPLATE = "{{ fullname }}\n{{ underline }}\n\n.. automodule:: {{ fullname }}\n"
INDEX = """\
Index
=====

.. autosummary::
   :toctree: api

   models

.. py:class:: models.Net
   :no-index:

   By hand.
"""


def fill(project: Project, content: str, more: str = "") -> Project:
    project.configure(CONF.format(content=content) + more)
    project.write("models.py", MODELS)
    project.write("_templates/autosummary/module.rst", TEMPLATE)
    project.write("index.rst", INDEX)
    return project


def graphs(build: Build, name: str) -> list[str]:
    """The names of the objects with a graph in their own description, each as often as it has one."""
    page = BeautifulSoup(build.page(name), "lxml")
    found = []
    for figure in page.select("figure.fxgraph"):
        around = figure.find_parent("dl", class_="py")
        assert around is not None
        term = around.find("dt")
        found.append(term["id"] if term and term.get("id") else "by hand")
    return sorted(found)


def test_each_model_has_one_graph_whatever_the_content_is(project: Project) -> None:
    for content in ("class", "both", "init"):
        build = fill(project, content).build("html", "-W", "-E")
        assert (build.warnings, build.status) == ("", 0)
        assert graphs(build, "api/models.html") == MODELS_WITH_GRAPHS
        assert graphs(build, "index.html") == ["by hand"]
    text = BeautifulSoup(build.page("api/models.html"), "lxml").get_text()
    assert "320 parameters" in text
    again = project.build("html", "-W")
    assert "0 added, 0 changed, 0 removed" in again.output


def test_other_tools_that_describe_objects(project: Project) -> None:
    pytest.importorskip("numpydoc")
    fill(project, "class", "extensions.append('numpydoc')\nnumpydoc_show_class_members = False\n")
    build = project.build("html", "-W")
    assert (build.warnings, build.status) == ("", 0)
    assert graphs(build, "api/models.html") == MODELS_WITH_GRAPHS


def test_a_torch_that_autodoc_mocks_is_absent(project: Project) -> None:
    fill(project, "class").build("html")
    fill(project, "class", "autodoc_mock_imports = ['torch']\n")
    build = project.build("html", "-W", "-E")
    assert (build.warnings, build.status) == ("", 0)
    assert graphs(build, "api/models.html") == MODELS_WITH_GRAPHS
    project.write("models.py", MODELS.replace("Net(64)", "Net(65)"))
    stale = project.build("html")
    assert "shown as it was captured before: models.py changed" in stale.warnings
    assert "capturing" not in stale.output


LINKED = """\
Pages
=====

.. fxgraph:: models.Net
   :inputs: 1, 4
   :caption: The net

.. fxgraph:: models:net_large()
   :inputs: 1, 4
   :table: none

.. fxgraph:: torch.nn.Sequential(models.Net(4), models.Net(5))
   :inputs: 1, 4
   :depth: 2

.. toctree::

   api
"""
API = (
    ".. autoclass:: models.Net\n",
    ".. autofunction:: models.net_large\n",
    ".. autoclass:: models.Shown\n",
)
TORCH = """\
Torch
=====

.. py:class:: torch.Tensor
.. py:class:: torch.nn.Linear
.. py:function:: torch.nn.functional.softmax
.. py:method:: torch.Tensor.relu
"""


def test_models_and_their_descriptions_are_linked(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    torch = type(project)(tmp_path_factory.mktemp("torch"))
    torch.write("index.rst", TORCH)
    inventory = torch.build("html").folder / "objects.inv"
    project.configure(
        "extensions += ['sphinx.ext.autodoc', 'sphinx.ext.intersphinx']\n"
        f"intersphinx_mapping = {{'torch': ('https://torch.example/', {str(inventory)!r})}}\n"
    )
    project.write("models.py", MODELS)
    project.write("api.rst", "API\n===\n\n" + "".join(API))
    project.write("index.rst", LINKED)
    build = project.build("html", "-nW", "--keep-going")
    assert (build.warnings, build.status) == ("", 0)
    api = BeautifulSoup(build.page("api.html"), "lxml")
    lines = {line.get_text(): [link["href"] for link in line.select("a")] for line in api.select("p.fxg-graphs")}
    assert lines == {
        "Graphs: The net": ["index.html#fx-index-Net"],
        "Graphs: net_large": ["index.html#fx-index-net_large"],
    }
    page = BeautifulSoup(build.page("index.html"), "lxml")
    described = [link["href"] for line in page.select(".fxg-facts") for link in line.select("a.internal")]
    assert [link for link in described if "api" in link] == ["api.html#models.Net", "api.html#models.net_large"]
    external = {link.get_text(): link["href"] for link in page.select("table.fxg-nodes a.external")}
    assert external == {
        "Linear": "https://torch.example/index.html#torch.nn.Linear",
        "relu": "https://torch.example/index.html#torch.Tensor.relu",
    }
    data = "".join(path.read_text(encoding="utf-8") for path in build.folder.glob("_static/fxgraph/*.nodes.js"))
    frames = {link.get_text(): link["href"] for link in page.select("svg .fxg-title > a")}
    assert frames == {"Net": "api.html#models.Net"}
    assert data.count('"call_method relu":"https://torch.example/index.html#torch.Tensor.relu"') == 3
    project.write("index.rst", LINKED.replace("The net", "Another name"))
    again = project.build("html", "-nW")
    assert "Graphs: Another name" in BeautifulSoup(again.page("api.html"), "lxml").get_text()
    assert "targets for 0 source files" in project.build("html").output
