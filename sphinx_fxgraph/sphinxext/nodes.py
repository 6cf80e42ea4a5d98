"""The two places of a graph in a doctree. They hold plain strings and numbers; the record is looked up when written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes

from sphinx_fxgraph.sphinxext.lazy import late

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class fxgraph(nodes.General, nodes.Element):  # noqa: N801 - docutils names nodes after their tags
    """The drawing, inside a figure.

    Attributes: ``spec`` (id), ``target``, ``look`` (options), ``figure`` (id), ``alt``, ``height``, ``legend``,
    ``rows`` (whether there is a node table).
    """


class fxgraph_tables(nodes.General, nodes.Element):  # noqa: N801
    """What is told behind the figure: a failure, the stages, the node table.

    Attributes: ``spec`` (id), ``look`` (options), ``figure`` (id), ``table`` (columns), ``title``, ``stages``.
    """


class fxgraph_rows(nodes.General, nodes.Element):  # noqa: N801
    """The part of it that opens on a click: a table with ``rows`` (number)."""


class fxgraph_nodes(nodes.General, nodes.Element):  # noqa: N801
    """The node table in HTML, made when a page is written and never kept.

    Inside are links to the classes of ``types``, in their order, and the words for the search.
    Attributes: ``types`` (dotted paths), ``groups`` (rows of each body), ``columns`` (names).
    """


def setup(app: Sphinx) -> None:
    """Tell Sphinx how they are written; other formats get nodes that they know."""
    app.add_node(fxgraph, html=(late("writers.html.visit_fxgraph"), None))
    app.add_node(
        fxgraph_tables, html=(late("writers.html_tables.visit_tables"), late("writers.html_tables.depart_tables"))
    )
    app.add_node(fxgraph_rows, html=(late("writers.html_tables.visit_rows"), late("writers.html_tables.depart_rows")))
    app.add_node(fxgraph_nodes, html=(late("writers.html_tables.visit_nodes"), None))
