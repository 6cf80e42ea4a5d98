"""The drawing for formats without style sheets: its print variant, as a file of the kind that the format takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

from sphinx_fxgraph.render import convert, document, summary
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.render.heat import Shares
from sphinx_fxgraph.render.pagination import strips
from sphinx_fxgraph.sphinxext.assets import write
from sphinx_fxgraph.sphinxext.domain import fx_domain
from sphinx_fxgraph.sphinxext.messages import warn
from sphinx_fxgraph.sphinxext.nodes import fxgraph
from sphinx_fxgraph.sphinxext.state import Run, look_of
from sphinx_fxgraph.sphinxext.writers import latex, nested
from sphinx_fxgraph.text.escape import unique_file_stem

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

_KINDS = {"image/svg+xml": ".svg", "application/pdf": ".pdf", "image/png": ".png"}
"""What a builder may take, the best first."""
_OUTLINED = ("html", "text", "man", "texinfo", "xml", "pseudoxml")
"""Formats that get no file: HTML has the drawing in its pages, the others have an outline instead."""
_PAPER = (448.0, 530.0)
"""Points that a page has for a drawing, beside caption and facts: letter or A4 with the margins of Sphinx's LaTeX."""


def suffix(run: Run) -> str:
    """That of the files which this builder takes drawings as; empty where it takes none, or none can be made."""
    wanted = _wanted(run)
    return wanted if wanted in ("", ".svg") or not convert.missing() else ""


def tell(run: Run) -> None:
    """Warn, once a build, where there could be drawings and are none."""
    why = "" if _wanted(run) in ("", ".svg") else convert.missing()
    if why and why not in run.warned:
        run.warned.add(why)
        warn(f"outlines stand in the place of drawings: {why}", "layout")


def _wanted(run: Run) -> str:
    taken = () if run.builder.format in _OUTLINED else run.builder.supported_image_types
    return next((suffix for mime, suffix in _KINDS.items() if mime in taken), "")


def print_svg(run: Run, place: fxgraph) -> str:
    """The print variant of what a place shows, as a whole file."""
    picture, how = _picture(run, place)
    return document.print_svg(picture, **how)


def _picture(run: Run, place: fxgraph) -> tuple[compose.Frame, dict[str, Any]]:
    """What a place shows, and how it is written."""
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
    run = fx_domain(env).run
    picture, how = _picture(run, place)
    svg = document.print_svg(picture, **how)
    kind = suffix(run)
    is_latex = run.builder.format == "latex"
    folder = run.builder.outdir if is_latex else Path(env.doctreedir, "images")
    file = Path(folder, f"fxgraph-{unique_file_stem(place['figure'])}{kind}")
    write(file, svg if kind == ".svg" else convert.CONVERTERS[kind](svg))
    if is_latex:
        size = document.print_size(picture, shares=how["shares"], legend=how["legend"])
        cut = strips(picture, size, _PAPER, latex.GAP)
        if nested.container(place, "latex") is not None:  # a float cannot stand there, so there is one sheet
            text = f"\\sphinxincludegraphics[width={cut.width * cut.scale:.0f}bp]{{{file.name}}}"
            return [nodes.raw("", text, format="latex")]
        return [nodes.raw("", text, format="latex") for text in latex.sheets(file.name, cut, convert.POINTS)]
    env.images.add_file(env.docname, str(file))
    return [nodes.image("", uri=str(file), candidates={"*": str(file)}, alt=how["description"])]
