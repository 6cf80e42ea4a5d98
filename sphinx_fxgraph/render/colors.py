"""The colours of a figure: the palette of categories, the heat colours of shares, and the legend.

A run that is drawn once has the share of all its members; what stands inside it is one of them.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sphinx_fxgraph.escape import xml
from sphinx_fxgraph.options import COLORS
from sphinx_fxgraph.record.metrics import Measures, by_call, not_counted
from sphinx_fxgraph.record.model import Record, join
from sphinx_fxgraph.render.node_table import body_paths
from sphinx_fxgraph.render.scene import Drawn, Frame
from sphinx_fxgraph.units import PLAIN, Units
from sphinx_fxgraph.view.annotations import CATEGORIES, category
from sphinx_fxgraph.view.level import Box
from sphinx_fxgraph.view.simplify import GROUP
from sphinx_fxgraph.words import _, mark

_NAMES = ("paper", "ink", "muted", "accent", "highlight", "edge", "weak", "frame")


@dataclass(frozen=True)
class Colours:
    """The palette of light or of dark pages: fill and stroke by category, the others by their use."""

    paper: str
    ink: str
    muted: str
    accent: str
    """Of what failed, is found or has the focus."""
    highlight: str
    """Of counts and of the letters of panels."""
    edge: str
    weak: str
    frame: str
    frames: tuple[str, str, str]
    """Fill of module frames by depth."""
    fills: dict[str, str]
    strokes: dict[str, str]
    shares: tuple[str, ...]
    """Fill of boxes by their share of parameters, MACs or memory (see `Shares`); all text on them is ``ink``."""

    def variables(self) -> dict[str, str]:
        """Return every colour by the name that it has in the style sheet, without ``--fxg-``."""
        return {
            **{name: getattr(self, name) for name in _NAMES},
            **{f"frame-{depth}": fill for depth, fill in enumerate(self.frames)},
            **self.fills,
            **{f"{hue}-line": stroke for hue, stroke in self.strokes.items()},
            **{f"share-{shade}": fill for shade, fill in enumerate(self.shares)},
        }


LIGHT = Colours(
    paper="#ffffff",
    ink="#1c2430",
    muted="#545f6f",
    accent="#c2410c",
    highlight="#2a5db0",
    edge="#667182",
    weak="#7d8897",
    frame="#c3ccd8",
    frames=("#f1f4f8", "#fafbfd", "#e8edf4"),
    fills={
        "matmul": "#dbe9ff", "norm": "#dff4e2", "act": "#ffe9cf", "pool": "#fbdfe8", "math": "#fff4c2",
        "shape": "#eceff3", "param": "#efe6fb", "io": "#ffffff", "other": "#e4f3f3",
    },
    strokes={
        "matmul": "#4d7fd0", "norm": "#3f8f52", "act": "#b87420", "pool": "#c05f83", "math": "#97800f",
        "shape": "#77828f", "param": "#8a66c2", "io": "#3c4757", "other": "#3f8a8c",
    },
    shares=("#ffffff", "#fff3e3", "#ffe4c4", "#ffd0a0", "#fdb77a", "#f79a55", "#ee7d33"),
)  # fmt: skip

DARK = Colours(
    paper="#14181f",
    ink="#e6eaf0",
    muted="#a3aebd",
    accent="#ffa657",
    highlight="#7ba7ee",
    edge="#7f8b9c",
    weak="#6b7687",
    frame="#3a4557",
    frames=("#1a202a", "#171c25", "#212936"),
    fills={
        "matmul": "#1d3357", "norm": "#1c3b28", "act": "#44301a", "pool": "#43222f", "math": "#3d3617",
        "shape": "#252c37", "param": "#2f2544", "io": "#14181f", "other": "#17383a",
    },
    strokes={
        "matmul": "#5f90e0", "norm": "#58a86b", "act": "#c98d43", "pool": "#cf6f94", "math": "#b79d35",
        "shape": "#7b8798", "param": "#9b80c9", "io": "#b4bfcd", "other": "#4fa3a5",
    },
    shares=("#14181f", "#2b2319", "#3f2c18", "#553617", "#6b4016", "#824a15", "#995514"),
)  # fmt: skip


BOUNDS = (1, 2, 5, 10, 20)
"""In percent: from each on a shade is darker than the one before. The lightest but one is for any share at all."""


@dataclass(frozen=True)
class Shares:
    """The share that each part of a model has of its parameters, MACs and memory.

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
        """Return the shares for a picture of a body on its own, at the first place where it is called."""
        module = body.partition("/")[0]  # a stretch of operators, or the period of a run, is called after its body
        found = replace(self, base=self._first_calls.get(module, ""))
        found.__dict__["measures"] = self.measures
        return found

    def of(self, box: Box, path: str) -> Measures:
        """Return the measures of a box or frame; a frame of operators has the path of the module that they stand in."""
        owner = path if box.node.op == GROUP and box.inner else path.removesuffix(box.node.name).removesuffix(".")
        owner = join(self.base, owner) if owner else self.base
        found, modules = Measures(), set()
        for name in box.names:
            place = join(owner, name)
            measures = self.measures.get(place, Measures())
            module = re.sub(r"@\d+", "", place) if "@" in place else place
            if module in modules:  # a run that calls one module again and again has its tensors once
                measures = measures._replace(parameters=0, trainable=0, buffers=0, bytes=0)
            modules.add(module)
            found = found.plus(measures)
        return found

    def about(self, box: Box, path: str) -> str:
        """Return a line for a tooltip; empty where nothing is counted."""
        return " · ".join(self._said(self.of(box, path)))

    def percent(self, box: Box, path: str) -> float | None:
        """Return the share that a box is coloured by, in percent; None if it is not known of the model."""
        if self.colour == "kind" or box.node.op in ("placeholder", "output"):
            return None
        whole = _by(self.measures.get("", Measures()), self.colour)
        return 100 * (_by(self.of(box, path), self.colour) or 0) / whole if whole else None

    def _said(self, measures: Measures) -> Iterator[str]:
        whole = self.measures.get("", Measures())
        writers = {"params": self.units.parameters, "macs": self.units.macs, "memory": self.units.bytes}
        for colour, write in writers.items():
            number, total = _by(measures, colour), _by(whole, colour)
            if number and total:
                more = " of activations" if colour == "memory" else ""
                yield f"{write(number)}{more} ({format_percent(100 * number / total)})"
        yield from filter(None, [not_counted(measures.uncounted)])

    @functools.cached_property
    def measures(self) -> dict[str, Measures]:
        """Return the measures of every operator and module call by path."""
        return by_call(self.record, self.units.convention)

    @functools.cached_property
    def _first_calls(self) -> dict[str, str]:
        return {body: paths[0] for body, paths in body_paths(self.record).items()}


def _by(measures: Measures, colour: str) -> int | None:
    known = {"params": measures.parameters, "macs": measures.macs, "memory": measures.activation_bytes}
    return known[colour]


def format_percent(percent: float) -> str:
    """Return a share as text: ``38 %``, ``4.2 %``, ``<0.1 %``."""
    if 0 < percent < 0.1:
        return "<0.1 %"
    return f"{percent:.0f} %" if percent >= 9.95 or not percent else f"{percent:.1f} %"


def shade(percent: float) -> int:
    """Return the number of the shade of a share, 0 for no share."""
    return 1 + bisect.bisect_right(BOUNDS, percent) if percent else 0


def scale() -> Iterable[tuple[int, str]]:
    """Return the legend of shades: the number of each and the shares that it stands for."""
    lows, highs = (0, *BOUNDS), (*BOUNDS, None)
    between = (f"{low}–{high} %" if low else f"<{high} %" for low, high in zip(lows, highs[:-1], strict=False))
    return enumerate(("none", *between, f"≥{BOUNDS[-1]} %"))


@dataclass(frozen=True)
class Entry:
    """One entry of the legend.

    Attributes:
        key: a category of `palette`, or ``closed``, ``fold``, ``weak``, ``share-3``: the class ``fxg-<key>`` has its
            look.
        text: what it means.
    """

    key: str
    text: str


_TEXTS = {
    "matmul": mark("convolution, product, attention"),
    "norm": mark("normalisation"),
    "act": mark("activation"),
    "pool": mark("pooling, resampling"),
    "math": mark("arithmetic"),
    "shape": mark("shape, copy, dropout"),
    "param": mark("parameter, buffer, constant"),
    "io": mark("input, output"),
    "other": mark("other operator"),
    "closed": mark("module, its inside not shown"),
    "fold": mark("×n: repeats that are drawn once"),
    "weak": mark("dashed: no tensor"),
}


def entries(picture: Frame, shares: Shares | None = None) -> list[Entry]:
    """Return the legend of a picture: categories in the order of the palette, then marks; or the shades of shares."""
    found = set(_keys(picture))
    if shares and shares.colour != "kind":
        told = [Entry(f"share-{number}", text) for number, text in scale()]
        told[0] = Entry("share-0", _("no {}", _(COLORS[shares.colour])))
        return [*told, *(Entry(key, _(_TEXTS[key])) for key in ("fold", "weak") if key in found)]
    return [Entry(key, _(_TEXTS[key])) for key in (*CATEGORIES, "closed", "fold", "weak") if key in found]


def html_list(picture: Frame, within: Iterable[Frame] = ()) -> str:
    """Return the legend for a page, ``ul.fxg-legend``.

    Args:
        picture: what is seen at first.
        within: what may be seen once modules are opened. What only this has is there too, and hidden.
    """
    seen = set(_keys(picture))
    later = {key for frame in within for key in _keys(frame)}
    items = (
        f'<li data-key="{key}"{"" if key in seen else " hidden"}>{xml(_(text))}</li>'
        for key, text in _TEXTS.items()
        if key in seen | later
    )
    name = _("Legend")
    return f'<ul class="fxg-legend" aria-label="{xml(name)}">{"".join(items)}</ul>'


def _keys(frame: Frame) -> Iterator[str]:
    for drawn in frame.boxes:
        yield from _keys_of(drawn)
    if any(line.weak for line in frame.lines):
        yield "weak"
    for inner in frame.frames:
        if inner.box and inner.box.run:
            yield "fold"
        yield from _keys(inner)
    for panel in frame.panels:
        yield from _keys(panel)


def _keys_of(drawn: Drawn) -> Iterator[str]:
    if drawn.rows:
        for row in drawn.rows:
            yield from _keys_of(row)
        return
    yield "closed" if drawn.label.closed else category(drawn.box.node)
    if drawn.box.run:
        yield "fold"
