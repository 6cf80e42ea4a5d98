"""The thumbnails of a zoo: a collapsed picture of each model, which leads to its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

from sphinx_fxgraph.drawing.svg.thumbnail import thumbnail
from sphinx_fxgraph.drawing.text import summary
from sphinx_fxgraph.sphinxext.domain import FxDomain, fx_domain
from sphinx_fxgraph.sphinxext.html import link_static
from sphinx_fxgraph.sphinxext.table import Entry

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def place(rows: Sequence[Entry]) -> nodes.Element:
    """Where the thumbnails of some models are to stand; they are drawn when the page is written."""
    found = nodes.bullet_list(bullet="*", classes=["fxgraph", "fxg-thumbs"])
    found["fxgraph"] = [(row.title, row.text) for row in rows]
    return found


class FillThumbnails(SphinxPostTransform):
    """Pages of the html builders get them; a list of names would say nothing beside the table."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:  # noqa: ARG002 - as Sphinx calls it
        """Draw the thumbnails of one page."""
        domain = fx_domain(self.env)
        for empty in [found for found in self.document.findall(nodes.bullet_list) if "fxgraph" in found]:
            models = empty.attributes.pop("fxgraph")
            html = self.app.builder.format == "html" and self.app.builder.name != "epub"
            items = list(self._items(domain, models)) if html and domain.run.shows else []
            if items:
                empty += items
            else:
                empty.parent.remove(empty)

    def _items(self, domain: FxDomain, models: Sequence[tuple[str, str]]) -> Iterator[nodes.list_item]:
        named = domain.named()
        for title, name in models:
            docname, use = named.get(name, ("", None))
            record = domain.run.record(use.spec_id) if use else None
            drawn = thumbnail(record, summary.describe(record, domain.run.config.units)) if record else ""
            if use and drawn:
                inside = nodes.inline("", "", nodes.raw("", drawn, format="html"), nodes.inline("", title))
                link = make_refnode(self.app.builder, self.env.docname, docname, use.figure, inside)
                yield nodes.list_item("", nodes.paragraph("", "", link))


def add_assets(app: Sphinx, *page: Any) -> None:
    """Link what the drawings have; the script finds out whether the page is dark."""
    link_static(app, page, nodes.bullet_list, "fxg-thumbs", "fxgraph")


def setup(app: Sphinx) -> None:
    """Tell Sphinx what draws them."""
    app.add_post_transform(FillThumbnails)
    app.connect("html-page-context", add_assets)
