"""Links between models and their API documentation, and the index of models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from docutils import nodes
from sphinx import addnodes
from sphinx.domains import Index, IndexEntry
from sphinx.locale import get_translation
from sphinx.util.nodes import make_refnode

from sphinx_fxgraph.sphinxext.domain import FxDomain, fx_domain
from sphinx_fxgraph.sphinxext.nodes import described_names, fxgraph, maker
from sphinx_fxgraph.words import _, mark

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.domains.python import PythonDomain
    from sphinx.environment import BuildEnvironment

_lazy = get_translation("sphinx_fxgraph")
"""Translates when a page is written."""


class ModelIndex(Index):
    """All graphs of a project by name, ``fx-models``."""

    name = "models"
    localname = _lazy(mark("Model index"))
    shortname = _lazy(mark("models"))
    domain: FxDomain

    def generate(self, docnames: Iterable[str] | None = None) -> tuple[list[tuple[str, list[IndexEntry]]], bool]:
        """Return the entries by first letter, and that letters are not collapsed."""
        pages = None if docnames is None else set(docnames)
        letters: dict[str, list[IndexEntry]] = {}
        for docname, use in sorted(self.domain.graphs(), key=lambda shown: (shown[1].shown_name.lower(), shown[0])):
            if pages is None or docname in pages:
                name = use.shown_name
                target = use.spec.target if use.spec.target != name else ""
                letter = name[:1].upper()
                letters.setdefault(letter, []).append(IndexEntry(name, 0, docname, use.figure, target, "", ""))
        return sorted(letters.items()), False


def add(document: nodes.document, env: BuildEnvironment) -> None:
    """Add to each description of a model links to its graphs elsewhere, and to each graph a link to the description.

    Graphs in a description are not linked with it.
    """
    domain = fx_domain(env)
    shown = domain.graphs_of()
    if not shown or not domain.run.shows:
        return
    for described in list(document.findall(addnodes.desc)):
        name = next(iter(described_names(described)), "")
        inside = {place["figure"] for place in described.findall(fxgraph)}
        found = [(page, use) for page, use in shown.get(name, ()) if use.figure not in inside]
        content = next((child for child in described.children if isinstance(child, addnodes.desc_content)), None)
        if content is None or not found:
            continue
        line = nodes.paragraph("", _("Graphs") + ": ", classes=["fxg-graphs"])
        for number, (page, use) in enumerate(found):
            line += [nodes.Text(", ")] * bool(number)
            line += make_refnode(domain.run.builder, env.docname, page, use.figure, nodes.Text(use.shown_name))
        members = (index for index, child in enumerate(content) if list(child.findall(addnodes.desc)))
        content.insert(next(members, len(content)), line)


def documented(figure: nodes.figure, target: str, env: BuildEnvironment) -> nodes.reference | None:
    """Return a link from a graph to the description of what makes the model; None where the project has none.

    Args:
        figure: the graph; one in a description has none.
        target: of the graph.
        env: the environment of the build.
    """
    around = figure.parent
    while around is not None:
        if isinstance(around, addnodes.desc):
            return None
        around = around.parent
    name = maker(target)
    found = cast("PythonDomain", env.get_domain("py")).objects.get(name) if name else None
    if found is None or found.objtype not in ("class", "function"):
        return None
    text = nodes.literal("", name.rpartition(".")[2])
    return make_refnode(fx_domain(env).run.builder, env.docname, found.docname, found.node_id, text, name)


def setup(app: Sphinx) -> None:
    """Register the index."""
    app.add_index_to_domain("fx", ModelIndex)
