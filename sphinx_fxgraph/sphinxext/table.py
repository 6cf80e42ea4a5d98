"""The ``fxgraph-table`` directive: one row a model, or with ``:compare:`` one column a model and one row a stage.

A row is the name of a graph of this project, a pattern of such names, or a target. Names are looked up when the page is
written, since they may stand on pages that are read later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from sphinx_fxgraph.drawing.tables import stages, variants
from sphinx_fxgraph.drawing.text import summary
from sphinx_fxgraph.drawing.text.units import Units
from sphinx_fxgraph.macs import macs_of
from sphinx_fxgraph.numbers import depth
from sphinx_fxgraph.record import Record
from sphinx_fxgraph.spec import SpecError, parse_target
from sphinx_fxgraph.sphinxext import failure, html, tables
from sphinx_fxgraph.sphinxext.directives import CAPTURE, defaults, spec_of
from sphinx_fxgraph.sphinxext.domain import FxDomain, Use, fx_domain
from sphinx_fxgraph.sphinxext.warn import warn

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders import Builder

logger = logging.getLogger(__name__)

_WIDEST = 40
"""Characters of a column, where a writer goes by characters."""


# -- the columns


def _about_macs(record: Record, units: Units) -> str:
    macs = macs_of(record.totals, units.convention)
    return "" if macs is None else units.macs(macs)


def _activations(record: Record, units: Units) -> str:
    size = record.totals.activation_bytes
    return "" if size is None else units.bytes(size)


def _verdict(record: Record, _: Units) -> str:
    if record.failure:
        return failure.title(record.failure)
    return _VERDICTS.get(record.verdict.kind, record.verdict.kind) if record.verdict else ""


_VERDICTS = {"same": "every input", "path": "one path"}
"""What the graph holds for: in a table there is no room for the sentence that the facts line has."""

Cell = Callable[[Record, Units], str]

NUMBERS: dict[str, Cell] = {
    "parameters": lambda record, units: units.count(record.totals.parameters) if record.modules else "",
    "trainable": lambda record, units: units.count(record.totals.trainable) if record.modules else "",
    "buffers": lambda record, units: units.count(record.totals.buffers) if record.modules else "",
    "size": lambda record, units: units.bytes(record.totals.bytes) if record.modules else "",
    "MACs": _about_macs,
    "activations": _activations,
    "depth": lambda record, _: str(depth(record)) if record.root and not record.failure else "",
    "ops": lambda record, units: units.count(record.operators) if record.root and not record.failure else "",
}
"""The columns that are numbers."""

CELLS: dict[str, Cell] = {
    **NUMBERS,
    "input": lambda record, _: summary.ends(record)[0],
    "output": lambda record, _: summary.ends(record)[1],
    "verdict": _verdict,
}
"""What stands in a column, the first one apart, which is the model's name."""

COLUMNS = ("name", *CELLS)
DEFAULT = ("name", "parameters", "MACs", "activations", "input", "output", "depth", "verdict")


def parse_columns(written: str) -> tuple[str, ...]:
    """The columns that ``:columns:`` asks for, in its order.

    Raises:
        ValueError: there is no such column.
    """
    known = {column.lower(): column for column in COLUMNS}
    asked = [part.strip().lower() for part in re.split(r"[,\n]", written) if part.strip()]
    for column in asked:
        if column not in known:
            raise ValueError(f"no column {column!r}; there are {', '.join(COLUMNS)}")
    return tuple(dict.fromkeys(known[column] for column in asked)) or DEFAULT


# -- the directive


class Entry(NamedTuple):
    """What an author wrote for a row, or for the rows that a pattern stands for."""

    title: str
    """Empty where none was given."""
    text: str
    """A name, a pattern of names, or a target."""
    spec: str
    """Id of the spec, where it may be a target."""


class FxgraphTable(SphinxDirective):
    """``.. fxgraph-table::`` with names, patterns and targets, separated by commas or one a line."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "caption": directives.unchanged_required,
        "class": directives.class_option,
        "columns": parse_columns,
        "compare": directives.flag,
        "name": directives.unchanged_required,
        **dict.fromkeys(CAPTURE, directives.unchanged_required),
    }

    def run(self) -> list[nodes.Node]:
        """Leave a table without rows, and note what it depends on."""
        entries = [self._entry(part) for part in _parts("\n".join([*self.arguments, *self.content]))]
        if not entries:
            self.env.note_reread()
            warn("which models? For example .. fxgraph-table:: resnet*", "option", self.get_location())
        columns = self.options.get("columns", DEFAULT)
        return [*model_table(self, [entry for entry in entries if entry], columns, compare="compare" in self.options)]

    def _entry(self, written: str) -> Entry | None:
        explicit = re.fullmatch(r"(.+?)\s*<([^<>]+)>", written)
        title, asked = explicit.groups() if explicit else ("", written)
        try:
            if not re.search(r"[.(:\[]", asked):  # a mere word is a name, and what is no expression is a pattern
                return Entry(title, asked, "")
            parse_target(asked)
        except SpecError:
            if "(" not in asked:
                return Entry(title, asked, "")
        try:
            spec = spec_of(asked, "", defaults(self.config, asked) | self.options)
        except SpecError as error:
            self.env.note_reread()
            warn(str(error), "input" if str(error).startswith("inputs") else "option", self.get_location())
            return None
        use = Use(spec.id, spec.to_dict(), None, self.get_location())
        fx_domain(self.env).note(self.env.docname, use)
        return Entry(title, asked, spec.id)


def model_table(
    directive: SphinxDirective, entries: Sequence[Entry], columns: Sequence[str], *, compare: bool = False
) -> Iterator[nodes.Node]:
    """A table node that is filled when the page is written, with the directive's name, caption and classes.

    With a caption it is numbered as every table is.
    """
    domain = fx_domain(directive.env)
    domain.tables[directive.env.docname] = True
    for entry in entries:
        domain.mention(directive.env.docname, entry.text)
    kind = ["fxg-table", "fxg-compare"] if compare else ["fxg-table"]
    table = nodes.table("", classes=[*kind, *directive.options.get("class", ())])
    directive.set_source_info(table)
    table["fxgraph"] = {"rows": [tuple(entry) for entry in entries], "columns": tuple(columns), "compare": compare}
    if "caption" in directive.options:
        inline, messages = directive.parse_inline(directive.options["caption"])
        title = nodes.title(directive.options["caption"], "", *inline)
        directive.set_source_info(title)
        table += title
        yield from messages
    directive.add_name(table)
    yield table


def _parts(written: str) -> Iterator[str]:
    """The entries: commas and line ends separate them, but for those within brackets and strings."""
    depth, quote, part = 0, "", ""
    for letter in f"{written}\n":
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter in ",\n" and depth <= 0:
            if part.strip():
                yield " ".join(part.split())
            part, depth = "", 0
            continue
        part += letter
    if part.strip():
        yield " ".join(part.split())


# -- the rows


class Model(NamedTuple):
    """A row: what it is called, where its graph stands, and what is known of it."""

    title: str
    place: tuple[str, str] | None
    """Docname and id of its graph, if any page shows it."""
    record: Record | None


class FillTables(SphinxPostTransform):
    """Give the tables their rows."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:  # noqa: ARG002 - as Sphinx calls it
        """Fill the tables of one page."""
        domain = fx_domain(self.env)
        for table in [table for table in self.document.findall(nodes.table) if "fxgraph" in table]:
            asked = table.attributes.pop("fxgraph")
            models = list(_models(domain, [Entry(*row) for row in asked["rows"]], table))
            link = _Linker(self.app.builder, self.env.docname)
            if not models:
                table.parent.remove(table)
            elif asked["compare"]:
                table += _compared(models, domain.run.config.units, link)
            else:
                table += _listed(models, asked["columns"], domain.run.config.units, link)


def _models(domain: FxDomain, entries: Sequence[Entry], table: nodes.table) -> Iterator[Model]:
    """The rows, each graph once."""
    run, told = domain.run, set()
    shown = {use.spec_id: (docname, use.figure) for docname, use in reversed(list(_figures(domain)))}
    for entry in entries:
        named = domain.named(entry.text)
        exact = {entry.text: named[entry.text]} if entry.text in named else named
        for name in sorted(exact, key=_natural):
            docname, use = exact[name]
            if name not in told:
                told.add(name)
                record = run.record(use.spec_id) if run.shows else None
                yield Model((len(exact) == 1 and entry.title) or name, (docname, use.figure), record)
        if not exact and entry.spec:
            record = run.record(entry.spec) if run.shows else None
            spec = run.specs.get(entry.spec)
            yield Model(entry.title or (spec.label if spec else entry.text), shown.get(entry.spec), record)
        elif not exact:
            logger.warning("undefined graph: %s", entry.text, type="ref", subtype="model", location=table)


def _figures(domain: FxDomain) -> Iterator[tuple[str, Use]]:
    """The uses that have a graph on their page."""
    for docname in sorted(domain.uses):
        yield from ((docname, use) for use in domain.uses[docname] if use.figure)


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
    widths = [min(max(map(len, column)), _WIDEST) for column in zip(columns, *texts, strict=True)]
    return tables.grouped(columns, body, widths)


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
        add(column, [(CELLS[column](record, units),) for record in records], ["fxg-total"])
    group = tables.grouped(["", *(model.title for model in models)], body, [min(width, _WIDEST) for width in widths])
    heads = list(group.findall(nodes.entry))[1 : len(models) + 1]
    for head, model in zip(heads, models, strict=True):
        head.children = [nodes.paragraph("", "", link.name(model))]
    return group


# -- script and style sheet


def copy_assets(app: Sphinx, builder: Builder) -> None:  # noqa: ARG001 - an event handler
    """Put them into the output, if any page has a table."""
    if builder.format == "html" and fx_domain(builder.env).tables:
        html.copy_static(builder, *ASSETS)


def add_assets(app: Sphinx, *page: Any) -> None:
    """Link them on the pages that have a table."""
    html.link_static(app, page, nodes.table, "fxg-table", "fxgraph-table")


ASSETS = "fxgraph-table.css", "fxgraph-table.js"


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the directive and of what fills it."""
    app.add_directive("fxgraph-table", FxgraphTable)
    app.add_post_transform(FillTables)
    app.connect("write-started", copy_assets)
    app.connect("html-page-context", add_assets)
