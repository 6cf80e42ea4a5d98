"""The changes of a difference as a docutils table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from docutils import nodes

from sphinx_fxgraph.record.diff import SIGNS, Change, Difference
from sphinx_fxgraph.sphinxext.writers import tables
from sphinx_fxgraph.text.ids import anchor

COLUMNS = ("change", "path", "operator", "before", "after", "parameters")


def html_table(difference: Difference, prefix: str) -> nodes.table:
    """A row a change, its path linked with the drawing."""
    body = nodes.tbody()
    seen: set[str] = set()
    for change in difference.changes:
        texts = _texts(change)
        path = change.drawn or change.path
        name = anchor(f"{prefix}-row", path)
        ids = [] if name in seen else [name]
        seen.add(name)
        link = nodes.reference("", texts[1], internal=True, refid=anchor(prefix, path), path=path)
        cells: list[nodes.Node] = [nodes.Text(text) for text in texts]
        cells[1] = link
        entries = (nodes.entry("", nodes.paragraph("", "", cell, classes=["no-search"])) for cell in cells)
        body += nodes.row("", *entries, ids=ids, classes=[f"fxg-{change.kind}"])
    return nodes.table("", tables.grouped(COLUMNS, body), classes=["fxg-changes"])


def plain_table(difference: Difference) -> Iterator[nodes.table]:
    """The same for formats without a drawing."""
    rows = [_texts(change) for change in difference.changes]
    body = nodes.tbody()
    for row in rows:
        body += nodes.row("", *(nodes.entry("", nodes.paragraph(text, text)) for text in row))
    if rows:
        yield nodes.table(
            "", tables.grouped(COLUMNS, body, tables.widths(COLUMNS, rows)), classes=["fxg-changes", "longtable"]
        )


def _texts(change: Change) -> Sequence[str]:
    """Sign and word, since neither colour nor sign alone says it to everyone."""
    path = f"{change.path} … {change.last}" if change.last else change.path
    path += f" ×{change.places}" if change.places > 1 else ""
    path += f" (was {change.old_path})" if change.old_path else ""
    parameters = f"{change.parameters:+,}".replace("-", "−") if change.parameters else ""
    return f"{SIGNS[change.kind]} {change.kind}", path, change.operator, change.before, change.after, parameters
