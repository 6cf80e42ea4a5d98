"""The rows of tables of models and of reports, looked up when the page is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from docutils import nodes
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

from sphinx_fxgraph.record.conventions import macs_of, macs_text
from sphinx_fxgraph.record.metrics import depth
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import summary
from sphinx_fxgraph.sphinxext import messages
from sphinx_fxgraph.sphinxext.directives.table import NUMBERS, Entry
from sphinx_fxgraph.sphinxext.domain import FxDomain, ModelUse, fx_domain
from sphinx_fxgraph.sphinxext.writers import nested, tables
from sphinx_fxgraph.tables import stages, variants
from sphinx_fxgraph.text.translate import _, mark
from sphinx_fxgraph.text.units import Units

if TYPE_CHECKING:
    from sphinx.builders import Builder
    from sphinx.environment import BuildEnvironment

logger = logging.getLogger(__name__)

WIDEST = 40
"""Characters of a column, where a writer goes by characters."""


class Model(NamedTuple):
    """A row: what it is called, where its graph stands, and what is known of it."""

    title: str
    place: tuple[str, str] | None
    """Docname and id of its graph, if any page shows it."""
    record: Record | None


def fill_tables(document: nodes.document, env: BuildEnvironment) -> None:
    """Give the tables of one page their rows."""
    domain = fx_domain(env)
    units = domain.run.config.units
    link = _Linker(domain.run.builder, env.docname)
    for table in [table for table in document.findall(nodes.table) if "fxgraph" in table]:
        asked = table.attributes.pop("fxgraph")
        models = list(_models(domain, [Entry(*row) for row in asked["rows"]], table, env.docname))
        if not models:
            table.parent.remove(table)
        elif asked["compare"]:
            table += _compared(models, units, link)
        else:
            table += _listed(models, asked["columns"], units, link)
        nested.flatten(table, domain.run.builder.format)


def _models(domain: FxDomain, entries: Sequence[Entry], table: nodes.table, docname: str) -> Iterator[Model]:
    """Yield the rows, each graph once: those of a pattern in the order of the pages, or of the one page they are on."""
    run, listed = domain.run, set()
    shown = {use.spec_id: (page, use.figure) for page, use in reversed(list(_figures(domain)))}
    position = _positions(domain)
    for entry in entries:
        named = domain.named(entry.text, near=docname)
        exact = {entry.text: named[entry.text]} if entry.text in named else named
        titles = Counter(use.title for _, use in exact.values())
        for name in sorted(exact, key=lambda name: (*position[exact[name][1].location], _natural(name))):
            page, use = exact[name]
            if name not in listed:
                listed.add(name)
                record = run.record(use.spec_id) if run.shows else None
                title = use.title if use.title and titles[use.title] == 1 else name
                place = (page, use.figure) if domain.is_shown(use) else None
                yield Model((len(exact) == 1 and entry.title) or title, place, record)
        if not exact and entry.spec:
            record = run.record(entry.spec) if run.shows else None
            spec = run.specs.get(entry.spec)
            yield Model(entry.title or (spec.label if spec else entry.text), shown.get(entry.spec), record)
        elif not exact:
            logger.warning("undefined graph: %s", entry.text, type="ref", subtype="model", location=table)


def _figures(domain: FxDomain) -> Iterator[tuple[str, ModelUse]]:
    """Yield the uses that have a graph on their page."""
    for docname in sorted(domain.uses):
        yield from ((docname, use) for use in domain.uses[docname] if use.figure and domain.is_shown(use))


def _positions(domain: FxDomain) -> dict[str, tuple[int, int]]:
    """Return where each use stands, by its location: the number of the page in the toctrees, and on the page."""
    pages: dict[str, int] = {}
    pending = [domain.env.config.root_doc]
    while pending:
        docname = pending.pop()
        if docname not in pages:
            pages[docname] = len(pages)
            pending.extend(reversed(domain.env.toctree_includes.get(docname, ())))
    return {
        use.location: (pages.get(docname, len(pages)), number if docname in pages else 0)
        for docname, uses in domain.uses.items()
        for number, use in enumerate(uses)
    }


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that puts ``resnet18`` before ``resnet101``."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


class _Linker:
    """Names that lead to graphs."""

    def __init__(self, builder: Builder, docname: str) -> None:
        self.builder, self.docname = builder, docname

    def name(self, model: Model) -> nodes.Node:
        """The model's name."""
        shown = nodes.Text(model.title)
        if model.place is None:
            return shown
        docname, figure = model.place
        return make_refnode(self.builder, self.docname, docname, figure, shown, model.title)


def _listed(models: Sequence[Model], columns: Sequence[str], units: Units, link: _Linker) -> nodes.tgroup:
    body = nodes.tbody()
    texts = []
    for model in models:
        cells = [CELLS[column](model.record, units) if column in CELLS and model.record else "" for column in columns]
        texts.append([model.title if column == "name" else cell for column, cell in zip(columns, cells, strict=True)])
        row = nodes.row()
        for column, cell in zip(columns, cells, strict=True):
            content = link.name(model) if column == "name" else nodes.Text(cell)
            classes = ["fxg-number"] if column in NUMBERS else []
            row += nodes.entry("", nodes.paragraph("", "", content), classes=classes)
        body += row
    return tables.grouped(columns, body, tables.widths(columns, texts, WIDEST))


def _compared(models: Sequence[Model], units: Units, link: _Linker) -> nodes.tgroup:
    """Stages below each other, models side by side, their totals at the end."""
    records = [model.record or Record(spec={}, tracer="") for model in models]
    body = nodes.tbody()
    widths = [len("activations"), *(len(model.title) for model in models)]

    def add(head: str, cells: Sequence[Sequence[str]], classes: Sequence[str] = ()) -> None:
        row = nodes.row("", nodes.entry("", nodes.paragraph("", head), classes=["fxg-stage"]), classes=[*classes])
        widths[0] = max(widths[0], len(head))
        for number, lines in enumerate(cells, 1):
            row += nodes.entry("", *(nodes.paragraph("", line) for line in lines if line))
            widths[number] = max([widths[number], *map(len, lines)])
        body.append(row)

    for name, found in variants.aligned([stages.stages(record) for record in records]):
        add(name, [(stage.made_of, stage.output) if stage else () for stage in found])
    for column in ("parameters", "MACs", "depth"):
        add(_(column), [(CELLS[column](record, units),) for record in records], ["fxg-total"])
    group = tables.grouped(["", *(model.title for model in models)], body, [min(width, WIDEST) for width in widths])
    heads = list(group.findall(nodes.entry))[1 : len(models) + 1]
    for head, model in zip(heads, models, strict=True):
        head[0] = nodes.paragraph("", "", link.name(model))
    return group


# -- the cells


def _about_macs(record: Record, units: Units) -> str:
    macs = macs_of(record.totals, units.convention)
    return macs_text(None if macs is None else units.macs(macs), record.totals.uncounted)


def _activations(record: Record, units: Units) -> str:
    size = record.totals.activation_bytes
    return "" if size is None else units.bytes(size)


def _verdict(record: Record, units: Units) -> str:  # noqa: ARG001 - as all cells
    if record.failure:
        return messages.title(record.failure)
    return _(_VERDICTS.get(record.verdict.kind, record.verdict.kind)) if record.verdict else ""


_VERDICTS = {"same": mark("every input"), "sizes": mark("every input, sizes vary"), "path": mark("one path")}
"""What the graph holds for: in a table there is no room for the sentence that the facts line has."""

Cell = Callable[[Record, Units], str]

CELLS: dict[str, Cell] = {
    "parameters": lambda record, units: units.count(record.totals.parameters) if record.modules else "",
    "trainable": lambda record, units: units.count(record.totals.trainable) if record.modules else "",
    "buffers": lambda record, units: units.count(record.totals.buffers) if record.modules else "",
    "size": lambda record, units: units.bytes(record.totals.bytes) if record.modules else "",
    "MACs": _about_macs,
    "activations": _activations,
    "depth": lambda record, _: str(depth(record)) if record.root and not record.failure else "",
    "ops": lambda record, units: units.count(record.operators) if record.root and not record.failure else "",
    "input": lambda record, _: summary.ends(record)[0],
    "output": lambda record, _: summary.ends(record)[1],
    "verdict": _verdict,
}
"""What stands in a column, the first one apart, which is the model's name."""


# -- reports

_REPORT_COLUMNS = ("model", "page", "outcome", "tracer", "ops", "holds for")
_FAILED_COLUMNS = _REPORT_COLUMNS[:3]


def fill_reports(document: nodes.document, env: BuildEnvironment) -> None:
    """Give the reports on one page their rows."""
    domain = fx_domain(env)
    run = domain.run
    for table in [table for table in document.findall(nodes.table) if "fxgraph_report" in table]:
        only = table.attributes.pop("fxgraph_report")
        columns = _FAILED_COLUMNS if only == "failed" else _REPORT_COLUMNS
        body, texts = nodes.tbody(), []
        for docname in sorted(domain.uses):
            for use in {
                (use.figure, use.spec_id): use for use in domain.uses[docname] if domain.is_shown(use)
            }.values():
                record = run.record(use.spec_id) if run.shows else None
                if only == "failed" and record is not None and not record.failure:
                    continue
                cells = _report_cells(use, docname, record, run.config.units)[: len(columns)]
                link = make_refnode(run.builder, env.docname, docname, use.figure, nodes.Text(cells[0]))
                contents = (link, *map(nodes.Text, cells[1:]))
                entries = (nodes.entry("", nodes.paragraph("", "", content)) for content in contents)
                body += nodes.row("", *entries, classes=["fxg-failed"] if record is None or record.failure else [])
                texts.append(cells)
        if texts:
            table += tables.grouped(columns, body, tables.widths(columns, texts, WIDEST))
            nested.flatten(table, run.builder.format)
        else:
            told = _("every capture went well") if only else _("no page shows a model")
            table.replace_self(nodes.paragraph(told, told))


def _report_cells(use: ModelUse, docname: str, record: Record | None, units: Units) -> tuple[str, ...]:
    """What stands in each column."""
    name = use.name or use.spec.target or use.spec.label
    if record is None:
        return name, docname, _("not captured"), "", "", ""
    if record.failure:
        expected = _("as expected") + ": " if use.expect == "error" else ""
        return name, docname, expected + messages.sentence(record.failure), record.tracer, "", ""
    ops, verdict = (CELLS[column](record, units) for column in ("ops", "verdict"))
    return name, docname, _("captured"), record.tracer, ops, verdict
