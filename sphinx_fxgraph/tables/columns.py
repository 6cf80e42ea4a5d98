"""The columns of the node table, and what stands in their cells as plain text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sphinx_fxgraph.record.conventions import macs_of, macs_text

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
    return macs_text(None if macs is None else units.count(macs), row.uncounted)


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
"""By column the text of a cell; the columns are declared in `sphinx_fxgraph.options.COLUMNS`."""
