"""The columns of the node table, and what stands in their cells as plain text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from sphinx_fxgraph.record.conventions import macs_of

if TYPE_CHECKING:
    from sphinx_fxgraph.tables.rows import Row
    from sphinx_fxgraph.text.units import Units


def _parameters(row: Row, units: Units) -> str:
    """How many, and which of them are another module's and not counted here."""
    count = "" if row.parameters is None else units.count(row.parameters)
    tied = ", ".join(f"{name} is {counted}" for name, counted in row.tied)
    return f"{count} ({tied})" if tied else count


def _macs(row: Row, units: Units) -> str:
    macs = macs_of(row, units.convention)
    return "" if macs is None else units.count(macs)


TEXTS: dict[str, Callable[[Row, Units], str]] = {
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
"""By column the text of a cell."""

COLUMNS = tuple(TEXTS)


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
        raise ValueError(f"which columns? For example {', '.join(COLUMNS)}")
    return tuple(dict.fromkeys(known[column.lower()] for column in asked))
