"""The two places of a graph in a doctree. They hold plain strings and numbers; the record is looked up when written."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes

from sphinx_fxgraph.sphinxext import sphinx_private

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class fxgraph(addnodes.translatable, nodes.General, nodes.Element):  # noqa: N801 - docutils names nodes after their tags
    """The drawing, inside a figure.

    Attributes: ``spec`` (id), ``target``, ``look`` (options), ``figure`` (id), ``alt``, ``height``, ``legend``,
    ``rows`` (whether there is a node table).
    """

    def preserve_original_messages(self) -> None:
        """Keep the text of ``:alt:`` as the author wrote it, the key of its translation."""
        if self["alt"]:
            self["rawalt"] = self["alt"]

    def apply_translated_message(self, original_message: str, translated_message: str) -> None:
        """Replace the text of ``:alt:`` by its translation."""
        if self.get("rawalt") == original_message:
            self["alt"] = translated_message

    def extract_original_messages(self) -> list[str]:
        """Return the texts to translate."""
        return [self["rawalt"]] if self.get("rawalt") else []


class fxgraph_facts(nodes.Invisible, nodes.TextElement):  # noqa: N801 - docutils names node classes in lower case
    """The facts line in HTML. As the tables it is invisible to extensions that sum a page up, such as opengraph."""


class fxgraph_tables(nodes.Invisible, nodes.Element):  # noqa: N801 - docutils names node classes in lower case
    """The parts behind the figure: a failure, the stages, the node table.

    Attributes: ``spec`` (id), ``look`` (options), ``figure`` (id), ``table`` (columns), ``title``, ``stages``.
    """


class fxgraph_rows(nodes.General, nodes.Element):  # noqa: N801 - docutils names node classes in lower case
    """The part of it that opens on a click: a table with ``rows`` (number)."""


class fxgraph_nodes(nodes.General, nodes.Element):  # noqa: N801 - docutils names node classes in lower case
    """The node table in HTML, made when a page is written and never kept.

    Attributes: ``groups`` (rows of each body), ``columns`` (names).
    """


class fxgraph_links(nodes.Invisible, nodes.Element):  # noqa: N801 - docutils names node classes in lower case
    """Links from a graph to the documentation of its classes and functions, and the words for the search.

    Attributes: ``names`` (dotted paths, in the order of the links).
    """


def maker(target: str) -> str:
    """Return the dotted name of the class or function that a target calls."""
    found = re.match(r"[\w.:]+", target)
    return found[0].replace(":", ".") if found else ""


def described_names(part: nodes.Element) -> list[str]:
    """Return the dotted names of the classes and functions of Python that a part of a page describes."""
    names: dict[str, None] = {}
    for described in part.findall(addnodes.desc):
        if described.get("domain") == "py" and described["objtype"] in ("class", "function"):
            for signature in described.children:
                if isinstance(signature, addnodes.desc_signature):
                    names[".".join(filter(None, (signature.get("module"), signature.get("fullname"))))] = None
    return list(names)


def lazy(name: str) -> Callable[..., Any]:
    """Return a function that imports and calls ``module.function`` of this package when it is first called.

    A build that writes no page with a graph does not import what writes them.
    """
    module, _, function = name.rpartition(".")

    def call(*args: Any) -> Any:
        return getattr(importlib.import_module(f"{__package__}.{module}"), function)(*args)

    return call


_WRITERS: dict[type[nodes.Element], tuple[str, str]] = {
    fxgraph: ("html.visit_fxgraph", ""),
    fxgraph_facts: ("html.visit_facts", "html.depart_facts"),
    fxgraph_tables: ("html.visit_tables", "html.depart_tables"),
    fxgraph_rows: ("html.visit_rows", "html.depart_rows"),
    fxgraph_nodes: ("html.visit_nodes", ""),
    fxgraph_links: ("html.visit_links", ""),
}


def add_to_builder(app: Sphinx) -> None:
    """Register the nodes for the builder by its name too, if any other extension has done so."""
    known = sphinx_private.handlers_of_builder(app)
    if app.builder.format == "html" and known is not None:
        for node, (visit, depart) in _WRITERS.items():
            known.setdefault(node.__name__, (lazy(visit), lazy(depart) if depart else None))


def setup(app: Sphinx) -> None:
    """Register how the nodes are written; in other formats they are replaced by nodes of docutils."""
    for node, (visit, depart) in _WRITERS.items():
        app.add_node(node, html=(lazy(visit), lazy(depart) if depart else None))
    app.connect("builder-inited", add_to_builder)
