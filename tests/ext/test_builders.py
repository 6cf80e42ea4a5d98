"""Every kind of output builds without a warning, and what shows no graphs captures none."""

from __future__ import annotations

import functools
import re
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Build, Project, needs
from lxml import etree

pytestmark = pytest.mark.torch

INDEX = """
Models
======

.. fxgraph:: zoo.two_inputs.TwoInputs
   :inputs: (1, 3, 16, 16), (1, 2, 8, 8)
   :caption: A *small* model
   :name: fig-small

:numref:`fig-small` is :ref:`fig-small`.

.. toctree::

   deep/other
"""

OTHER = """
Other
=====

.. fxgraph:: zoo.examples.Mlp
   :inputs: 1, 4
   :name: fig-without-caption
   :stages:

:ref:`Here <fig-without-caption>` it is, without a caption; :numref:`fig-small` has the first number.

.. fxgraph:: zoo.broken.Misfit
   :inputs: 1, 4
   :caption: It fails
   :expect: error

.. fxgraph:: zoo.broken.Unbuildable
   :inputs: 1, 4
   :caption: It cannot be built
   :expect: error

.. fxgraph-table:: fig-*
   :caption: All of them

.. fxgraph-table:: fig-small, other <fig-without-caption>
   :compare:

.. fxgraph-report::
   :caption: How it went

.. fxgraph-diff:: zoo.examples.Mlp
   :inputs: 1, 4
   :against: zoo.examples.Mlp(hidden=4)
   :caption: What became wider

It has :fx:params:`fig-small` parameters, gives :fx:shape:`fig-small` and shows :fx:node:`fig-small:sigmoid`.
"""

OTHERS = ("dirhtml", "singlehtml", "text", "man", "texinfo", "latex", "epub", "xml", "pseudoxml")
SILENT = ("gettext", "linkcheck", "coverage", "doctest", "dummy", "changes")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("builders"))
    project.configure(
        "numfig = True\n"
        "extensions += ['sphinx.ext.coverage', 'sphinx.ext.doctest']\n"
        "epub_basename = 'book'\n"
        "linkcheck_report_timeouts_as_broken = False\n"
        "author = copyright = version = release = '1'\n"
    )
    project.write("index.rst", INDEX)
    project.write("deep/other.rst", OTHER)
    return project


@pytest.fixture(scope="module")
def built(models: Project) -> Callable[[str], Build]:
    """Builds by builder, each made once, after the captures that HTML has made."""
    models.build("html")
    return functools.cache(lambda builder: models.build(builder, "-nW", "--keep-going"))


@pytest.mark.parametrize("builder", SILENT)
def test_what_shows_no_graph_captures_none(models: Project, builder: str) -> None:
    doctrees = models.target / f"doctrees-{builder}"
    build = models.build(builder, "-nW", "--keep-going", "-d", str(doctrees))
    assert build.warnings == ""
    assert build.status == 0
    assert "capturing" not in build.output
    assert not (doctrees / "fxgraph").exists()
    assert not (build.folder / ".fxgraph.json").exists()


def test_captions_are_translatable(models: Project) -> None:
    build = models.build("gettext", "-d", str(models.target / "doctrees-gettext"))
    catalog = (build.folder / "index.pot").read_text(encoding="utf-8")
    assert re.search(r'index\.rst:5\nmsgid "A \*small\* model"', catalog)


@pytest.mark.parametrize("builder", ["html", *OTHERS])
def test_each_output_uses_what_is_captured(built: Callable[[str], Build], builder: str) -> None:
    build = built(builder)
    assert build.warnings == ""
    assert build.status == 0
    assert "capturing" not in build.output


@pytest.mark.parametrize(
    ("builder", "file", "shown"),
    [
        ("singlehtml", "index.html", "<svg"),
        ("latex", "project.tex", "{fxgraph-fig-without-caption.pdf}"),
        ("man", "project.1", "4→8"),
        ("texinfo", "project.texi", "4→8"),
    ],
)
def test_pages_that_become_one_are_filled_though_the_first_has_no_graph(
    project: Project, built: Callable[[str], Build], models: Project, builder: str, file: str, shown: str
) -> None:
    built("html")
    project.configure(
        f"extensions += ['sphinx.ext.doctest']\nfxgraph_cache_dir = {str(models.target / 'doctrees/fxgraph')!r}\n"
    )
    project.write("index.rst", "Index\n=====\n\n.. toctree::\n\n   other\n")
    project.write("other.rst", OTHER[: OTHER.index(":ref:`Here")] + ".. fxgraph-report::\n\n.. fxgraph-table:: fig-*\n")
    build = project.build(builder, "-nW", "--keep-going")
    assert (build.status, build.warnings) == (0, "")
    page = build.page(file)
    assert shown in page
    assert page.count("fig-without-caption") >= 2  # in both tables


def test_an_e_book_is_built_again_without_a_warning(models: Project, built: Callable[[str], Build]) -> None:
    built("epub")
    assert models.build("epub", "-nW", "--keep-going").warnings == ""


@pytest.mark.parametrize(("builder", "file"), [("text", "index.txt"), ("man", "project.1"), ("xml", "index.xml")])
def test_without_a_drawing_there_is_an_outline_and_a_table(
    built: Callable[[str], Build], builder: str, file: str
) -> None:
    text = built(builder).page(file)
    assert re.search(r"main +Sequential +1×4×16×16 f32", text)
    assert "align" in text[text.index("connected to") :]  # in the arguments, which only the table has


def test_latex_has_the_drawing_as_a_pdf(built: Callable[[str], Build]) -> None:
    latex = built("latex")
    text = latex.page("project.tex")
    figure = text[text.index("\\begin{figure}") : text.index("\\end{figure}")]
    assert "\\sphinxincludegraphics[width=387bp]{fxgraph-fig-small.pdf}" in figure
    assert "A \\sphinxstyleemphasis{small} model" in figure
    assert (latex.folder / "fxgraph-fig-small.pdf").read_bytes().startswith(b"%PDF")
    assert "1×4×16×16 f32\n" not in text[: text.index("\\end{figure}")]  # the outline, which the drawing replaces


@pytest.fixture(scope="module")
def unprinted(models: Project, built: Callable[[str], Build], tmp_path_factory: pytest.TempPathFactory) -> Build:
    """LaTeX where CairoSVG is not installed."""
    built("html")
    folder = tmp_path_factory.mktemp("without")
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['cairosvg'] = None\n")
    doctrees = models.target / "doctrees"
    settings = ("-D", "show_warning_types=1", "-D", f"fxgraph_cache_dir={doctrees / 'fxgraph'}")
    return models.build("latex", "-n", "-E", *settings, PYTHONPATH=str(folder))


def test_without_a_converter_there_are_outlines_and_one_warning(unprinted: Build) -> None:
    assert re.sub("\x1b.*?m", "", unprinted.warnings) == (
        "WARNING: outlines stand in the place of drawings: PDF and PNG need CairoSVG: "
        "pip install 'sphinx-fxgraph[print]'; svg and html need nothing [fxgraph.layout]\n"
    )
    text = unprinted.page("project.tex")
    assert "fxgraph-fig-small.pdf" not in text
    assert re.search(r"main +Sequential +1×4×16×16 f32", text)


OWN = """
from docutils import nodes
from sphinx.builders.xml import XMLBuilder

class Slides(XMLBuilder):
    name = format = "slides"
    supported_image_types = [{mime!r}]

    def write_doc(self, docname, doctree):
        self.post_process_images(doctree)
        super().write_doc(docname, doctree)

    def finish(self):
        super().finish()
        for source, name in self.images.items():
            (self.outdir / name).write_bytes((self.srcdir / source).read_bytes())

def setup(app):
    app.add_builder(Slides)
"""


@pytest.mark.parametrize(
    ("mime", "suffix", "magic"), [("image/svg+xml", ".svg", b"<?xml"), ("image/png", ".png", b"\x89PNG")]
)
def test_a_builder_that_nobody_here_knows_gets_an_image_of_a_kind_that_it_takes(
    project: Project, mime: str, suffix: str, magic: bytes
) -> None:
    project.write("slides.py", OWN.format(mime=mime))
    project.configure("extensions += ['slides']\n")
    project.write("index.rst", INDEX[: INDEX.index(":numref:")])
    build = project.build("slides", "-nW")
    assert (build.status, build.warnings) == (0, "")
    assert (build.folder / f"fxgraph-fig-small{suffix}").read_bytes().startswith(magic)
    page = build.page("index.xml")
    assert f'fxgraph-fig-small{suffix}"' in page
    assert 'alt="14 ops, ' in page
    assert "fxgraph>" not in page


def test_latex_makes_a_pdf_of_it(built: Callable[[str], Build]) -> None:
    latexmk = needs("latexmk")
    folder = built("latex").folder
    command = [latexmk, "-pdf", "-interaction=nonstopmode", "-halt-on-error", "project.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:].decode(errors="replace")
    assert (folder / "project.pdf").exists()
    wide = re.findall(rb"Overfull .hbox .([\d.]+)pt too wide. in alignment", (folder / "project.log").read_bytes())
    assert max(map(float, wide), default=0) < 10


def test_latex_lets_the_table_break_over_pages(built: Callable[[str], Build]) -> None:
    text = built("latex").page("project.tex")
    assert "\\begin{longtable}" in text
    figure = text[text.index("\\begin{figure}") : text.index("\\end{figure}")]
    assert "longtable" not in figure


def test_latex_gives_each_column_what_it_needs(built: Callable[[str], Build]) -> None:
    text = built("latex").page("project.tex")
    start = text.index("\\begin{longtable}")
    columns = re.findall(r"\\X{(\d+)}{(\d+)}", text[start : text.index("\n", start)])
    widths = [int(width) for width, _ in columns]
    assert len(widths) == 10
    assert {int(whole) for _, whole in columns} == {sum(widths)}
    assert max(widths) > 1.5 * min(widths)
    assert "\\begingroup\\footnotesize" in text[:start]
    assert "call\\_\\allowbreak{}function" in text[start:]


def test_an_e_book_has_the_drawing_as_a_picture(built: Callable[[str], Build]) -> None:
    with zipfile.ZipFile(built("epub").folder / "book.epub") as book:
        page = book.read("index.xhtml").decode()
        source = re.search(r'<img class="fxg-svg" src="([^"]+)" alt="14 ops', page)
        assert source
        assert f'href="{source[1]}" media-type="image/svg+xml"' in book.read("content.opf").decode()
        picture = book.read(source[1]).decode()
        etree.fromstring(page.encode())
    assert "interpolate" in picture
    assert not re.search("var\\(|class=|<style|<script", picture)
    assert "fxgraph.js" not in page
    assert ".dot" not in page


def test_a_place_without_a_caption_can_be_referred_to_and_takes_no_number(built: Callable[[str], Build]) -> None:
    page = built("html").page("deep/other.html")
    assert '<figure class="fxgraph align-default" id="fig-without-caption">' in page
    assert 'href="#fig-without-caption"' in page
    assert 'Fig. 2 </span><span class="caption-text">It fails' in page


def test_output_holds_no_path_of_this_machine(models: Project, built: Callable[[str], Build]) -> None:
    kinds = (".html", ".dot", ".json", ".js", ".inv")
    written = [path for path in built("html").folder.rglob("*") if path.suffix in kinds]
    records = list(Path(models.target, "doctrees", "fxgraph").iterdir())
    assert written
    assert len(records) >= 4
    for path in [*written, *records]:
        assert str(models.source).encode() not in path.read_bytes(), path
