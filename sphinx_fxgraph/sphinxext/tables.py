"""The node table: one row an operator of each distinct body, as a docutils table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from docutils import nodes
from sphinx import addnodes

from sphinx_fxgraph.drawing.svg.svg import anchor
from sphinx_fxgraph.drawing.text.rows import Row, Rows, node_rows
from sphinx_fxgraph.drawing.text.units import Units
from sphinx_fxgraph.numbers import macs_of
from sphinx_fxgraph.record import Record, join

COLUMNS = (
    "name",
    "op",
    "target",
    "arguments",
    "input shape",
    "output shape",
    "dtype",
    "parameters",
    "MACs",
    "connected to",
)
DEFAULT = COLUMNS

_WIDEST = 32
"""Characters of a column, where a writer goes by characters."""

_QUIET = ["no-search"]
"""The search index needs the names of layers once; shapes and arguments would only make it large."""


def parse_columns(text: str) -> tuple[str, ...]:
    """The columns that ``:table:`` asks for, in its order; none for ``none``.

    Raises:
        ValueError: there is no such column.
    """
    if text.strip() == "none":
        return ()
    known = {column.lower(): column for column in COLUMNS}
    asked = [" ".join(part.split()) for part in re.split(r"[,\n]", text) if part.strip()]
    for column in asked:
        if column.lower() not in known:
            raise ValueError(f"no column {column!r}; there are {', '.join(COLUMNS)}, or none")
    if not asked:
        raise ValueError(f"which columns? For example {', '.join(DEFAULT)}")
    return tuple(dict.fromkeys(known[column.lower()] for column in asked))


def html_table(record: Record, prefix: str, columns: Sequence[str], units: Units) -> nodes.table | None:
    """One table with a heading for each body, its rows linked with the drawing and with each other."""
    groups = node_rows(record)
    body = nodes.tbody()
    for group in groups:
        if len(groups) > 1:
            heading = nodes.paragraph("", "", *_heading(group, record.bodies[group.body].type))
            body += nodes.row("", nodes.entry("", heading, morecols=len(columns) - 1), classes=["fxg-body"])
        for row in group.rows:
            cells = [_entry(column, *_linked(column, row, prefix, units)) for column in columns]
            cells[0] += _anchors(row, group, prefix)
            body += nodes.row("", *cells, ids=[anchor(f"{prefix}-row", row.path)])
    return _table(columns, body, ["fxg-nodes"]) if groups else None


def plain_tables(record: Record, columns: Sequence[str], units: Units) -> Iterator[nodes.Element]:
    """A heading and a table for each body: not every writer can let a cell span columns."""
    groups = node_rows(record)
    for group in groups:
        if len(groups) > 1:
            yield nodes.paragraph("", "", nodes.strong("", "", *_heading(group, record.bodies[group.body].type)))
        texts = [[_TEXTS[column](row, units) for column in columns] for row in group.rows]
        body = nodes.tbody()
        for row in texts:
            cells = (_entry(column, nodes.Text(text)) for column, text in zip(columns, row, strict=True))
            body += nodes.row("", *cells)
        widths = [min(max(map(len, column)), _WIDEST) for column in zip(columns, *texts, strict=True)]
        yield _table(columns, body, ["fxg-nodes", "longtable"], widths)


def _table(columns: Sequence[str], body: nodes.tbody, classes: list[str], widths: Sequence[int] = ()) -> nodes.table:
    return nodes.table("", grouped(columns, body, widths), classes=classes)


def grouped(columns: Sequence[str], body: nodes.tbody, widths: Sequence[int] = ()) -> nodes.tgroup:
    """The inside of a table: a row with the names of its columns, and its body.

    Args:
        columns: names.
        body: rows with an entry a column.
        widths: in characters or any other unit; equal where none are given.
    """
    head = nodes.thead("", nodes.row("", *(nodes.entry("", nodes.paragraph("", column)) for column in columns)))
    specs = [nodes.colspec(colwidth=width) for width in widths or [1] * len(columns)]
    return nodes.tgroup("", *specs, head, body, cols=len(columns))


def _entry(column: str, *content: nodes.Node) -> nodes.entry:
    quiet = [] if column in ("name", "op", "target") else _QUIET
    return nodes.entry("", nodes.paragraph("", "", *content, classes=quiet))


# -- what stands in a cell


def _parameters(row: Row, units: Units) -> str:
    """How many, and which of them are another module's and not counted here."""
    count = "" if row.parameters is None else units.count(row.parameters)
    tied = ", ".join(f"{name} is {counted}" for name, counted in row.tied)
    return f"{count} ({tied})" if tied else count


def _macs(row: Row, units: Units) -> str:
    macs = macs_of(row, units.convention)
    return "" if macs is None else units.count(macs)


_TEXTS: dict[str, Callable[[Row, Units], str]] = {
    "name": lambda row, _: row.name,
    "op": lambda row, _: f"{row.op} {row.kind}" if row.type else row.op,
    "target": lambda row, _: row.target,
    "arguments": lambda row, _: row.arguments,
    "input shape": lambda row, _: row.input_shape,
    "output shape": lambda row, _: row.output_shape,
    "dtype": lambda row, _: row.dtype,
    "parameters": _parameters,
    "MACs": _macs,
    "connected to": lambda row, _: ", ".join(name for _, name in row.connected),
}


def _linked(column: str, row: Row, prefix: str, units: Units) -> list[nodes.Node]:
    """The content of a cell, with links into the drawing, to other rows and to the API docs."""
    if column == "name":
        return [nodes.reference("", row.name, internal=True, refid=anchor(prefix, row.path), path=row.path)]
    if column == "op" and row.type:
        return [nodes.Text(f"{row.op} "), _class(row.type, row.kind)]
    if column == "connected to":
        rows = f"{prefix}-row"
        links = [nodes.reference("", name, internal=True, refid=anchor(rows, path)) for path, name in row.connected]
        cell: list[nodes.Node] = [part for link in links for part in (nodes.Text(", "), link)]
        return cell[1:]
    return [nodes.Text(_TEXTS[column](row, units))]


def _heading(group: Rows, type_: str) -> list[nodes.Node]:
    """``layer1.0 BasicBlock ×2``, the class as a link."""
    kind = type_.rpartition(".")[2]
    before, found, after = group.heading.rpartition(kind or group.heading)
    return (
        [nodes.Text(before), _class(type_, kind), nodes.Text(after)] if kind and found else [nodes.Text(group.heading)]
    )


def _class(path: str, name: str) -> addnodes.pending_xref:
    """A link to the API docs of a class, where there is one; where there is none, `fill.silent` keeps it so."""
    public = re.sub(r"^torch\.nn\.modules\.\w+\.", "torch.nn.", path)  # the name that torch documents
    shown = nodes.inline("", name)
    return addnodes.pending_xref(
        "", shown, refdomain="py", reftype="class", reftarget=public, refexplicit=True, fxgraph=True
    )


def _anchors(row: Row, group: Rows, prefix: str) -> list[nodes.Node]:
    """The row's ids for all other places where its body is called."""
    others = [join(path, row.path.removeprefix(group.paths[0]).lstrip(".")) for path in group.paths[1:]]
    return [nodes.target("", "", ids=[anchor(f"{prefix}-row", path) for path in others])] if others else []
