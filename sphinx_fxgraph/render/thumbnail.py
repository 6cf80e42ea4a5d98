"""A model as a silhouette, small enough that a page can hold hundreds.

Each operator with weights and each pooling is a bar, in the order of execution: its height follows the logarithm of the
size of the map or of the sequence, its width that of the channels, its colour is that of its category. Skips are arcs
above. There is no text.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta
from sphinx_fxgraph.render import svg
from sphinx_fxgraph.render.elements import Element, Text, number
from sphinx_fxgraph.view.annotations import category

_WIDTH, _HEIGHT = 180.0, 100.0
_ARCS = 28.0
"""Height that is left for arcs."""
_MOST_BARS = 240
"""Of a longer model every second, third, … operator is a bar."""
_MOST_ARCS = 48
"""Of more skips the longest are drawn."""
_DRAWN = ("matmul", "pool")


@dataclass(frozen=True)
class _Bar:
    category: str
    extent: float
    """Size of the map, or length of the sequence."""
    channels: float


@dataclass
class _Silhouette:
    """The bars of a model, and the skips between them by the number of bars before each end."""

    record: Record
    bars: list[_Bar] = field(default_factory=list)
    skips: set[tuple[int, int]] = field(default_factory=set)

    def add(self, body: Body) -> None:
        """Add the operators of one call of a body."""
        start = len(self.bars)
        ends: dict[str, int] = {}
        for node in body.nodes:
            before = len(self.bars)
            sources = {ends.get(value.node, start) for value in node.inputs}
            if len(sources) > 1:
                self.skips |= {(source, before) for source in sources if source < before}
            if node.body:
                self.add(self.record.bodies[node.body])
            elif category(node) in _DRAWN and node.outputs:
                self.bars.append(_bar(node, node.outputs[0]))
            ends[node.name] = len(self.bars)


def _bar(node: Node, meta: TensorMeta) -> _Bar:
    shape = [size if isinstance(size, int) else 1 for size in meta.shape] or [1]
    is_map = len(shape) >= 3 and not node.kind.lower().startswith(
        ("linear", "embedding", "multihead", "matmul", "scaled")
    )
    channels, extents = (shape[1], shape[2:]) if is_map else (shape[-1], shape[1:-1])
    return _Bar(category(node), math.prod(extents) ** (1 / max(1, len(extents))), channels)


def thumbnail(record: Record, title: str) -> str:
    """Return the silhouette of a model as inline SVG; empty where there is no graph."""
    if not record.root:
        return ""
    silhouette = _Silhouette(record)
    silhouette.add(record.bodies[record.root])
    paths, arcs = _paths(silhouette)
    content = [
        Element("title", "", [Text(title)]),
        *([Element("path", "fxg-edge", (), {"d": arcs})] if arcs else []),
        *(Element("g", f"fxg-{name}", [Element("path", "fxg-box", (), {"d": path})]) for name, path in paths.items()),
    ]
    view = f"0 0 {number(_WIDTH)} {number(_HEIGHT)}"
    geometry = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": view, "role": "img"}
    return svg.page_svg([Element("svg", "fxg-thumb", content, geometry)])


def _paths(silhouette: _Silhouette) -> tuple[dict[str, str], str]:
    """Return the bars as one path for each category, and the skips as one path."""
    step = -(-len(silhouette.bars) // _MOST_BARS) or 1
    bars = silhouette.bars[::step]
    if not bars:
        return {}, ""
    widths = [1 + math.log2(1 + bar.channels) for bar in bars]
    heights = [1 + math.log2(1 + bar.extent) for bar in bars]
    across = min((_WIDTH - 4) / (sum(widths) + 0.5 * len(bars)), 6.0)
    along = min((_HEIGHT - _ARCS - 4) / max(heights), 8.0)
    x = (_WIDTH - across * (sum(widths) + 0.5 * (len(bars) - 1))) / 2
    middle = _ARCS + (_HEIGHT - _ARCS) / 2
    paths: dict[str, list[str]] = defaultdict(list)
    starts = []
    for bar, width, height in zip(bars, widths, heights, strict=True):
        starts.append(x - 0.25 * across)
        top, high = middle - along * height / 2, along * height
        paths[bar.category].append(f"M{number(x)} {number(top)}h{number(across * width)}v{number(high)}H{number(x)}z")
        x += across * (width + 0.5)
    starts.append(x - 0.25 * across)
    top = middle - along * max(heights) / 2 - 1
    ends = {(tail // step, min(-(-head // step), len(bars))) for tail, head in silhouette.skips}
    longest = sorted(ends, key=lambda skip: skip[0] - skip[1])[:_MOST_ARCS]
    arcs = "".join(_arc(starts[tail], starts[head], top) for tail, head in sorted(longest))
    return {name: "".join(path) for name, path in paths.items()}, arcs


def _arc(left: float, right: float, y: float) -> str:
    top = number(y - min(_ARCS - 2, 3 + (right - left) / 3))
    return f"M{number(left)} {number(y)}C{number(left)} {top} {number(right)} {top} {number(right)} {number(y)}"
