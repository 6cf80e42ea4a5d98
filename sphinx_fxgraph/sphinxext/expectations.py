"""What an author says a model must be: the options ``expect``, ``expect-params`` and ``expect-macs``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sphinx_fxgraph.options import NUMBER
from sphinx_fxgraph.record.conventions import macs_of
from sphinx_fxgraph.text.units import Units

if TYPE_CHECKING:
    from sphinx_fxgraph.record.model import Record

_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}


NAMES = ("expect", "expect-params", "expect-macs")
"""The options of `sphinx_fxgraph.options.FigureOptions` that claim something."""


def broken(record: Record, claims: tuple[tuple[str, str], ...], units: Units) -> Iterator[str]:
    """What the model is not, in a sentence each that says both."""
    for option, said in claims:
        if option == "expect" and _plain(said) != _plain(record.output):
            yield f"expected to return {said}, but it returns {record.output}"
        if option == "expect-params" and not _is(said, record.totals.parameters):
            yield f"expected to have {said} parameters, but it has {record.totals.parameters:,}"
        macs = macs_of(record.totals, units.convention)
        if option == "expect-macs" and not (macs is not None and _is(said, macs)):
            found = "is not known to have any" if macs is None else f"has {macs:,}"
            yield f"expected to have {said.removesuffix('MACs').strip()} MACs, but it {found}"


def _plain(output: str) -> str:
    """A result without what two people would write in two ways; only sizes are one tensor of floats."""
    text = re.sub(r"\s", "", output).replace('"', "'")
    text = text.strip("()") if re.fullmatch(r"\(?\d+(,\d+)*\)?", text) else text
    return f"f32[{text}]" if re.fullmatch(r"\d+(,\d+)*", text) else text


def _is(said: str, number: int) -> bool:
    """Whether a number is what was said, to all digits that were."""
    match = re.fullmatch(NUMBER, said)
    assert match, "the directive has looked at it"
    whole, fraction, prefix = match.groups(default="")
    digits = int(re.sub("[,_]", "", whole) + fraction)
    # In units of the last digit, as whole numbers: 1.81G is anything from 1.805 to 1.815 thousand million.
    scale = 10 ** len(fraction)
    return bool(2 * abs(number * scale - digits * _PREFIXES[prefix]) <= (_PREFIXES[prefix] if prefix else 0))
