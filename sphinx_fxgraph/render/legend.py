"""What the colours and marks of a picture mean: only those that are in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sphinx_fxgraph.options import COLORS
from sphinx_fxgraph.render.heat import Shares, scale
from sphinx_fxgraph.render.scene import Drawn, Frame
from sphinx_fxgraph.text.escape import xml
from sphinx_fxgraph.text.translate import _, mark
from sphinx_fxgraph.view.categories import CATEGORIES, category


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
    """The legend of a picture: categories of operators first, in the order of the palette; or the shades of shares."""
    found = set(_keys(picture))
    if shares and shares.colour != "kind":
        told = [Entry(f"share-{number}", text) for number, text in scale()]
        told[0] = Entry("share-0", _("no {}", _(COLORS[shares.colour])))
        return [*told, *(Entry(key, _(_TEXTS[key])) for key in ("fold", "weak") if key in found)]
    return [Entry(key, _(_TEXTS[key])) for key in (*CATEGORIES, "closed", "fold", "weak") if key in found]


def html_list(picture: Frame, within: Iterable[Frame] = ()) -> str:
    """The legend for a page, ``ul.fxg-legend``.

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
