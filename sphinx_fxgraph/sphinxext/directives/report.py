"""The ``fxgraph-report`` directive: every model that the project shows, and how its capture went."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from sphinx_fxgraph.sphinxext.directives.table import captioned
from sphinx_fxgraph.sphinxext.domain import fx_domain

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _only(written: str) -> str:
    return directives.choice(written, ("failed",))


class FxgraphReport(SphinxDirective):
    """``.. fxgraph-report::``: a row a model; with ``:only: failed`` those alone whose capture went wrong."""

    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "caption": directives.unchanged_required,
        "class": directives.class_option,
        "name": directives.unchanged_required,
        "only": _only,
    }

    def run(self) -> list[nodes.Node]:
        """Leave a table without rows: the pages that are read later have models too."""
        domain, docname = fx_domain(self.env), self.env.docname
        domain.tables[docname] = domain.reports[docname] = True
        table = nodes.table("", classes=["fxg-table", "fxg-report", "longtable", *self.options.get("class", ())])
        table["fxgraph_report"] = self.options.get("only", "")
        return [*captioned(self, table)]


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the directive."""
    app.add_directive("fxgraph-report", FxgraphReport)
