"""What stands on a page for a role: found when the page is written, so that text cannot disagree with the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.nodes import make_refnode

from sphinx_fxgraph.record.conventions import CONVENTIONS, macs_text
from sphinx_fxgraph.record.metrics import Measures, by_call, by_module
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import summary
from sphinx_fxgraph.text.ids import anchor
from sphinx_fxgraph.text.units import Units

if TYPE_CHECKING:
    from sphinx.builders import Builder

    from sphinx_fxgraph.sphinxext.domain import FxDomain, ModelUse

UNKNOWN = "unknown"
"""Stands where a capture did not get to what is asked for."""


def resolve(
    domain: FxDomain, fromdocname: str, builder: Builder, role: str, target: str, contnode: nodes.Element
) -> nodes.Element | None:
    """What stands on the page for a role, or None if there is no such graph, or no such node in it."""
    found = _find(domain, target)
    if found is None:
        return None
    docname, use, path = found
    record = domain.run.record(use.spec_id) if domain.run.shows else None
    if role in ("model", "node"):
        return _link(record, docname, use, path, fromdocname, builder, contnode)
    if record is None:
        return contnode
    units = domain.run.config.units
    said = _shape(record, path) if role == "shape" else _number(record, path, role, units)
    if said is None:
        return None
    if role == "macs" and builder.format == "html":
        return nodes.abbreviation("", said, explanation=CONVENTIONS[units.convention], classes=["fxg-macs"])
    return nodes.inline("", said, classes=[f"fxg-{role}"])


def _find(domain: FxDomain, target: str) -> tuple[str, ModelUse, str] | None:
    """Page and use of a graph, and the path of a node in it."""
    names = domain.named()
    name, _, path = (target, "", "") if target in names else target.partition(":")
    return (*names[name], path) if name in names else None


def _link(
    record: Record | None,
    docname: str,
    use: ModelUse,
    path: str,
    fromdocname: str,
    builder: Builder,
    contnode: nodes.Element,
) -> nodes.Element | None:
    """A link to the graph or, where a page has ids for them, to a node in it."""
    if path and record and record.root and path not in record.paths():
        return None
    place = anchor(use.figure, path) if path and record and record.root and builder.format == "html" else use.figure
    return make_refnode(builder, fromdocname, docname, place, contnode, path or use.name)


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
