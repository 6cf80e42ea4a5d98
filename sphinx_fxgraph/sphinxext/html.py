"""The HTML of a graph: inline SVG, tables, and the data that the viewer loads."""

from __future__ import annotations

import functools
import hashlib
import posixpath
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from docutils import nodes
from sphinx.locale import get_translation

from sphinx_fxgraph.escape import file_stem, ids, json_block, nearest, unique_file_stem, xml
from sphinx_fxgraph.options import COLORS
from sphinx_fxgraph.render import colors, document, summary
from sphinx_fxgraph.render import dot as dot_export
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.render.colors import Shares, scale
from sphinx_fxgraph.render.html_page import node_data
from sphinx_fxgraph.render.node_table import node_table
from sphinx_fxgraph.sphinxext import sphinx_private
from sphinx_fxgraph.sphinxext.assets import write
from sphinx_fxgraph.sphinxext.domain import fx_domain
from sphinx_fxgraph.sphinxext.nodes import (
    fxgraph,
    fxgraph_facts,
    fxgraph_links,
    fxgraph_nodes,
    fxgraph_rows,
    fxgraph_tables,
)
from sphinx_fxgraph.sphinxext.source_links import SourceLinks
from sphinx_fxgraph.sphinxext.state import look_of
from sphinx_fxgraph.sphinxext.static_image import print_svg
from sphinx_fxgraph.view.annotations import named
from sphinx_fxgraph.words import VIEWER_WORDS, _

if TYPE_CHECKING:
    from sphinx.builders.html import StandaloneHTMLBuilder
    from sphinx.writers.html5 import HTML5Translator


CATALOG = "sphinx_fxgraph"
"""Of the translations."""
_MOST_INLINE = 48_000
"""Characters of one block of data in a page."""
_ROW = 500
"""Characters of a row of a node table, about."""
_MOST_ON_PAGE = 100_000
"""Characters of all data and tables in a page."""


class PageData:
    """Puts data of one graph into the page, or into a file beside it.

    Args:
        builder: of the site.
        document: the page.
        prefix: what the graph's ids start with.
    """

    def __init__(self, builder: StandaloneHTMLBuilder, document: nodes.document, prefix: str) -> None:
        self._builder, self._document, self._prefix = builder, document, prefix

    def put(self, kind: str, value: Any, attributes: dict[str, str]) -> str:
        """Return a block for the page; if it is too large, write a file and note its address in ``data-<kind>``.

        Args:
            kind: what it is called; ``nodes`` are always a file, since not every reader asks for them.
            value: plain data; nothing is written for an empty one.
            attributes: of the graph's element.
        """
        if not value:
            return ""
        content = json_block(value)
        if kind != "nodes" and self._takes(len(content)):
            return f'<script type="application/json" class="fxg-{kind}">{content}</script>'
        name = self._name(content, f"{kind}.js")
        script = f"(globalThis.fxgraphData ??= {{}})[{json_block(name)}] = {content};\n"
        write(Path(self._builder.outdir, "_static", "fxgraph", name), script)
        attributes[f"data-{kind}"] = self._address(name)
        return ""

    def table_page(self, rows: int) -> str:
        """Return the address of a page of its own for a table that is too large for this one, else nothing.

        Args:
            rows: how many the table has.
        """
        if self._builder.name == "epub" or self._takes(rows * _ROW):
            return ""
        place = f"{sphinx_private.written_page(self._builder)}#{self._prefix}"
        return self._address(self._name(place, "html"))

    def write_table(self, address: str, content: str, title: str) -> None:
        """Write the page of a table.

        Args:
            address: as `table_page` has given it.
            content: HTML.
            title: of the page.
        """
        builder = self._builder
        base = "../../" + builder.get_target_uri(sphinx_private.written_page(builder))
        style = self._address("../fxgraph.css")
        content = _PAGE.format(base=quote(base), style=style, title=xml(title), content=content)
        write(Path(builder.outdir, "_static", "fxgraph", unquote(posixpath.basename(address))), content)

    def _takes(self, size: int) -> bool:
        """Return whether there is room for more characters in the page, and take it."""
        taken = self._document.get("fxgraph-data", 0)
        if size > _MOST_INLINE or taken + size > _MOST_ON_PAGE:
            return False
        self._document["fxgraph-data"] = taken + size
        return True

    def words(self) -> str:
        """Return the viewer's words in the language of the project, once in a page; nothing in English."""
        translate = get_translation(CATALOG)
        words = {word: said for word in VIEWER_WORDS if (said := translate(word)) != word}
        if not words or self._document.get("fxgraph-words"):
            return ""
        self._document["fxgraph-words"] = True
        return f'<script type="application/json" class="fxg-words">{json_block(words)}</script>'

    def _name(self, content: str, suffix: str) -> str:
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        return f"{file_stem(self._prefix)}-{digest}.{suffix}"

    def _address(self, name: str) -> str:
        folder = posixpath.join(sphinx_private.image_path(self._builder), "..", "_static", "fxgraph")
        return posixpath.normpath(posixpath.join(folder, quote(name)))


def address(link: nodes.Node) -> str:
    """Return the address of a resolved reference; empty for anything else."""
    if not isinstance(link, nodes.reference):
        return ""
    return str(link.get("refuri") or f"#{link['refid']}")


_PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><base href="{base}"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="{style}"></head>
<body class="fxg-table-page"><h1>{title}</h1>
<div class="fxg-tables">{content}</div></body></html>
"""


_OPEN_ROWS = 30
"""A table of no more rows than this is open when the page loads."""


def visit_facts(writer: HTML5Translator, node: fxgraph_facts) -> None:
    """Begin the facts line."""
    writer.body.append(writer.starttag(node, "p", ""))


def depart_facts(writer: HTML5Translator, node: fxgraph_facts) -> None:  # noqa: ARG001 - a visitor
    """End it."""
    writer.body.append("</p>\n")


def visit_tables(writer: HTML5Translator, node: fxgraph_tables) -> None:
    """Write the elements around the tables, if there are any."""
    if all(isinstance(child, fxgraph_links) for child in node.children):
        raise nodes.SkipNode
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
        written=functools.partial(_linked, _links_of(tables)),
    )
    if page := tables.get("page"):
        title = f"{tables['title']}: {tables['figure']}"
        PageData(writer.builder, writer.document, tables["prefix"]).write_table(page, table, title)
        table = f'<p><a class="fxg-whole" href="{xml(page)}">{xml(title)}</a></p>\n'
    writer.body.append(table)
    raise nodes.SkipNode


def _nearest(tables: fxgraph_tables) -> Callable[[str], str]:
    """Return a function that maps a path to the place in the drawing that it leads to."""
    return functools.partial(
        nearest, prefix=tables["prefix"], drawn=tables.get("drawn", frozenset()), figure=tables["figure"]
    )


def _links_of(tables: fxgraph_tables | None) -> dict[str, nodes.Node]:
    """Return what stands for the documentation of classes and functions of a graph, by dotted path."""
    for links in tables.findall(fxgraph_links) if tables else ():
        return dict(zip(links["names"], links.children, strict=False))
    return {}


def visit_links(writer: HTML5Translator, node: fxgraph_links) -> None:  # noqa: ARG001 - a visitor
    """Nothing: the tables and the drawing have the links."""
    raise nodes.SkipNode


def _linked(found: Mapping[str, nodes.Node], path: str, name: str) -> str:
    """Return the name of a class or function with a link to its API docs, if they were found."""
    link = found.get(path)
    if not isinstance(link, nodes.reference):
        return xml(name)
    kind = "internal" if link.get("internal") else "external"
    address = xml(link.get("refuri") or f"#{link['refid']}")
    title = f' title="{xml(link["reftitle"])}"' if "reftitle" in link else ""
    return f'<a class="reference {kind}" href="{address}"{title}>{xml(name)}</a>'


def visit_fxgraph(writer: HTML5Translator, node: fxgraph) -> None:
    """The drawing."""
    builder: StandaloneHTMLBuilder = writer.builder
    run = fx_domain(builder.env).run
    (job,) = run.jobs(node["spec"], look_of(node["look"]))
    description = node["alt"] or summary.describe(job.record)
    remark = compose.remark(job)
    beside = f'<p class="fxg-remark">{xml(remark)}</p>\n' if remark else ""
    if builder.name == "epub":  # its manifest cannot declare inline SVG
        name = f"fxgraph-{unique_file_stem(node['figure'])}.svg"
        write(Path(builder.outdir, sphinx_private.image_folder(builder), name), print_svg(run, node))
        source = posixpath.join(sphinx_private.image_path(builder), quote(name))
        writer.body.append(f'<img class="fxg-svg" src="{source}" alt="{xml(description)}" />\n{beside}')
        raise nodes.SkipNode
    picture = compose.scene(job)
    shares = Shares(job.record, run.config.units, node["color"] or run.config.color)
    dot = run.dot_name(node["spec"])
    write(Path(builder.outdir, "_downloads", dot), dot_export.source(job.record))
    write(Path(builder.outdir, "_downloads", f"{dot.removesuffix('.dot')}.json"), job.record.to_json())
    verdict = job.record.verdict.kind if job.record.verdict else ""
    data = {"data-model": node["target"], "data-tracer": job.record.tracer, "data-verdict": verdict}
    if node["height"]:
        data["data-height"] = node["height"]
    data["data-figure"] = node["prefix"]
    compared = run.compared.get(node["spec"])
    rows = node["rows"] and (True if compared is None else compared.paths)
    insides = compose.insides(job)
    page = PageData(builder, writer.document, node["prefix"])
    inline = page.put("insides", _inside_data(insides, node, shares, rows is True), data)
    tables = next((each for each in writer.document.findall(fxgraph_tables) if each["figure"] == node["figure"]), None)
    columns = next((table["columns"] for table in tables.findall(fxgraph_nodes)), ()) if tables else ()
    links = {name: place for name, link in _links_of(tables).items() if (place := address(link))}
    locate = SourceLinks(job.record, run.config.source_url)
    record = named(job.record, job.look.dims)
    measures = shares.measures if record is job.record else None
    found = node_data(record, run.config.units, columns=columns, links=links, locate=locate, measures=measures)
    page.put("nodes", found, data)
    if tables and (groups := [group for table in tables.findall(fxgraph_nodes) for group in table["groups"]]):
        tables["page"] = page.table_page(sum(len(group.rows) for group in groups))
    writer.body.append(writer.starttag(node, "div", "", CLASS="fxg-graph", **data))
    drawing = document.page_svg(
        picture,
        figure=node["prefix"],
        title=node["target"],
        description=description,
        shares=shares,
        rows=rows,
        table=tables.get("page", "") if tables else "",
        links=links,
    )
    if tables:
        tables["drawn"] = ids(drawing)
    explained = _legend(picture, insides, shares) if node["legend"] else ""
    writer.body.append(f'<div class="fxg-view">{drawing}</div>{inline}{page.words()}{explained}</div>\n{beside}')
    raise nodes.SkipNode


def _legend(picture: compose.Frame, insides: Mapping[str, compose.Inside], shares: Shares) -> str:
    """Return the legend of the colours: kinds of operators, or shades of shares."""
    if shares.colour == "kind":
        return colors.html_list(picture, (inside.picture for inside in insides.values()))
    swatches = (f'<span class="fxg-swatch fxg-share-{number}">{xml(text)}</span>' for number, text in scale())
    heading = xml(_("Share of all {}", _(COLORS[shares.colour])))
    return f'<p class="fxg-shades">{heading}: {" ".join(swatches)}</p>'


def _inside_data(
    insides: Mapping[str, compose.Inside], node: fxgraph, shares: Shares, rows: bool
) -> dict[str, dict[str, object]]:
    """Return what the viewer opens closed modules with."""
    return {
        name: document.inside_svg(inside, figure=node["prefix"], shares=shares.inside(name), rows=rows)
        for name, inside in insides.items()
    }
