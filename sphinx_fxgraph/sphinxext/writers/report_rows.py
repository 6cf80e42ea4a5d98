"""The rows of a report, found when the page is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.nodes import make_refnode

from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.sphinxext import failure
from sphinx_fxgraph.sphinxext.domain import Use, fx_domain
from sphinx_fxgraph.sphinxext.writers import table_rows, tables
from sphinx_fxgraph.text.units import Units

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

_COLUMNS = ("model", "page", "outcome", "tracer", "ops", "holds for")
_FAILED = _COLUMNS[:3]


def fill(document: nodes.document, env: BuildEnvironment) -> None:
    """Give the reports on one page their rows."""
    domain = fx_domain(env)
    run = domain.run
    for table in [table for table in document.findall(nodes.table) if "fxgraph_report" in table]:
        only = table.attributes.pop("fxgraph_report")
        columns = _FAILED if only == "failed" else _COLUMNS
        body, texts = nodes.tbody(), []
        for docname in sorted(domain.uses):
            for use in {(use.figure, use.spec_id): use for use in domain.uses[docname]}.values():
                record = run.record(use.spec_id) if run.shows else None
                if only == "failed" and record is not None and not record.failure:
                    continue
                cells = _cells(use, docname, record, run.config.units)[: len(columns)]
                link = make_refnode(run.builder, env.docname, docname, use.figure, nodes.Text(cells[0]))
                contents = (link, *map(nodes.Text, cells[1:]))
                entries = (nodes.entry("", nodes.paragraph("", "", content)) for content in contents)
                body += nodes.row("", *entries, classes=["fxg-failed"] if record is None or record.failure else [])
                texts.append(cells)
        if texts:
            table += tables.grouped(columns, body, tables.widths(columns, texts, table_rows.WIDEST))
        else:
            told = "every capture went well" if only else "no page shows a model"
            table.replace_self(nodes.paragraph(told, told))


def _cells(use: Use, docname: str, record: Record | None, units: Units) -> tuple[str, ...]:
    """What stands in each column."""
    name = use.name or use.spec.target or use.spec.label
    if record is None:
        return name, docname, "not captured", "", "", ""
    if record.failure:
        expected = "as expected: " if use.expect == "error" else ""
        return name, docname, expected + failure.sentence(record.failure), record.tracer, "", ""
    ops, verdict = (table_rows.CELLS[column](record, units) for column in ("ops", "verdict"))
    return name, docname, "captured", record.tracer, ops, verdict
