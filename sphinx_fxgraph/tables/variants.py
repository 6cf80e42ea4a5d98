"""Several models side by side: the stages of each, equal names in one row, as papers print a family of networks."""

from __future__ import annotations

from collections.abc import Sequence

from sphinx_fxgraph.tables.stages import Stage


def aligned(models: Sequence[Sequence[Stage]]) -> list[tuple[str, list[Stage | None]]]:
    """A row for each stage that has a name: that stage of each model, None where it has none.

    Stages are the same if they start at the same module: ``layers.0 … 11`` of one model is ``layers.0 … 23`` of a
    deeper one, and the row is called as in the first. The order is that of the first model; what only others have
    stands where it stands in them.
    """
    named = [{stage.paths[0]: stage for stage in stages if stage.paths} for stages in models]
    order: list[str] = []
    for stages in named:
        place = 0
        for start in stages:
            if start in order:
                place = max(place, order.index(start) + 1)
            else:
                order.insert(place, start)
                place += 1
    rows = [(start, [stages.get(start) for stages in named]) for start in order]
    return [(next(stage.name for stage in found if stage), found) for _, found in rows]
