"""The HTML of a graph: inline SVG, in e-books an image; style sheet and script on the pages that need them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from docutils import nodes

from sphinx_fxgraph.options import COLORS
from sphinx_fxgraph.render import document, legend, summary
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.render.dot import model as classic
from sphinx_fxgraph.render.heat import Shares, scale
from sphinx_fxgraph.sphinxext.assets import write
from sphinx_fxgraph.sphinxext.domain import fx_domain
from sphinx_fxgraph.sphinxext.nodes import fxgraph, fxgraph_nodes, fxgraph_tables
from sphinx_fxgraph.sphinxext.source_links import SourceLinks
from sphinx_fxgraph.sphinxext.state import look_of
from sphinx_fxgraph.sphinxext.writers import html_data
from sphinx_fxgraph.sphinxext.writers.static_image import print_svg
from sphinx_fxgraph.tables.data import node_data
from sphinx_fxgraph.text.escape import unique_file_stem, xml
from sphinx_fxgraph.text.ids import ids
from sphinx_fxgraph.text.translate import _
from sphinx_fxgraph.view.dims import named

if TYPE_CHECKING:
    from sphinx.builders.html import StandaloneHTMLBuilder
    from sphinx.writers.html5 import HTML5Translator


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
        write(Path(builder.outdir, builder.imagedir, name), print_svg(run, node))
        source = posixpath.join(builder.imgpath, quote(name))
        writer.body.append(f'<img class="fxg-svg" src="{source}" alt="{xml(description)}" />\n{beside}')
        raise nodes.SkipNode
    picture = compose.scene(job)
    shares = Shares(job.record, run.config.units, node["color"] or run.config.color)
    dot = run.dot_name(node["spec"])
    write(Path(builder.outdir, "_downloads", dot), classic.source(job.record))
    write(Path(builder.outdir, "_downloads", f"{dot.removesuffix('.dot')}.json"), job.record.to_json())
    verdict = job.record.verdict.kind if job.record.verdict else ""
    data = {"data-model": node["target"], "data-tracer": job.record.tracer, "data-verdict": verdict}
    if node["height"]:
        data["data-height"] = node["height"]
    data["data-figure"] = node["prefix"]
    compared = run.compared.get(node["spec"])
    rows = node["rows"] and (True if compared is None else compared.paths)
    insides = compose.insides(job)
    page = html_data.PageData(builder, writer.document, node["prefix"])
    inline = page.put("insides", _inside_data(insides, node, shares, rows is True), data)
    tables = next((each for each in writer.document.findall(fxgraph_tables) if each["figure"] == node["figure"]), None)
    columns, links = _table_of(tables)
    locate = SourceLinks(job.record, run.config.source_url)
    record = named(job.record, job.look.dims)
    page.put("nodes", node_data(record, run.config.units, columns=columns, links=links, locate=locate), data)
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
    )
    if tables:
        tables["drawn"] = ids(drawing)
    explained = _legend(picture, insides, shares) if node["legend"] else ""
    writer.body.append(f'<div class="fxg-view">{drawing}</div>{inline}{page.words()}{explained}</div>\n{beside}')
    raise nodes.SkipNode


def _legend(picture: compose.Frame, insides: Mapping[str, compose.Inside], shares: Shares) -> str:
    """What the colours of boxes mean: kinds, or the shades of shares."""
    if shares.colour == "kind":
        return legend.html_list(picture, (inside.picture for inside in insides.values()))
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


def _table_of(tables: fxgraph_tables | None) -> tuple[Sequence[str], dict[str, str]]:
    """Return the columns of a graph's node table, and the addresses of the documentation of its classes."""
    for table in tables.findall(fxgraph_nodes) if tables else ():
        found = {type_: html_data.address(link) for type_, link in zip(table["types"], table.children, strict=False)}
        return table["columns"], {type_: link for type_, link in found.items() if link}
    return (), {}
