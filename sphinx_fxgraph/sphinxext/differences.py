"""Differences on pages: compared when their models are captured, drawn as one graph, listed in a table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes

from sphinx_fxgraph.diff import SIGNS, Change, Difference
from sphinx_fxgraph.drawing.anchors import anchor
from sphinx_fxgraph.head import Failure
from sphinx_fxgraph.kept import KeptError
from sphinx_fxgraph.record import Record
from sphinx_fxgraph.spec import GraphSpec
from sphinx_fxgraph.sphinxext import tables
from sphinx_fxgraph.sphinxext.compared import Compared, Comparison, Kept
from sphinx_fxgraph.sphinxext.domain import Asked, FxDomain, Use
from sphinx_fxgraph.sphinxext.run import Run, look_of
from sphinx_fxgraph.sphinxext.warn import warn

COLUMNS = ("change", "path", "operator", "before", "after", "parameters")
_WIDEST = 32
"""Characters of a column, where a writer goes by characters."""


def made(run: Run, domain: FxDomain, folder: str | os.PathLike[str]) -> list[Use]:
    """Compare what has been captured. From here on a difference is shown as a model is: as a record.

    Args:
        run: holds what was captured, and what is compared.
        domain: knows what the pages compare.
        folder: of the docs.

    Returns:
        The places of the drawings.
    """
    uses = []
    for asked in (asked for docname in sorted(domain.differences) for asked in domain.differences[docname]):
        comparison = Comparison.from_dict(asked.comparison)
        run.specs[comparison.id] = comparison
        before, after = (_side(run, side, asked, Path(folder)) for side in (comparison.before, comparison.after))
        if before and after:
            compared = run.compared[comparison.id] = Compared.of(before, after)
            run.records[comparison.id] = compared.record
            uses.append(Use(comparison, compared.look(asked.look), asked.location))
    return uses


def _side(run: Run, side: GraphSpec | Kept, asked: Asked, folder: Path) -> Record | None:
    if not isinstance(side, Kept):
        return run.record(side.id)  # none, where another machine captures it
    run.specs[side.id] = side
    try:
        return side.record(run.store, folder)
    except KeptError as error:
        warn(str(error), "cache", asked.location)
        return Record(spec={}, tracer="", failure=Failure("cache", "", str(error)))


def look(run: Run, key: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a drawing; those of a difference depend on what differs."""
    compared = run.compared.get(key)
    return compared.look(asked) if compared else asked


def shown(run: Run, asked: Asked) -> list[str]:
    """What a page shows of a difference, as digests."""
    key = Comparison.from_dict(asked.comparison).id
    compared = run.compared.get(key)
    return [key, compared.digest, run.drawn.get((key, look_of(compared.look(asked.look))), "")] if compared else [key]


# -- the table


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
        widths = [min(max(map(len, column)), _WIDEST) for column in zip(COLUMNS, *rows, strict=True)]
        yield nodes.table("", tables.grouped(COLUMNS, body, widths), classes=["fxg-changes", "longtable"])


def _texts(change: Change) -> Sequence[str]:
    """Sign and word, since neither colour nor sign alone says it to everyone."""
    path = f"{change.path} … {change.last}" if change.last else change.path
    path += f" ×{change.places}" if change.places > 1 else ""
    path += f" (was {change.old_path})" if change.old_path else ""
    parameters = f"{change.parameters:+,}".replace("-", "−") if change.parameters else ""
    return f"{SIGNS[change.kind]} {change.kind}", path, change.operator, change.before, change.after, parameters
