"""The stages of a model as a docutils table, as papers print them."""

from __future__ import annotations

from collections.abc import Sequence

from docutils import nodes

from sphinx_fxgraph.record.conventions import macs_of
from sphinx_fxgraph.sphinxext.writers.tables import grouped, widths
from sphinx_fxgraph.tables.stages import Stage
from sphinx_fxgraph.text.ids import anchor
from sphinx_fxgraph.text.units import Units

COLUMNS = ("stage", "blocks", "output shape", "parameters", "MACs")


def table(stages: Sequence[Stage], units: Units, prefix: str = "") -> nodes.table:
    """A row a stage.

    Args:
        stages: the rows.
        units: how numbers are written, and what counts as a MAC.
        prefix: what the ids in the drawing start with, where names lead to it.
    """
    texts = [_cells(stage, units) for stage in stages]
    body = nodes.tbody()
    for stage, (name, *others) in zip(stages, texts, strict=True):
        content: nodes.Node = nodes.Text(name)
        if prefix and stage.paths:
            path = stage.paths[0]
            content = nodes.reference("", name, internal=True, refid=anchor(prefix, path), path=path)
        cells = (content, *map(nodes.Text, others))
        body += nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))
    return nodes.table("", grouped(COLUMNS, body, widths(COLUMNS, texts)), classes=["fxg-stages"])


def _cells(stage: Stage, units: Units) -> tuple[str, ...]:
    macs = macs_of(stage, units.convention)
    numbers = (units.count(stage.parameters), "" if macs is None else units.count(macs))
    return (stage.name, stage.made_of, stage.output, *numbers)
