"""What LaTeX wants in its own words: sheets of a drawing, narrow tables, characters that pdfTeX does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

    from sphinx_fxgraph.render.pagination import Strips

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


_PAGE = 112
"""Characters of footnote size in a line."""
_PADDING = 3
"""Characters that the space beside a column takes."""
_BREAKS = re.compile(r"(?<=[×._=/])|(?<=[a-z])(?=[A-Z])")
"""Where a word may be broken."""


def _pieces(text: str) -> list[str]:
    return [piece for piece in _BREAKS.split(text) if piece]


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Of columns, in characters: what their texts take; where that is too much, less for those that can be broken."""
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
