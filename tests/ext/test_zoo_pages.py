"""Pages made from a registry: written, kept, removed, and listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bs4 import BeautifulSoup

if TYPE_CHECKING:
    from conftest import Project

pytestmark = pytest.mark.torch

NETS = """\
from torch import nn

def small(): return nn.Sequential(nn.Linear(4, 8), nn.ReLU())
def large(): return nn.Linear(4, 64)
def other(): return nn.Linear(4, 3)

NAMES = {names}

def list_models(): return NAMES
"""

ZOO = """
fxgraph_zoo = {"nets": {
    "folder": "models",
    "registry": "nets:list_models",
    "target": "nets.{name}",
    "exclude": ["hidden*"],
    "options": {"*": {"inputs": "1, 4"}, "large": {"caption": "The large one"}},
}}
def setup(app):
    import sys
    watched = ("subprocess.Popen", "os.fork", "os.posix_spawn")
    sys.addaudithook(lambda event, args: event in watched and print("process:", event))
"""


def fill(project: Project, *names: str) -> Project:
    project.configure(ZOO)
    project.write("nets/__init__.py", NETS.format(names=list(names)))
    project.write("index.rst", "Zoo\n===\n\n.. fxgraph-zoo:: nets\n")
    return project


def links(page: str) -> list[tuple[str, str]]:
    table = BeautifulSoup(page, "lxml").select_one("table.fxg-table")
    assert table is not None
    return [(link.get_text(), str(link["href"])) for link in table.select("a")]


def test_pages_follow_the_registry(project: Project) -> None:
    first = fill(project, "small", "large", "hidden").build("html", "-nW")
    assert (first.status, first.warnings) == (0, "")
    assert links(first.page()) == [("small", "models/small.html#nets-small"), ("large", "models/large.html#nets-large")]
    assert "The large one" in first.page("models/large.html")
    assert "models/small.html" in str(BeautifulSoup(first.page(), "lxml").select_one(".toctree-wrapper"))
    thumbs = BeautifulSoup(first.page(), "lxml").select(".fxg-thumbs a")
    assert [(thumb["href"], thumb.get_text()) for thumb in thumbs] == [
        ("models/small.html#nets-small", "4 ops, 1×4 → 1×8, 1 linear layer, 40 parameterssmall"),
        ("models/large.html#nets-large", "3 ops, 1×4 → 1×64, 1 linear layer, 320 parameterslarge"),
    ]
    shapes = [[part["d"] for part in thumb.select("path")] for thumb in thumbs]
    assert all(shapes)
    assert shapes[0] != shapes[1]

    second = project.build("html", "-nW")
    assert "0 added, 0 changed, 0 removed" in second.output
    assert "process:" not in second.output  # the list is in the cache, so nothing is imported to know it

    project.write("models/mine.rst", ":orphan:\n\nMine\n====\n")
    kept = (project.source / "models" / "large.rst").stat().st_mtime_ns
    third = fill(project, "large", "other").build("html", "-nW")
    assert (third.status, third.warnings) == (0, "")
    assert [name for name, _ in links(third.page())] == ["large", "other"]
    assert sorted(path.name for path in (project.source / "models").iterdir()) == ["large.rst", "mine.rst", "other.rst"]
    assert (project.source / "models" / "large.rst").stat().st_mtime_ns == kept
    assert "0 added, 0 changed, 0 removed" in project.build("html", "-nW").output


def test_a_list_and_a_template_of_ones_own(project: Project) -> None:
    project.configure(
        'fxgraph_zoo = {"nets": {"folder": "models", "registry": "nets.toml", "template": "page.md.jinja"}}\n'
    )
    project.write("nets/__init__.py", NETS.format(names=[]))
    project.write("nets.toml", '[models.small]\ntarget = "nets.small"\ninputs = "1, 4"\nwho = "us"\n')
    project.write(
        "page.md.jinja",
        "# {{ title }}\n\nMade by {{ entry.who }}.\n\n"
        "```{fxgraph} {{ target }}\n:name: {{ graph }}\n:inputs: {{ options.inputs }}\n```\n",
    )
    project.write(
        "index.rst",
        "Zoo\n===\n\n.. fxgraph-zoo:: nets\n   :hidden:\n   :no-thumbnails:\n   :columns: name, parameters\n",
    )
    built = project.build("html", "-nW")
    assert (built.status, built.warnings) == (0, "")
    assert (
        (project.source / "models" / "small.md")
        .read_text()
        .startswith('% Written by sphinx-fxgraph for the zoo "nets"')
    )
    assert "Made by us." in built.page("models/small.html")
    assert links(built.page()) == [("small", "models/small.html#nets-small")]
    assert not BeautifulSoup(built.page(), "lxml").select(".fxg-thumbs")


def test_a_registry_that_fails_keeps_the_pages(project: Project) -> None:
    fill(project, "small").build()
    project.write("nets/__init__.py", NETS.format(names="1 / 0"))
    warnings = project.build("html").warnings
    assert "fxgraph_zoo, nets: nets:list_models: ZeroDivisionError: division by zero [fxgraph.import]" in warnings
    assert (project.source / "models" / "small.rst").exists()


def test_a_name_that_the_registry_lacks_is_told(project: Project) -> None:
    project.configure(
        "fxgraph_mode = 'off'\nfxgraph_zoo = {'nets': {'folder': 'models', 'registry': ['small', 'large'],"
        " 'include': ['smal', 'l*'], 'exclude': ['huge'], 'options': {'*': {}, 'lrge': {}}}}\n"
    )
    project.write("index.rst", "Index\n=====\n\n.. fxgraph-zoo:: nets\n")
    told = project.build("html").warnings
    assert "fxgraph_zoo, nets: include: no model is called 'smal'; did you mean small?" in told
    assert "fxgraph_zoo, nets: exclude: no model is called 'huge'" in told
    assert "fxgraph_zoo, nets: options: no model is called 'lrge'; did you mean large?" in told
    assert "'l*'" not in told
