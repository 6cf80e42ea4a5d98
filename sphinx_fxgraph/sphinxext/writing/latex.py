"""What LaTeX wants in its own words: the sheets of a drawing, and the characters that pdfTeX does not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

    from sphinx_fxgraph.drawing.svg.strips import Strips

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
