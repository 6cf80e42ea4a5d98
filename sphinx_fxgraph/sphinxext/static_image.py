"""The drawing as an image for formats without style sheets: LaTeX, EPUB, text; also inside table cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes

from sphinx_fxgraph.escape import unique_file_stem
from sphinx_fxgraph.sphinxext.assets import write
from sphinx_fxgraph.sphinxext.domain import fx_domain
from sphinx_fxgraph.sphinxext.messages import warn
from sphinx_fxgraph.sphinxext.nodes import fxgraph
from sphinx_fxgraph.sphinxext.state import Run, look_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.environment import BuildEnvironment

    from sphinx_fxgraph.render import drawing as compose
    from sphinx_fxgraph.render.document import Strips


_CELLS = (nodes.entry, nodes.footnote, nodes.citation)
_NO_FLOATS = (addnodes.hlist, nodes.footnote, nodes.citation)
"""Where LaTeX takes no floats; table cells and boxes are known to its writer."""
_BOXES = (*_CELLS, addnodes.hlist, nodes.Admonition, nodes.sidebar, nodes.topic, nodes.legend)


def container(node: nodes.Node, format: str) -> nodes.Element | None:  # noqa: A002 - as builders call it
    """Return the outermost element around a node that holds no tables, or None if tables can stand where the node is.

    A part that stands in no page, such as a copy that ``needextract`` of sphinx-needs makes, counts as one, since it
    may become part of a table.

    Args:
        node: a part of the document.
        format: of the builder.
    """
    kinds = _BOXES if format == "latex" else _CELLS
    found: nodes.Element | None = None
    around: nodes.Element | None = node.parent
    while around is not None:
        becomes_cell = type(around).__name__ == "Need"  # sphinx-needs makes tables of them later
        in_table = isinstance(around, nodes.table) and found is not None
        if isinstance(around, kinds) or becomes_cell or in_table or is_copy(around):
            found = around
        around = around.parent
    return found


def is_copy(node: nodes.Element) -> bool:
    """Return whether a node is the root of a part of a page that Sphinx has wrapped in a document of its own."""
    around = node.parent
    return isinstance(around, nodes.document) and not around.get("source") and not isinstance(node, nodes.section)


def flatten(table: nodes.table, format: str) -> None:  # noqa: A002 - docutils calls it so
    """Replace a table with a head by a list if it is where no table can be: an item for each row.

    Args:
        table: has the names of its columns as its head.
        format: of the builder.
    """
    if format == "html" or container(table, format) is None:
        return
    heads = [entry.astext() for head in table.findall(nodes.thead) for entry in head.findall(nodes.entry)]
    items = nodes.bullet_list(bullet="*")
    for body in table.findall(nodes.tbody):
        for row in body.findall(nodes.row):
            first, *others = row.children
            told = [
                f"{head}: {cell.astext().replace(chr(10), ' ')}"
                for head, cell in zip(heads[1:], others, strict=False)
                if cell.astext()
            ]
            text = nodes.Text(": " if told and first.astext() else "")
            content = [child for part in first.children for child in part.children]
            items += nodes.list_item("", nodes.paragraph("", "", *content, text, nodes.Text(", ".join(told))))
    title = [nodes.paragraph("", "", nodes.strong("", "", *part.children)) for part in table.findall(nodes.title)]
    table.parent.replace(table, [*title, items])


GAP = 10.0
"""Points between two strips on one sheet."""
_CHARACTERS = {"′": "\\ensuremath{'}", "−": "\\ensuremath{-}", "≥": "\\ensuremath{\\geq}", "⋯": "\\ensuremath{\\cdots}"}
"""Of what we write."""


def sheets(file: str, cut: Strips, points: float) -> Iterator[str]:
    """The inside of a figure, and figures behind it: one does not break over pages.

    Args:
        file: a PDF.
        cut: how it fits on paper.
        points: of the PDF, for each unit of the drawing.
    """
    width = f"width={cut.width * cut.scale:.0f}bp"
    if len(cut.cuts) == 1:
        yield f"\\sphinxincludegraphics[{width}]{{{file}}}"
        return
    for first in range(0, len(cut.cuts), cut.abreast):
        parts = []
        for top, bottom in cut.cuts[first : first + cut.abreast]:
            corners = (0, cut.cuts[-1][1] - bottom, cut.width, cut.cuts[-1][1] - top)  # from the lower left one
            viewport = " ".join(f"{corner * points:.2f}" for corner in corners)
            parts.append(f"\\raisebox{{-\\height}}{{\\includegraphics[viewport={viewport},clip,{width}]{{{file}}}}}")
        sheet = f"\\hspace{{{GAP:g}bp}}%\n".join(parts)
        yield f"\\begin{{figure}}[htbp]\n\\centering\n{sheet}\n\\end{{figure}}" if first else sheet


def narrow(document: nodes.document) -> None:
    """Let our tables be no wider than the page: small, columns as wide as they need, words broken where they may be.

    A column that is too narrow for a word would be printed over by the next one.
    """
    for table in list(document.findall(nodes.table)):
        if not any(name.startswith("fxg-") for name in table["classes"]):
            continue
        rows = [[entry.astext() for entry in row.findall(nodes.entry)] for row in table.findall(nodes.row)]
        for spec, width in zip(table.findall(nodes.colspec), _widths(rows), strict=True):
            spec["colwidth"] = width
        table["classes"].append("colwidths-given")
        for cell in [cell for entry in table.findall(nodes.entry) for cell in entry.findall(nodes.paragraph)]:
            for text in list(cell.findall(nodes.Text)):
                pieces = [piece for part in _pieces(str(text)) for piece in (_raw("\\allowbreak{}"), nodes.Text(part))]
                text.parent.replace(text, pieces[1:])
            cell.insert(0, _raw("\\rightskip=0pt plus 1fil\\relax{}"))
        around = table.parent
        around.insert(around.index(table), _raw("\\begingroup\\footnotesize"))
        around.insert(around.index(table) + 1, _raw("\\endgroup"))


_IN_PLACE = "\\begin{sphinxfigure-in-table}\\centering}{\\end{sphinxfigure-in-table}"
_NO_FLOAT = f"\\begingroup\\renewenvironment{{figure}}[1][]{{{_IN_PLACE}}}"


def keep_in_place(document: nodes.document) -> None:
    """Let figures stand where they are in columns and footnotes, which hold no floats."""
    for figure in list(document.findall(nodes.figure)):
        if "fxgraph" in figure["classes"] and any(isinstance(around, _NO_FLOATS) for around in _around(figure)):
            figure.parent.replace(figure, [_raw(_NO_FLOAT), figure, _raw("\\endgroup")])


def _around(node: nodes.Node) -> Iterator[nodes.Node]:
    while node := node.parent:
        yield node


_PAGE = 112
"""Characters of footnote size in a line."""
_PADDING = 3
"""Characters that the space beside a column takes."""
_BREAKS = re.compile(r"(?<=[×._=/])|(?<=[a-z])(?=[A-Z])")
"""Where a word may be broken."""


def _pieces(text: str) -> list[str]:
    return [piece for piece in _BREAKS.split(text) if piece]


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the widths of columns in characters: of their texts.

    Where that is too much, less for those that can wrap.
    """
    columns = list(zip(*rows, strict=True))
    wanted = [max(map(len, column)) for column in columns]
    least = [
        max(len(word) for text in column for part in _pieces(text) or [""] for word in part.split() or [""])
        for column in columns
    ]
    room = _PAGE - _PADDING * len(columns)
    most = next((most for most in range(max(wanted), 0, -1) if sum(_between(least, wanted, most)) <= room), 0)
    return [width + _PADDING for width in _between(least, wanted, most)]


def _between(least: Sequence[int], wanted: Sequence[int], most: int) -> list[int]:
    return [max(low, min(high, most)) for low, high in zip(least, wanted, strict=True)]


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="latex")


def declare(app: Sphinx, config: Config) -> None:  # noqa: ARG001 - an event handler
    """Let pdfTeX know our characters; what the project's own preamble says of them holds."""
    if config.latex_engine == "pdflatex":
        lines = (f"\\DeclareUnicodeCharacter{{{ord(sign):04X}}}{{{text}}}\n" for sign, text in _CHARACTERS.items())
        config.latex_elements = {
            **config.latex_elements,
            "preamble": "".join(lines) + config.latex_elements.get("preamble", ""),
        }


def setup(app: Sphinx) -> None:
    """Tell Sphinx of them."""
    app.connect("config-inited", declare)


_KINDS = {"image/svg+xml": ".svg", "application/pdf": ".pdf", "image/png": ".png"}
"""What a builder may take, the best first."""
_OUTLINED = ("html", "text", "man", "texinfo", "xml", "pseudoxml")
"""Formats that get no file: HTML has the drawing in its pages, the others have an outline instead."""
_PAPER = (448.0, 530.0)
"""Points that a page has for a drawing, beside caption and facts: letter or A4 with the margins of Sphinx's LaTeX."""


def suffix(run: Run) -> str:
    """That of the files which this builder takes drawings as; empty where it takes none, or none can be made."""
    from sphinx_fxgraph.render import export

    wanted = _wanted(run)
    return wanted if wanted in ("", ".svg") or not export.missing() else ""


def tell(run: Run) -> None:
    """Warn, once a build, where there could be drawings and are none."""
    from sphinx_fxgraph.render import export

    why = "" if _wanted(run) in ("", ".svg") else export.missing()
    if why and why not in run.warned:
        run.warned.add(why)
        warn(f"outlines stand in the place of drawings: {why}", "layout")


def _wanted(run: Run) -> str:
    taken = () if run.builder.format in _OUTLINED else run.builder.supported_image_types
    return next((suffix for mime, suffix in _KINDS.items() if mime in taken), "")


def print_svg(run: Run, place: fxgraph) -> str:
    """The print variant of what a place shows, as a whole file."""
    from sphinx_fxgraph.render import document

    picture, how = _picture(run, place)
    return document.print_svg(picture, **how)


def _picture(run: Run, place: fxgraph) -> tuple[compose.Frame, dict[str, Any]]:
    """Return the drawing of a place and how it is written."""
    from sphinx_fxgraph.render import drawing as compose
    from sphinx_fxgraph.render import summary
    from sphinx_fxgraph.render.colors import Shares

    (job,) = run.jobs(place["spec"], look_of(place["look"]))
    how = {
        "title": place["target"],
        "description": place["alt"] or summary.describe(job.record),
        "shares": Shares(job.record, run.config.units, place["color"] or run.config.color),
        "legend": place["legend"],
    }
    return compose.scene(job), how


def put(env: BuildEnvironment, place: fxgraph) -> Sequence[nodes.Element]:
    """Write the drawing, and give what stands in its place; what is behind the first stands behind the figure."""
    from sphinx_fxgraph.render import document, export
    from sphinx_fxgraph.render.document import strips

    run = fx_domain(env).run
    picture, how = _picture(run, place)
    svg = document.print_svg(picture, **how)
    kind = suffix(run)
    is_latex = run.builder.format == "latex"
    folder = run.builder.outdir if is_latex else Path(env.doctreedir, "images")
    file = Path(folder, f"fxgraph-{unique_file_stem(place['figure'])}{kind}")
    write(file, svg if kind == ".svg" else export.CONVERTERS[kind](svg))
    if is_latex:
        size = document.print_size(picture, shares=how["shares"], legend=how["legend"])
        whole = look_of(place["look"]).depth is None  # an overview is one figure
        cut = strips(picture, size, _PAPER, GAP, whole=whole)
        if container(place, "latex") is not None:  # a float cannot stand there, so there is one sheet
            text = f"\\sphinxincludegraphics[width={cut.width * cut.scale:.0f}bp]{{{file.name}}}"
            return [nodes.raw("", text, format="latex")]
        return [nodes.raw("", text, format="latex") for text in sheets(file.name, cut, export.POINTS)]
    env.images.add_file(env.docname, str(file))
    return [nodes.image("", uri=str(file), candidates={"*": str(file)}, alt=how["description"])]
