"""The HTML of the tables behind a graph; the node table is written from its rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from docutils import nodes

from sphinx_fxgraph.sphinxext.domain import fx_domain
from sphinx_fxgraph.sphinxext.nodes import fxgraph_facts, fxgraph_nodes, fxgraph_rows, fxgraph_tables
from sphinx_fxgraph.sphinxext.writers.html_data import PageData
from sphinx_fxgraph.tables.html import node_table
from sphinx_fxgraph.text.escape import xml
from sphinx_fxgraph.text.ids import nearest
from sphinx_fxgraph.text.translate import _

if TYPE_CHECKING:
    from sphinx.writers.html5 import HTML5Translator

_OPEN_ROWS = 30
"""A table of no more rows than this is open when the page loads."""


def visit_facts(writer: HTML5Translator, node: fxgraph_facts) -> None:
    """Begin the facts line."""
    writer.body.append(writer.starttag(node, "p", ""))


def depart_facts(writer: HTML5Translator, node: fxgraph_facts) -> None:  # noqa: ARG001 - a visitor
    """End it."""
    writer.body.append("</p>\n")


def visit_tables(writer: HTML5Translator, node: fxgraph_tables) -> None:
    """What goes around the tables."""
    for link in node.findall(nodes.reference):
        if "path" in link:
            link["refid"] = _nearest(node)(link["path"])
    data = {"data-figure": node["figure"], "data-prefix": node["prefix"]}
    writer.body.append(writer.starttag(node, "div", "", CLASS="fxg-tables", **data))


def depart_tables(writer: HTML5Translator, node: fxgraph_tables) -> None:  # noqa: ARG001 - a visitor
    """End what was begun."""
    writer.body.append("</div>\n")


def visit_rows(writer: HTML5Translator, node: fxgraph_rows) -> None:
    """A table can be long: it opens on a click."""
    is_open = ' open="open"' if node["rows"] <= _OPEN_ROWS else ""
    of_nodes = any(isinstance(child, fxgraph_nodes) for child in node.children)
    classes = ' class="fxg-node-rows"' if of_nodes else ""
    title = _("{} ({} rows)", _(node.parent["title"]), node["rows"])
    writer.body.append(f"<details{classes}{is_open}><summary>{xml(title)}</summary>\n")


def depart_rows(writer: HTML5Translator, node: fxgraph_rows) -> None:  # noqa: ARG001 - a visitor
    """End what was begun."""
    writer.body.append("</details>\n")


def visit_nodes(writer: HTML5Translator, node: fxgraph_nodes) -> None:
    """Write the node table; a large one in a page of its own, which the viewer's table takes the place of."""
    tables = node.parent.parent
    assert isinstance(tables, fxgraph_tables)
    table = node_table(
        node["groups"],
        node["columns"],
        fx_domain(writer.builder.env).run.config.units,
        prefix=tables["prefix"],
        drawn=_nearest(tables),
        written=functools.partial(_linked, dict(zip(node["types"], node.children, strict=False))),
    )
    if page := tables.get("page"):
        title = f"{tables['title']}: {tables['figure']}"
        PageData(writer.builder, writer.document, tables["prefix"]).write_table(page, table, title)
        table = f'<p><a class="fxg-whole" href="{xml(page)}">{xml(title)}</a></p>\n'
    writer.body.append(table)
    raise nodes.SkipNode


def _nearest(tables: fxgraph_tables) -> Callable[[str], str]:
    """What gives the place in the drawing that a path leads to."""
    return functools.partial(
        nearest, prefix=tables["prefix"], drawn=tables.get("drawn", frozenset()), figure=tables["figure"]
    )


def _linked(found: dict[str, nodes.Node], path: str, name: str) -> str:
    """The name of a class with a link to its API docs, if they were found."""
    link = found[path]
    if not isinstance(link, nodes.reference):
        return xml(name)
    kind = "internal" if link.get("internal") else "external"
    address = xml(link.get("refuri") or f"#{link['refid']}")
    title = f' title="{xml(link["reftitle"])}"' if "reftitle" in link else ""
    return f'<a class="reference {kind}" href="{address}"{title}>{xml(name)}</a>'
