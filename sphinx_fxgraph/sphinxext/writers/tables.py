"""The tables behind a graph as docutils nodes: nodes of the graph, stages, changes of a difference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from docutils import nodes
from sphinx import addnodes

from sphinx_fxgraph.record.conventions import macs_of, macs_text
from sphinx_fxgraph.record.diff import SIGNS, Change, Difference
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.sphinxext.nodes import fxgraph_nodes
from sphinx_fxgraph.tables.columns import TEXTS
from sphinx_fxgraph.tables.rows import Rows, node_rows
from sphinx_fxgraph.tables.stages import Stage
from sphinx_fxgraph.text.ids import anchor
from sphinx_fxgraph.text.translate import _
from sphinx_fxgraph.text.units import Units

_WIDEST = 32
"""Characters of a column, where a writer goes by characters."""


def html_table(record: Record, columns: Sequence[str]) -> fxgraph_nodes | None:
    """One table; none where there is no graph.

    Its nodes are only what others have to see: the classes, whose API docs are looked for, and for the search the
    names of layers, once. The cells themselves would be most of a site's nodes.
    """
    groups = node_rows(record)
    if not groups:
        return None
    types = dict.fromkeys(
        type_ for group in groups for type_ in (group.type, *(row.type for row in group.rows)) if type_
    )
    names = dict.fromkeys(text for group in groups for row in group.rows for text in (row.name, row.kind, row.target))
    words = nodes.inline("", " ".join(filter(None, names)))
    return fxgraph_nodes("", *map(_class, types), words, types=list(types), groups=groups, columns=columns)


def plain_tables(record: Record, columns: Sequence[str], units: Units) -> Iterator[nodes.Element]:
    """A heading and a table for each body: not every writer can let a cell span columns."""
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
    return [nodes.Text(before), *([_class(group.type)] if kind else []), nodes.Text(after)]


def _class(path: str) -> addnodes.pending_xref:
    """A link to the API docs of a class, where there is one; where there is none, `fill.silent` keeps it so."""
    public = re.sub(r"^torch\.nn\.modules\.\w+\.", "torch.nn.", path)  # the name that torch documents
    shown = nodes.inline("", path.rpartition(".")[2])
    return addnodes.pending_xref(
        "", shown, refdomain="py", reftype="class", reftarget=public, refexplicit=True, fxgraph=True
    )


# -- stages

STAGE_COLUMNS = ("stage", "blocks", "output shape", "parameters", "MACs")


def stage_table(stages: Sequence[Stage], units: Units, prefix: str = "") -> nodes.table:
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
    """The same for formats without a drawing."""
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
    path = f"{change.path} … {change.last}" if change.last else change.path
    path += f" ×{change.places}" if change.places > 1 else ""
    path += f" (was {change.old_path})" if change.old_path else ""
    parameters = f"{change.parameters:+,}".replace("-", "−") if change.parameters else ""
    return f"{SIGNS[change.kind]} {_(change.kind)}", path, change.operator, change.before, change.after, parameters
