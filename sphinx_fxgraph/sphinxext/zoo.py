"""The ``fxgraph-zoo`` directive, which puts a zoo's index on a page, with thumbnails."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from sphinx_fxgraph.sphinxext.domain import FxDomain, fx_domain
from sphinx_fxgraph.sphinxext.messages import warn
from sphinx_fxgraph.sphinxext.table import DEFAULT, model_table, parse_columns
from sphinx_fxgraph.sphinxext.table import Entry as Row

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

    from sphinx_fxgraph.sphinxext.state import Run
    from sphinx_fxgraph.sphinxext.zoo_pages import Page


def generate(app: Sphinx) -> None:
    """Write the pages of all zoos, if there are any."""
    fx_domain(app.env).run.zoos = {}
    if app.config.fxgraph_zoo:
        from sphinx_fxgraph.sphinxext import zoo_pages

        zoo_pages.generate(app)


class FxgraphZoo(SphinxDirective):
    """``.. fxgraph-zoo:: NAME``: a table of the zoo's models and a toctree of their pages."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {
        "caption": directives.unchanged_required,
        "class": directives.class_option,
        "columns": parse_columns,
        "hidden": directives.flag,
        "maxdepth": directives.nonnegative_int,
        "name": directives.unchanged_required,
        "no-thumbnails": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Leave table, thumbnails and toctree, and note which list they were made from."""
        domain = fx_domain(self.env)
        name = self.arguments[0].strip()
        domain.zoos.setdefault(self.env.docname, {})[name] = _digest(domain.run, name)
        pages = domain.run.zoos.get(name)
        if pages is None:
            self.env.note_reread()
            known = ", ".join(sorted(domain.run.zoos)) or "none"
            warn(f"no zoo is called {name!r}; there are {known}", "option", self.get_location())
            return []
        rows = [Row(page.title, page.graph, "") for page in pages]
        table = model_table(self, rows, self.options.get("columns", DEFAULT))
        pictures = [] if "no-thumbnails" in self.options else [_thumbnails(rows)]
        return [*table, *pictures, self._toctree(pages)]

    def _toctree(self, pages: Sequence[Page]) -> nodes.Node:
        docnames = [page.docname for page in pages if self.env.doc2path(page.docname, base=False)]
        tree = addnodes.toctree()
        tree["parent"] = self.env.docname
        tree["entries"] = [(None, docname) for docname in docnames]
        tree["includefiles"] = docnames
        tree["maxdepth"] = self.options.get("maxdepth", 1)
        tree["caption"] = None
        tree["glob"] = tree["titlesonly"] = tree["includehidden"] = False
        tree["hidden"] = "hidden" in self.options
        tree["numbered"] = 0
        self.set_source_info(tree)
        return nodes.compound("", tree, classes=["toctree-wrapper"])


def _thumbnails(rows: Sequence[Row]) -> nodes.Element:
    """Where the thumbnails of some models are to stand; they are drawn when the page is written."""
    found = nodes.bullet_list(bullet="*", classes=["fxgraph", "fxg-thumbs"])
    found["fxgraph"] = [(row.title, row.text) for row in rows]
    return found


def _digest(run: Run, name: str) -> str:
    pages = [vars(page) for page in run.zoos.get(name, ())]
    return hashlib.sha256(json.dumps(pages, sort_keys=True).encode()).hexdigest()


def outdated(
    app: Sphinx,  # noqa: ARG001 - an event handler
    env: BuildEnvironment,
    added: set[str],  # noqa: ARG001 - an event handler
    changed: set[str],  # noqa: ARG001 - an event handler
    removed: set[str],
) -> list[str]:
    """The pages with an index of a zoo that has other models now."""
    domain = fx_domain(env)
    return [
        docname
        for docname, zoos in domain.zoos.items()
        if docname not in removed and any(_digest(domain.run, name) != then for name, then in zoos.items())
    ]


def setup(app: Sphinx) -> None:
    """Tell Sphinx of pages and directive. The pages are written once the cache is known."""
    app.add_config_value("fxgraph_zoo", {}, "", (dict,), "Pages made from registries, by the zoo's name")
    app.add_directive("fxgraph-zoo", FxgraphZoo)
    app.connect("builder-inited", generate, priority=600)
    app.connect("env-get-outdated", outdated)


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
    from sphinx_fxgraph.render import summary
    from sphinx_fxgraph.render.thumbnail import thumbnail

    named = domain.named()
    for title, name in models:
        docname, use = named.get(name, ("", None))
        record = domain.run.record(use.spec_id) if use else None
        drawn = thumbnail(record, summary.describe(record, domain.run.config.units)) if record else ""
        if use and drawn:
            inside = nodes.inline("", "", nodes.raw("", drawn, format="html"), nodes.inline("", title))
            link = make_refnode(domain.run.builder, fromdocname, docname, use.figure, inside)
            yield nodes.list_item("", nodes.paragraph("", "", link))
