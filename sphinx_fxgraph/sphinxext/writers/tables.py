"""The node table in a doctree: for HTML what it is written from, for other formats a table of docutils."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from docutils import nodes
from sphinx import addnodes

from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.sphinxext.nodes import fxgraph_nodes
from sphinx_fxgraph.tables.columns import TEXTS
from sphinx_fxgraph.tables.rows import Rows, node_rows
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
    head = nodes.thead("", nodes.row("", *(nodes.entry("", nodes.paragraph("", column)) for column in columns)))
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
