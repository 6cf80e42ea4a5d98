"""What the colours and marks of a picture mean: only those that are in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sphinx_fxgraph.drawing.composer import Drawn, Frame
from sphinx_fxgraph.drawing.svg.palette import CATEGORIES, category
from sphinx_fxgraph.drawing.svg.shares import COLOURS, Shares, scale


@dataclass(frozen=True)
class Entry:
    """One line of the legend.

    Attributes:
        key: a category of `palette`, or ``closed``, ``fold``, ``weak``, ``share-3``: the class ``fxg-<key>`` has its
            look.
        text: what it means.
    """

    key: str
    text: str


_TEXTS = {
    "matmul": "convolution, product, attention",
    "norm": "normalisation",
    "act": "activation",
    "pool": "pooling, resampling",
    "math": "arithmetic",
    "shape": "shape, copy, dropout",
    "param": "parameter, buffer, constant",
    "io": "input, output",
    "other": "other operator",
    "closed": "module, its inside not shown",
    "fold": "×n: repeats that are drawn once",
    "weak": "dashed: no tensor",
}


def entries(picture: Frame, shares: Shares | None = None) -> list[Entry]:
    """The legend of a picture: categories of operators first, in the order of the palette; or the shades of shares."""
    found = set(_keys(picture))
    if shares and shares.colour != "kind":
        told = [Entry(f"share-{number}", text) for number, text in scale()]
        told[0] = Entry("share-0", f"no {COLOURS[shares.colour]}")
        return [*told, *(Entry(key, _TEXTS[key]) for key in ("fold", "weak") if key in found)]
    return [Entry(key, _TEXTS[key]) for key in (*CATEGORIES, "closed", "fold", "weak") if key in found]


def _keys(frame: Frame) -> Iterator[str]:
    for drawn in frame.boxes:
        yield from _keys_of(drawn)
    if any(line.weak for line in frame.lines):
        yield "weak"
    for inner in frame.frames:
        if inner.box and inner.box.run:
            yield "fold"
        yield from _keys(inner)


def _keys_of(drawn: Drawn) -> Iterator[str]:
    yield "closed" if drawn.label.closed else category(drawn.box.node)
    if drawn.box.run:
        yield "fold"
