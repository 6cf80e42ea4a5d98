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
