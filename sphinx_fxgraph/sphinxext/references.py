"""What stands on a page for a role: found when the page is written, so that text cannot disagree with the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.nodes import make_refnode

from sphinx_fxgraph.record.conventions import CONVENTIONS, macs_text
from sphinx_fxgraph.record.metrics import Measures, by_call, by_module
from sphinx_fxgraph.record.model import Record, join
from sphinx_fxgraph.render import summary
from sphinx_fxgraph.text.ids import anchor
from sphinx_fxgraph.text.units import Units

if TYPE_CHECKING:
    from sphinx.builders import Builder

    from sphinx_fxgraph.sphinxext.domain import FxDomain, ModelUse

UNKNOWN = "unknown"
"""Stands where a capture did not get to what is asked for."""


def resolve(
    domain: FxDomain,
    fromdocname: str,
    builder: Builder,
    role: str,
    target: str,
    contnode: nodes.Element,
    explicit: bool,
) -> nodes.Element | None:
    """Return what replaces a role, or None if there is no such graph, or no such node in it.

    Args:
        domain: knows the graphs.
        fromdocname: the page with the role.
        builder: decides what a link looks like.
        role: ``model``, ``node``, ``params``, ``macs`` or ``shape``.
        target: the name of a graph, or ``name:path``.
        contnode: the text of the role.
        explicit: whether the author gave that text. In a number ``{}`` stands for the digits.
    """
    found = _find(domain, target, fromdocname)
    if found is None:
        return None
    docname, use, path = found
    record = domain.run.record(use.spec_id) if domain.run.shows else None
    if role in ("model", "node"):
        if path and record and record.root and path not in record.paths():
            return None
        if role == "model" and not explicit and use.title and not path:
            contnode = nodes.inline("", use.title, classes=contnode["classes"])
        if not domain.is_shown(use):
            return contnode
        place = _place(record, use, path, builder)
        return make_refnode(builder, fromdocname, docname, place, contnode, path or use.name)
    if record is None:
        return contnode
    units = domain.run.config.units
    said = _shape(record, path) if role == "shape" else _number(record, path, role, units)
    if said is None:
        return None
    if explicit and "{}" in contnode.astext():
        number = said if role == "shape" else said.removesuffix(" parameters").removesuffix("MACs").rstrip()
        said = contnode.astext().replace("{}", number)
    if role == "macs" and builder.format == "html":
        return nodes.abbreviation("", said, explanation=CONVENTIONS[units.convention], classes=["fxg-macs"])
    return nodes.inline("", said, classes=[f"fxg-{role}"])


def _find(domain: FxDomain, target: str, near: str) -> tuple[str, ModelUse, str] | None:
    """Return page and use of a graph, and the path of a node in it."""
    names = domain.named(near=near)
    name, _, path = (target, "", "") if target in names else target.partition(":")
    return (*names[name], path) if name in names else None


def _place(record: Record | None, use: ModelUse, path: str, builder: Builder) -> str:
    """Return the id that a link leads to: of a node where the page has ids for nodes, else of the figure."""
    if not path or not record or not record.root or builder.format != "html":
        return use.figure
    if builder.name != "epub":
        return anchor(use.figure, path)
    # An e-book shows an image. Its table has a row for each operator, but none for modules with an inside.
    return anchor(f"{use.figure}-row", path) if use.rows and is_row(record, path) else use.figure


def is_row(record: Record, path: str) -> bool:
    """Return whether the node table has a row for a path: operators have one, calls with an inside have none."""
    return any(join(outer, node.name) == path and not node.body for outer, _, node in record.walk())


def _number(record: Record, path: str, role: str, units: Units) -> str | None:
    measures = _measures(record, path, units.convention)
    if measures is None:
        return None
    if role == "params":
        return units.parameters(measures.parameters) if record.modules else UNKNOWN
    if record.totals.macs is None:  # it was not run to the end
        return UNKNOWN
    macs = measures.macs or 0
    count = units.macs(macs) if macs or not measures.uncounted else None
    return macs_text(count, measures.uncounted)


def _measures(record: Record, path: str, convention: str) -> Measures | None:
    """Of a module by its path, of an operator or call by its."""
    modules = by_module(record, convention)
    return modules.get(path) or by_call(record, convention).get(path)


def _shape(record: Record, path: str) -> str | None:
    if not path:
        return summary.shapes(record) or UNKNOWN
    return summary.results(record).get(path)
