"""Before references are resolved: the places that directives left are filled with what has been captured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from sphinx_fxgraph.sphinxext.domain import fx_domain
from sphinx_fxgraph.sphinxext.nodes import fxgraph, fxgraph_tables
from sphinx_fxgraph.sphinxext.writers import latex

if TYPE_CHECKING:
    from sphinx import addnodes
    from sphinx.application import Sphinx
    from sphinx.domains import Domain


class Fill(SphinxPostTransform):
    """Fills the graphs, tables and thumbnails of a page."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:  # noqa: ARG002 - as Sphinx calls it
        """Fill the places of one page, and note what it is made from."""
        domain, docname = fx_domain(self.env), self.env.docname
        if docname in domain.run.digests:
            domain.run.written[docname] = domain.run.digests[docname]
        if domain.run.builder.name == "gettext":  # takes the author's texts from the doctree, and writes no page
            return
        # Some builders put all pages into one: what is in it counts, not which it is.
        if any(_is_place(node) for node in self.document.findall(nodes.Element)):
            from sphinx_fxgraph.sphinxext.writers import model_tables, resolve, thumbnails

            for fill in (resolve.fill, model_tables.fill_tables, model_tables.fill_reports, thumbnails.fill):
                fill(self.document, self.env)
            if domain.run.builder.format == "latex":
                latex.narrow(self.document)


def _is_place(node: nodes.Element) -> bool:
    """Whether a directive has left something to fill."""
    return isinstance(node, fxgraph | fxgraph_tables) or "fxgraph" in node or "fxgraph_report" in node


def silent(app: Sphinx, domain: Domain, node: addnodes.pending_xref) -> bool | None:  # noqa: ARG001 - an event handler
    """A class without API docs is no mistake of the author's, even when Sphinx is nitpicky."""
    return True if node.get("fxgraph") else None


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the transform."""
    app.add_post_transform(Fill)
    app.connect("warn-missing-reference", silent)
