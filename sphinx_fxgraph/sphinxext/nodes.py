"""The two places of a graph in a doctree. They hold plain strings and numbers; the record is looked up when written."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from docutils import nodes

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


def lazy(name: str) -> Callable[..., Any]:
    """Return a function that imports and calls ``module.function`` of this package when it is first called.

    A build that writes no page with a graph does not import what writes them.
    """
    module, _, function = name.rpartition(".")

    def call(*args: Any) -> Any:
        return getattr(importlib.import_module(f"{__package__}.{module}"), function)(*args)

    return call


def setup(app: Sphinx) -> None:
    """Tell Sphinx how they are written; other formats get nodes that they know."""
    app.add_node(fxgraph, html=(lazy("writers.html.visit_fxgraph"), None))
    app.add_node(
        fxgraph_tables, html=(lazy("writers.html_tables.visit_tables"), lazy("writers.html_tables.depart_tables"))
    )
    app.add_node(fxgraph_rows, html=(lazy("writers.html_tables.visit_rows"), lazy("writers.html_tables.depart_rows")))
    app.add_node(fxgraph_nodes, html=(lazy("writers.html_tables.visit_nodes"), None))
