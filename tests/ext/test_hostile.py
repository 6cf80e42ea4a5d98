"""Text that somebody else chose, in targets, the cache and registries: no file outside, no markup, no code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bs4 import BeautifulSoup

from sphinx_fxgraph.sphinxext.zoo_pages import Zoo, stays_inside

if TYPE_CHECKING:
    from conftest import Project

NETS = """\
from torch import nn

def create_model(name="", **kwargs): return nn.Linear(4, 8)
def small(): return nn.Linear(4, 8)
def list_models(): return ["small"]
"""

LABELS = {
    "parents": '"../../../../escaped/real"',
    "absolute": '"/escaped/real"',
    "windows": r'"..\\\\..\\\\escaped\\\\real"',
    "device": '"con"',
    "dots": '".."',
    "long": f'"{"a" * 400}"',
    "nul": r'"a\x00b"',
    "newline": r'"a\nb: c"',
    "surrogate": r'"a\ud800b"',
    "escape": r'"\x1b[1mbold\x1b]0;title\x07"',
    "script": '"<!--<script>"',
    "bidi": r'"a\u202eb"',
}
"""What a factory may be given as the name of its model."""


@pytest.mark.torch
@pytest.mark.parametrize("builder", ["html", "epub", "latex"])
def test_the_name_of_a_model_leaves_the_output_folder_nowhere(project: Project, builder: str) -> None:
    project.write("ctl.py", NETS)
    shown = "\n".join(
        f".. fxgraph:: ctl.create_model({label})\n   :inputs: 1, 4\n   :alt: about {name}\n"
        for name, label in LABELS.items()
    )
    named = f".. fxgraph:: ctl.create_model('y')\n   :inputs: 1, 4\n   :name: {'n' * 400}\n"
    project.write("index.rst", f"Site\n====\n\n{shown}\n{named}")
    before = files(project.source.parent)
    project.target = project.source.parent / "a" / "b" / "c" / "d" / "build"
    build = project.build(builder)
    assert build.status == 0, build.warnings
    assert "fxgraph" not in build.warnings
    new = files(project.source.parent) - before
    assert all(path.is_relative_to(project.target) or "__pycache__" in path.parts for path in new), new
    if builder == "html":
        page = BeautifulSoup(build.page(), "lxml")
        assert len(page.select("svg.fxg-svg")) == len(LABELS) + 1
        links = [Path(build.folder, str(link["href"])) for link in page.select("a.fxg-dot")]
        assert len({link.resolve() for link in links}) == len(LABELS) + 1
        assert all(link.is_file() for link in links)
        text = build.page()
        assert not any(ord(char) < 32 and char not in "\n\t" for char in text)
        assert "<!--<script>" not in text.split("<body", 1)[1]


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


RAW = "x\n\n.. raw:: html\n\n   <script>trap</script>\n\n.. fxgraph::\n\n   import os; os.system('touch sprung')"

HOSTILE = [
    "small",
    {"name": "one", "target": "nets.small", "inputs": "1, 4\n\n.. raw:: html\n\n   <script>trap</script>"},
    {"name": "two", "target": "nets.small", "inputs": "1, 4", "title": RAW},
    {"name": "three", "target": "nets.small", "inputs": "1, 4", "options": {"caption": RAW, "depth": "1"}},
    {"name": "four", "target": "nets.small", "options": {"caption:\n\n.. raw:: html\n\n   <script>trap</script>": 1}},
    {"name": "five", "target": "nets.small\n\n   import os; os.system('touch sprung')", "inputs": "1, 4"},
    {"name": "six", "target": "{{ cycler.__init__.__globals__.os.system('touch sprung') }}", "inputs": "1, 4"},
    {"name": ".. raw:: html", "target": "nets.small", "inputs": "1, 4"},
    {"name": f"../../{'n' * 400}\x00", "target": "nets.small", "inputs": "1, 4", "note": RAW},
    {"name": "note", "target": "nets.small", "inputs": "1, 4", "note": ".. raw:: html", "deep": [{"a": RAW}]},
    {
        "name": "html",
        "target": "nets.small",
        "inputs": "1, 4",
        "title": "<script>trap",
        "note": "<script>trap",
    },
]


def commit(project: Project, models: list[object], **config: object) -> None:
    """A zoo whose list of models is in a committed cache, where somebody else wrote it."""
    settings = {"folder": "models", "registry": "nets:list_models", "target": "nets.{name}", **config}
    project.configure(
        f"fxgraph_zoo = {{'nets': {settings!r}}}\nfxgraph_cache_dir = 'graphs'\nshow_warning_types = True\n"
    )
    project.write("nets.py", NETS)
    project.write("index.rst", "Zoo\n===\n\n.. fxgraph-zoo:: nets\n")
    digest = hashlib.sha256(b"nets:list_models").hexdigest()[:8]
    listing = {"models": models, "sources": {}, "folders": {}, "distributions": {}}
    project.write(f"graphs/nets-{digest}.registry.json", json.dumps(listing))


@pytest.mark.parametrize("template", ["", "page.rst", "page.md"])
def test_a_list_of_models_in_the_cache_writes_no_markup(project: Project, template: str) -> None:
    commit(project, HOSTILE, template=template)
    options = "{% for k, v in options.items() %}\n:{{ k }}: {{ v }}{% endfor %}\n"
    fields = "{{ name }}\n\n{{ entry.get('note', '') }}\n\n{{ entry.get('deep', '') }}\n"
    project.write("page.md", f"# {{{{ title }}}}\n\n```{{fxgraph}} {{{{ target }}}}{options}```\n\n{fields}")
    project.write("page.rst", f"{{{{ title }}}}\n{{{{ '=' * title|length }}}}\n\n{fields}")
    build = project.build("html", "-D", "fxgraph_mode=cached", "-D", "exclude_patterns=page.*,graphs")
    assert build.status == 0, build.warnings
    pages = [path.read_text(encoding="utf-8") for path in build.folder.glob("models/*.html")]
    assert pages
    assert not any("<script>trap" in page for page in pages)
    assert "unknown option" in build.warnings
    assert not list(project.source.parent.rglob("sprung"))
    written = sorted(path.name for path in (project.source / "models").iterdir())
    assert all(len(name) < 120 and not name.startswith(".") for name in written)


OUTSIDE = [
    {"name": "small", "target": "os.system('touch sprung')"},
    {"name": "small", "inputs": "os.system('touch sprung')"},
    {"name": "small", "target": "nets.create_model(os.system('touch sprung'))"},
    "create_model(os.system('touch sprung'))",
    {"name": "small", "target": "exec('import os')"},
    {"name": "small", "inputs": "[{1: (exec('import os'),)}]"},
    {"name": "small", "options": {"network": "yes"}},
    HOSTILE[1],
    HOSTILE[4],
    HOSTILE[5],
    HOSTILE[6],
]


@pytest.mark.parametrize("model", OUTSIDE)
def test_a_list_of_models_in_the_cache_names_no_code_outside_of_its_packages(model: object) -> None:
    zoo = Zoo.parse("nets", {"folder": "models", "registry": "nets:list_models", "target": "nets.{name}"})
    assert not stays_inside(zoo, ["other", model])
    assert stays_inside(zoo, ["small", {"name": "large", "target": "nets.large(nets.Size(2))", "inputs": "1, 4"}])


@pytest.mark.torch
def test_a_list_of_models_that_names_other_code_is_asked_for_again(project: Project) -> None:
    commit(project, OUTSIDE[:1], options={"*": {"inputs": "1, 4"}})
    build = project.build("html", "-W")
    assert (build.status, build.warnings) == (0, "")
    assert [path.name for path in build.folder.glob("models/*.html")] == ["small.html"]
    assert not list(project.source.parent.rglob("sprung"))
