"""The thumbnails of a zoo: a collapsed picture of each model, which leads to its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.nodes import make_refnode

from sphinx_fxgraph.render import summary
from sphinx_fxgraph.render.thumbnail import thumbnail
from sphinx_fxgraph.sphinxext.domain import FxDomain, fx_domain

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment


def fill(document: nodes.document, env: BuildEnvironment) -> None:
    """Draw the thumbnails of one page, if it is HTML; a list of names would say nothing beside the table."""
    domain = fx_domain(env)
    builder = domain.run.builder
    for empty in [found for found in document.findall(nodes.bullet_list) if "fxgraph" in found]:
        models = empty.attributes.pop("fxgraph")
        html = builder.format == "html" and builder.name != "epub"
        items = list(_items(domain, models, env.docname)) if html and domain.run.shows else []
        if items:
            empty += items
        else:
            empty.parent.remove(empty)


def _items(domain: FxDomain, models: Sequence[tuple[str, str]], fromdocname: str) -> Iterator[nodes.list_item]:
    named = domain.named()
    for title, name in models:
        docname, use = named.get(name, ("", None))
        record = domain.run.record(use.spec_id) if use else None
        drawn = thumbnail(record, summary.describe(record, domain.run.config.units)) if record else ""
        if use and drawn:
            inside = nodes.inline("", "", nodes.raw("", drawn, format="html"), nodes.inline("", title))
            link = make_refnode(domain.run.builder, fromdocname, docname, use.figure, inside)
            yield nodes.list_item("", nodes.paragraph("", "", link))
