"""Graphs beside other extensions, in every place that they make; needs the dependency group ``company``."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from conftest import Project
from test_places import MODEL, dead_links

pytestmark = pytest.mark.torch

EXTENSIONS = (
    "myst_nb",
    "notfound.extension",
    "sphinx.ext.ifconfig",
    "sphinx.ext.todo",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_needs",
    "sphinx_sitemap",
    "sphinx_tabs.tabs",
    "sphinxext.opengraph",
)
for _name in EXTENSIONS:
    pytest.importorskip(_name.partition(".")[0], reason="the dependency group company is not installed")

CONF = f"""
extensions = ["sphinx_fxgraph", *{EXTENSIONS!r}]
version = author = copyright = "1"
html_baseurl = ogp_site_url = "https://example.org/"
html_theme = "pydata_sphinx_theme"
nb_execution_mode = "off"
numfig = todo_include_todos = True
myst_enable_extensions = ["colon_fence", "deflist", "substitution"]
myst_substitutions = {{"graph": "```{{fxgraph}} net.Net(31)\\n:inputs: 3, 4\\n:name: substituted\\n```"}}
exclude_patterns = ["part.txt"]
suppress_warnings = ["epub.unknown_project_files"]
"""
PLACES = (
    ".. grid:: 2\n\n   .. grid-item-card:: Card\n\n@@@@@@",
    ".. card:: Card\n\n@@@",
    ".. card-carousel:: 2\n\n   .. card:: Card\n\n@@@@@@",
    ".. dropdown:: More\n\n@@@",
    ".. tab-set::\n\n   .. tab-item:: One\n\n@@@@@@",
    ".. tabs::\n\n   .. tab:: One\n\n@@@@@@   .. group-tab:: Two\n\n@@@@@@",
    ".. hlist::\n\n   *\n@@@@@",
    ".. list-table::\n\n   *  - a\n      -\n@@@@@@@@",
    ".. csv-table::\n\n   a, b\n\nTerm\n@@@",
    ".. glossary::\n\n   Thing\n@@@@@@",
    ":Field:\n@@@",
    "-o  option\n\n@@@@",
    ".. [#f] A note.\n\n@@@Text [#f]_.\n",
    ".. [CIT] A citation.\n\n@@@Text [CIT]_.\n",
    ".. sidebar:: Aside\n\n@@@",
    ".. topic:: Topic\n\n@@@",
    ".. admonition:: Own\n\n@@@",
    ".. versionadded:: 1\n\n@@@",
    ".. todo::\n\n@@@",
    ".. container:: own\n\n@@@",
    ".. compound::\n\n   text\n\n@@@   text\n",
    "#. One\n\n@@@   * Two\n\n@@@@@",
    "   Quoted.\n\n@@@",
    ".. only:: html or latex\n\n@@@",
    ".. ifconfig:: True\n\n@@@",
    ".. include:: part.txt\n",
)
"""Places for a graph: it takes the place of ``@``, which count how far it is indented."""
GRAPH = ".. fxgraph:: net.Net\n   :inputs: 3, 4\n\n"
NEEDS = f"""\
Needs
=====

.. req:: A model
   :id: R_0001

{textwrap.indent(GRAPH, "   ")}
"""
EXTRACT = "Extract\n=======\n\n.. needextract::\n\n.. needtable::\n"
MARKDOWN = """\
# Markdown

{{ graph }}

::::{admonition} Note
:::{fxgraph} net.Net
:inputs: 3, 4
:caption: In a note
:name: note
:::
::::

Term
: ```{fxgraph} net.Net
  :inputs: 3, 4
  ```

> ```{fxgraph} net.Net
> :inputs: 3, 4
> ```

Foot[^1] {fx:params}`note` {numref}`note`

[^1]: note

    ```{fxgraph} net.Net
    :inputs: 3, 4
    ```
"""


def notebook(*cells: tuple[str, str], raw_format: str = "") -> str:
    """The text of a notebook with cells of a kind and a text."""
    written = []
    for number, (kind, text) in enumerate(cells):
        more = {"outputs": [], "execution_count": None} if kind == "code" else {}
        meta = {"raw_mimetype": raw_format} if kind == "raw" else {}
        written.append({"cell_type": kind, "id": f"c{number}", "metadata": meta, "source": text, **more})
    language = {"name": "python", "pygments_lexer": "ipython3"}
    kernel = {"name": "python3", "display_name": "Python", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": language}
    return json.dumps({"cells": written, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("company"))
    project.configure(CONF)
    project.write("net.py", MODEL)
    project.write("part.txt", ".. fxgraph:: net.Net(20)\n   :inputs: 3, 4\n   :caption: Included\n   :name: included\n")
    project.write("places.rst", "Places\n======\n\n" + "\n".join(map(placed, PLACES)))
    project.write("needs.rst", NEEDS)
    project.write("extract.rst", EXTRACT)
    project.write("markdown.md", MARKDOWN)
    graph = "```{fxgraph} net.Net(16)\n:inputs: 3, 4\n:caption: In a notebook\n:name: notebook\n```"
    project.write("book.ipynb", notebook(("markdown", "# Notebook"), ("markdown", graph), ("code", "1 + 1")))
    pages = "".join(f"   {name}\n" for name in ("places", "needs", "extract", "markdown", "book"))
    project.write("index.rst", f"Index\n=====\n\n.. toctree::\n\n{pages}")
    return project


def placed(place: str) -> str:
    """A place with a graph in it."""
    return re.sub("@+", lambda marks: textwrap.indent(GRAPH, " " * len(marks[0])), place)


@pytest.mark.parametrize("builder", ["html", "dirhtml", "singlehtml", "latex", "text", "texinfo", "xml", "gettext"])
def test_it_builds_without_a_warning(project: Project, builder: str) -> None:
    doctrees = ("-d", str(project.target / "messages")) if builder == "gettext" else ()
    build = project.build(builder, "-nW", "--keep-going", *doctrees)
    assert (build.warnings, build.status) == ("", 0)


def test_man_and_epub_build_without_those_who_cannot(project: Project, tmp_path: Path) -> None:
    other = Project(tmp_path)
    shutil.copytree(project.source, other.source, dirs_exist_ok=True)
    # sphinx-needs makes sphinx-design's nodes unknown in e-books, and no manual has cells that span columns, or tabs.
    other.configure(CONF + "extensions = [name for name in extensions if name not in ('sphinx_needs',)]\n")
    places = [placed(place) for place in PLACES if "tabs::" not in place]
    other.write("places.rst", "Places\n======\n\n" + "\n".join(places))
    for name in ("needs", "extract"):
        (other.source / f"{name}.rst").unlink()
    other.write("index.rst", "Index\n=====\n\n.. toctree::\n\n   places\n   markdown\n   book\n")
    for builder in ("epub", "man"):
        build = other.build(builder, "-nW", "--keep-going")
        assert (build.warnings, build.status) == ("", 0)


def test_each_place_has_its_graph_and_all_links_lead_to_something(project: Project) -> None:
    build = project.build("html")
    names = ("places", "needs", "extract", "markdown", "book")
    pages = {f"{name}.html": build.page(f"{name}.html") for name in names}
    drawn = {
        name: len(BeautifulSoup(text, "lxml").select("figure.fxgraph svg.fxg-svg")) for name, text in pages.items()
    }
    graphs = sum(placed(place).count(".. fxgraph::") for place in PLACES) + 1  # the included one
    assert drawn == {
        "places.html": graphs,
        "needs.html": 1,
        "extract.html": 1,
        "markdown.html": 5,
        "book.html": 1,
    }
    assert dead_links(pages) == set()
    described = re.search(r'og:description" content="([^"]*)', pages["places.html"])
    assert described
    assert "ops" not in described[1]
    assert "targets for 0 source files" in project.build("html").output


def test_what_a_directive_parses_twice_counts_once(project: Project) -> None:
    project.write("report.rst", ":orphan:\n\nReport\n======\n\n.. fxgraph-report::\n")
    build = project.build("html", "-nW")
    assert (build.warnings, build.status) == ("", 0)
    text = build.page("report.html")
    for address in re.findall(r'<a [^>]*href="places.html#([^"]+)"', text):
        assert f'id="{address}"' in build.page("places.html")


@pytest.mark.skipif(not shutil.which("latexmk"), reason="LaTeX is not installed")
def test_latex_loses_no_graph(project: Project) -> None:
    folder = project.build("latex").folder
    command = ["latexmk", "-pdf", "-g", "-interaction=nonstopmode", "-halt-on-error", "project.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:].decode(errors="replace")
    log = (folder / "project.log").read_text(encoding="utf-8", errors="replace")
    for lost in ("Floats and marginpars not allowed", "Float(s) lost", "Not in outer par mode"):
        assert lost not in log


def test_a_notebook_of_nbsphinx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nbsphinx")
    pypandoc = pytest.importorskip("pypandoc")
    monkeypatch.setenv("PATH", str(Path(pypandoc.get_pandoc_path()).parent), prepend=":")
    project = Project(tmp_path)
    project.configure("extensions = ['sphinx_fxgraph', 'nbsphinx']\nnbsphinx_execute = 'never'\ncopyright = '1'\n")
    project.write("net.py", MODEL)
    cells = (("markdown", "# Notebook"), ("raw", GRAPH), ("code", "1 + 1"))
    project.write("index.rst", "Index\n=====\n\n.. toctree::\n\n   book\n")
    project.write("book.ipynb", notebook(*cells, raw_format="text/restructuredtext"))
    for builder in ("html", "latex", "text", "epub"):
        build = project.build(builder, "-nW", "--keep-going")
        assert (build.warnings, build.status) == ("", 0)
    assert "fxg-svg" in (project.target / "html" / "book.html").read_text(encoding="utf-8")


def test_messages_made_and_compiled_by_sphinx_intl(tmp_path: Path) -> None:
    pytest.importorskip("sphinx_intl")
    project = Project(tmp_path)
    project.configure("locale_dirs = ['locale']\ngettext_compact = False\n")
    project.write("net.py", MODEL)
    project.write("index.rst", f"Index\n=====\n\n{GRAPH.rstrip()}\n   :caption: A caption\n   :alt: A drawing\n")
    messages = project.build("gettext", "-d", str(project.target / "messages")).folder
    intl = [sys.executable, "-m", "sphinx_intl"]
    locale = project.source / "locale"
    subprocess.run(
        [*intl, "update", "-p", str(messages), "-d", str(locale), "-l", "de"], check=True, capture_output=True
    )
    catalogue = locale / "de" / "LC_MESSAGES" / "index.po"
    text = catalogue.read_text(encoding="utf-8")
    for message, said in (("A caption", "Ein Titel"), ("A drawing", "Ein Bild")):
        text = text.replace(f'msgid "{message}"\nmsgstr ""', f'msgid "{message}"\nmsgstr "{said}"')
    catalogue.write_text(text, encoding="utf-8")
    subprocess.run([*intl, "build", "-d", str(locale)], check=True, capture_output=True)
    page = project.build("html", "-W", "-D", "language=de").page()
    assert "Ein Titel" in page
    assert "Ein Bild" in page


def test_autobuild_comes_to_rest(tmp_path: Path) -> None:
    pytest.importorskip("sphinx_autobuild")
    project = Project(tmp_path)
    project.configure("fxgraph_cache_dir = '_fxgraph'\n")
    project.write("net.py", MODEL)
    project.write("index.rst", f"Index\n=====\n\n{GRAPH}")
    command = [sys.executable, "-m", "sphinx_autobuild", "--port", "0", str(project.source), str(project.target)]
    log = tmp_path / "log"
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file) as server:
        try:
            first = _builds(log, 1)
            project.write("net.py", MODEL.replace("width=8", "width=16"))
            # The model is captured in one build; the record, which lies among the sources, asks for one more.
            second = _builds(log, first + 1, rest=15)
        finally:
            server.terminate()
    assert second - first <= 2
    assert "114 parameters" in (project.target / "index.html").read_text(encoding="utf-8")


def _builds(log: Path, least: int, rest: float = 3) -> int:
    """How many builds have succeeded when there were that many, and no more came for some seconds."""
    deadline = time.monotonic() + 120
    count, since = 0, time.monotonic()
    while time.monotonic() < deadline and (count < least or time.monotonic() - since < rest):
        found = log.read_text(encoding="utf-8").count("build succeeded")
        if found != count:
            count, since = found, time.monotonic()
        time.sleep(0.2)
    assert count >= least, log.read_text(encoding="utf-8")
    return count
