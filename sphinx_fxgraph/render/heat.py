"""What the parts of a picture have of the whole: parameters, MACs, memory of activations; in words and in shades.

A run that is drawn once has the share of all its members; what stands inside it is one of them.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sphinx_fxgraph.record.conventions import not_counted
from sphinx_fxgraph.record.metrics import Measures, by_call
from sphinx_fxgraph.record.model import Record, join
from sphinx_fxgraph.tables.rows import body_paths
from sphinx_fxgraph.text.units import PLAIN, Units
from sphinx_fxgraph.view.level import Box
from sphinx_fxgraph.view.simplified import GROUP

BOUNDS = (1, 2, 5, 10, 20)
"""In percent: from each on a shade is darker than the one before. The lightest but one is for any share at all."""


@dataclass(frozen=True)
class Shares:
    """Knows what each part of a model has.

    Args:
        record: the model.
        units: how numbers are written, and what counts as a MAC.
        colour: what the boxes are coloured by, one of `COLORS`.
        base: path of the module that paths in the picture start at.
    """

    record: Record
    units: Units = PLAIN
    colour: str = "kind"
    base: str = ""

    def inside(self, body: str) -> Shares:
        """For a picture of a body on its own, at the first place where it is called."""
        module = body.partition("/")[0]  # a stretch of operators, or the period of a run, is called after its body
        places = body_paths(self.record).get(module)
        found = replace(self, base=places[0] if places else "")
        found.__dict__["_calls"] = self._calls
        return found

    def of(self, box: Box, path: str) -> Measures:
        """What a box or frame has. For a frame of operators ``path`` is that of the module that they stand in."""
        owner = path if box.node.op == GROUP and box.inner else path.removesuffix(box.node.name).removesuffix(".")
        owner = join(self.base, owner) if owner else self.base
        found, modules = Measures(), set()
        for name in box.names:
            place = join(owner, name)
            measures = self._calls.get(place, Measures())
            module = re.sub(r"@\d+", "", place) if "@" in place else place
            if module in modules:  # a run that calls one module again and again has its tensors once
                measures = measures._replace(parameters=0, trainable=0, buffers=0, bytes=0)
            modules.add(module)
            found = found.plus(measures)
        return found

    def about(self, box: Box, path: str) -> str:
        """A line for a tooltip; empty for what has no number."""
        return " · ".join(self._said(self.of(box, path)))

    def percent(self, box: Box, path: str) -> float | None:
        """What a box has of what the picture is coloured by, in percent; None if that is not known of the model."""
        if self.colour == "kind" or box.node.op in ("placeholder", "output"):
            return None
        whole = _by(self._calls.get("", Measures()), self.colour)
        return 100 * (_by(self.of(box, path), self.colour) or 0) / whole if whole else None

    def _said(self, measures: Measures) -> Iterator[str]:
        whole = self._calls.get("", Measures())
        writers = {"params": self.units.parameters, "macs": self.units.macs, "memory": self.units.bytes}
        for colour, write in writers.items():
            number, total = _by(measures, colour), _by(whole, colour)
            if number and total:
                more = " of activations" if colour == "memory" else ""
                yield f"{write(number)}{more} ({written(100 * number / total)})"
        yield from filter(None, [not_counted(measures.uncounted)])

    @functools.cached_property
    def _calls(self) -> dict[str, Measures]:
        return by_call(self.record, self.units.convention)


def _by(measures: Measures, colour: str) -> int | None:
    known = {"params": measures.parameters, "macs": measures.macs, "memory": measures.activation_bytes}
    return known[colour]


def written(percent: float) -> str:
    """``38 %``, ``4.2 %``, ``<0.1 %``."""
    if 0 < percent < 0.1:
        return "<0.1 %"
    return f"{percent:.0f} %" if percent >= 9.95 or not percent else f"{percent:.1f} %"


def shade(percent: float) -> int:
    """Which shade a share has: 0 for none."""
    return 1 + bisect.bisect_right(BOUNDS, percent) if percent else 0


def scale() -> Iterable[tuple[int, str]]:
    """The legend: each shade and what it stands for."""
    lows, highs = (0, *BOUNDS), (*BOUNDS, None)
    between = (f"{low}–{high} %" if low else f"<{high} %" for low, high in zip(lows, highs[:-1], strict=False))
    return enumerate(("none", *between, f"≥{BOUNDS[-1]} %"))
