"""Differences on pages: compared when their models are captured, drawn as one graph, listed in a table."""

from __future__ import annotations

import os
from pathlib import Path

from sphinx_fxgraph.cache.revisions import RecordFileError
from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.sphinxext.comparison import Compared, Comparison, Kept
from sphinx_fxgraph.sphinxext.domain import DiffUse, FxDomain, ModelUse
from sphinx_fxgraph.sphinxext.messages import warn
from sphinx_fxgraph.sphinxext.state import Run, look_of


def made(run: Run, domain: FxDomain, folder: str | os.PathLike[str]) -> list[ModelUse]:
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
            uses.append(ModelUse(comparison, compared.look(asked.look), asked.location))
    return uses


def _side(run: Run, side: GraphSpec | Kept, asked: DiffUse, folder: Path) -> Record | None:
    if not isinstance(side, Kept):
        return run.record(side.id)  # none, where another machine captures it
    run.specs[side.id] = side
    try:
        return side.record(run.store, folder)
    except RecordFileError as error:
        warn(str(error), "cache", asked.location)
        return Record(spec={}, tracer="", failure=Failure("cache", "", str(error)))


def shown(run: Run, asked: DiffUse) -> list[str]:
    """What a page shows of a difference, as digests."""
    key = Comparison.from_dict(asked.comparison).id
    compared = run.compared.get(key)
    return [key, compared.digest, run.drawn.get((key, look_of(compared.look(asked.look))), "")] if compared else [key]
