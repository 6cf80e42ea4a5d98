"""The tables of nodes, stages, changes, models and reports as docutils nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

from sphinx_fxgraph.escape import anchor
from sphinx_fxgraph.record.metrics import depth
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import summary
from sphinx_fxgraph.sphinxext import messages, sphinx_private, static_image
from sphinx_fxgraph.sphinxext.domain import FxDomain, ModelUse, fx_domain
from sphinx_fxgraph.sphinxext.nodes import fxgraph_links, fxgraph_nodes
from sphinx_fxgraph.sphinxext.table import NUMBERS, Entry
from sphinx_fxgraph.units import Units
from sphinx_fxgraph.words import _, mark

if TYPE_CHECKING:
    from sphinx.builders import Builder
    from sphinx.environment import BuildEnvironment

    from sphinx_fxgraph.record.diff import Change, Difference
    from sphinx_fxgraph.render.node_table import Rows
    from sphinx_fxgraph.render.stage_table import Stage


_WIDEST = 32
"""Characters of a column, where a writer goes by characters."""


def html_table(record: Record, columns: Sequence[str]) -> fxgraph_nodes | None:
    """Return the node table; None where there is no graph.

    Its cells are written as text, since they would be most of a site's nodes.
    """
    from sphinx_fxgraph.render.node_table import node_rows

    groups = node_rows(record)
    return fxgraph_nodes("", groups=groups, columns=columns) if groups else None


def links(record: Record) -> fxgraph_links | None:
    """Return what Sphinx has to see of a graph; None where there is none.

    That is the classes and functions, whose documentation is looked for, and for the search the names of layers, once.
    """
    from sphinx_fxgraph.render.node_table import node_rows

    groups = node_rows(record)
    if not groups:
        return None
    rows = [row for group in groups for row in group.rows]
    classes = dict.fromkeys(filter(None, (body.type for body in record.bodies.values())))
    names = classes | dict.fromkeys(filter(None, (row.documented for row in rows)))
    kinds = {row.documented: row.op for row in rows}
    found = (_link(name, _ROLES.get(kinds.get(name, ""), "class")) for name in names)
    words = dict.fromkeys(text for row in rows for text in (row.name, row.kind, row.target))
    return fxgraph_links("", *found, nodes.inline("", " ".join(filter(None, words))), names=list(names))


def plain_tables(record: Record, columns: Sequence[str], units: Units) -> Iterator[nodes.Element]:
    """A heading and a table for each body: not every writer can let a cell span columns."""
    from sphinx_fxgraph.render.node_table import TEXTS, node_rows

    groups = node_rows(record)
    for group in groups:
        if len(groups) > 1:
            yield nodes.paragraph("", "", nodes.strong("", "", *_heading(group)))
        texts = [[TEXTS[column](row, units) for column in columns] for row in group.rows]
        body = nodes.tbody()
        for row in texts:
            body += nodes.row("", *(nodes.entry("", nodes.paragraph("", text)) for text in row))
        yield nodes.table("", grouped(columns, body, widths(columns, texts)), classes=["fxg-nodes", "longtable"])


def widths(columns: Sequence[str], texts: Sequence[Sequence[str]], widest: int = _WIDEST) -> list[int]:
    """The characters that each column takes, where a writer goes by characters.

    Args:
        columns: names.
        texts: of each row, a text a column.
        widest: no column takes more.
    """
    return [min(max(map(len, column)), widest) for column in zip(columns, *texts, strict=True)]


def grouped(columns: Sequence[str], body: nodes.tbody, widths: Sequence[int] = ()) -> nodes.tgroup:
    """The inside of a table: a row with the names of its columns, and its body.

    Args:
        columns: names.
        body: rows with an entry a column.
        widths: in characters or any other unit; equal where none are given.
    """
    head = nodes.thead("", nodes.row("", *(nodes.entry("", nodes.paragraph("", _(column))) for column in columns)))
    specs = [nodes.colspec(colwidth=width) for width in widths or [1] * len(columns)]
    return nodes.tgroup("", *specs, head, body, cols=len(columns))


def _heading(group: Rows) -> list[nodes.Node]:
    """``layer1.0 BasicBlock ×2``, the class as a link."""
    before, kind, after = group.parts
    return [nodes.Text(before), *([_link(group.type, "class")] if kind else []), nodes.Text(after)]


_ROLES = {"call_function": "func", "call_method": "meth"}


def _link(path: str, role: str) -> addnodes.pending_xref:
    """Return a link to the API docs of a class or function; where there are none, `resolve.silent` keeps it plain.

    Args:
        path: the dotted path.
        role: of the ``py`` domain.
    """
    public = re.sub(r"^torch\.nn\.modules\.\w+\.", "torch.nn.", path)  # the name that torch documents
    shown = nodes.inline("", path.rpartition(".")[2])
    return addnodes.pending_xref(
        "", shown, refdomain="py", reftype=role, reftarget=public, refexplicit=True, fxgraph=True
    )


# -- stages

STAGE_COLUMNS = ("stage", "blocks", "output shape", "parameters", "MACs")


def stage_table_node(stages: Sequence[Stage], units: Units, prefix: str = "") -> nodes.table:
    """A row a stage.

    Args:
        stages: the rows.
        units: how numbers are written, and what counts as a MAC.
        prefix: what the ids in the drawing start with, where names lead to it.
    """
    texts = [_stage_cells(stage, units) for stage in stages]
    body = nodes.tbody()
    for stage, (name, *others) in zip(stages, texts, strict=True):
        content: nodes.Node = nodes.Text(name)
        if prefix and stage.paths:
            path = stage.paths[0]
            content = nodes.reference("", name, internal=True, refid=anchor(prefix, path), path=path)
        cells = (content, *map(nodes.Text, others))
        body += nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))
    return nodes.table("", grouped(STAGE_COLUMNS, body, widths(STAGE_COLUMNS, texts)), classes=["fxg-stages"])


def _stage_cells(stage: Stage, units: Units) -> tuple[str, ...]:
    from sphinx_fxgraph.record.metrics import macs_of, macs_text

    macs = macs_of(stage, units.convention)
    numbers = (units.count(stage.parameters), macs_text(None if macs is None else units.count(macs), stage.uncounted))
    return (stage.name, stage.made_of, stage.output, *numbers)


# -- changes

CHANGE_COLUMNS = ("change", "path", "operator", "before", "after", "parameters")


def html_changes(difference: Difference, prefix: str) -> nodes.table:
    """A row a change, its path linked with the drawing."""
    body = nodes.tbody()
    seen: set[str] = set()
    for change in difference.changes:
        texts = _change_texts(change)
        path = change.drawn or change.path
        name = anchor(f"{prefix}-row", path)
        ids = [] if name in seen else [name]
        seen.add(name)
        link = nodes.reference("", texts[1], internal=True, refid=anchor(prefix, path), path=path)
        cells: list[nodes.Node] = [nodes.Text(text) for text in texts]
        cells[1] = link
        entries = (nodes.entry("", nodes.paragraph("", "", cell, classes=["no-search"])) for cell in cells)
        body += nodes.row("", *entries, ids=ids, classes=[f"fxg-{change.kind}"])
    return nodes.table("", grouped(CHANGE_COLUMNS, body), classes=["fxg-changes"])


def plain_changes(difference: Difference) -> Iterator[nodes.table]:
    """Return the changes for formats without a drawing."""
    rows = [_change_texts(change) for change in difference.changes]
    body = nodes.tbody()
    for row in rows:
        body += nodes.row("", *(nodes.entry("", nodes.paragraph(text, text)) for text in row))
    if rows:
        yield nodes.table(
            "", grouped(CHANGE_COLUMNS, body, widths(CHANGE_COLUMNS, rows)), classes=["fxg-changes", "longtable"]
        )


def _change_texts(change: Change) -> Sequence[str]:
    """Sign and word, since neither colour nor sign alone says it to everyone."""
    from sphinx_fxgraph.record.diff import SIGNS

    path = f"{change.path} … {change.last}" if change.last else change.path
    path += f" ×{change.places}" if change.places > 1 else ""
    path += f" (was {change.old_path})" if change.old_path else ""
    parameters = f"{change.parameters:+,}".replace("-", "−") if change.parameters else ""
    return f"{SIGNS[change.kind]} {_(change.kind)}", path, change.operator, change.before, change.after, parameters


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
        static_image.flatten(table, domain.run.builder.format)


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
            pending.extend(reversed(sphinx_private.subpages(domain.env, docname)))
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
    return grouped(columns, body, widths(columns, texts, WIDEST))


def _compared(models: Sequence[Model], units: Units, link: _Linker) -> nodes.tgroup:
    """Stages below each other, models side by side, their totals at the end."""
    from sphinx_fxgraph.render import stage_table

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

    for name, found in stage_table.align_stages([stage_table.stages(record) for record in records]):
        add(name, [(stage.made_of, stage.output) if stage else () for stage in found])
    for column in ("parameters", "MACs", "depth"):
        add(_(column), [(CELLS[column](record, units),) for record in records], ["fxg-total"])
    group = grouped(["", *(model.title for model in models)], body, [min(width, WIDEST) for width in widths])
    heads = list(group.findall(nodes.entry))[1 : len(models) + 1]
    for head, model in zip(heads, models, strict=True):
        head[0] = nodes.paragraph("", "", link.name(model))
    return group


# -- the cells


def _about_macs(record: Record, units: Units) -> str:
    from sphinx_fxgraph.record.metrics import macs_of, macs_text

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

_REPORT_COLUMNS = ("model", "page", "outcome", "tracer", "ops", "holds for", "remarks")
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
            table += grouped(columns, body, widths(columns, texts, WIDEST))
            static_image.flatten(table, run.builder.format)
        else:
            told = _("every capture went well") if only else _("no page shows a model")
            table.replace_self(nodes.paragraph(told, told))


def _report_cells(use: ModelUse, docname: str, record: Record | None, units: Units) -> tuple[str, ...]:
    """Yield the content of each column."""
    from sphinx_fxgraph.record.metrics import not_counted

    name = use.name or use.spec.target or use.spec.label
    if record is None:
        return name, docname, _("not captured"), "", "", "", ""
    if record.failure:
        expected = _("as expected") + ": " if use.expect == "error" else ""
        return name, docname, expected + messages.sentence(record.failure), record.tracer, "", "", ""
    ops, verdict = (CELLS[column](record, units) for column in ("ops", "verdict"))
    found = ", ".join((*summary.remarks(record), *filter(None, [not_counted(record.totals.uncounted)])))
    return name, docname, _("captured"), record.tracer, ops, verdict, found
