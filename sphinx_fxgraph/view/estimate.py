"""Estimate how large a level is drawn, before any engine lays it out.

What a default view opens depends on the size of the picture. An estimate makes that the same on every machine, with
any engine and with none. It counts boxes in ranks, as a layered layout places them: in a column of boxes it is exact to
a few pixels.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from sphinx_fxgraph.view import labels, main_path
from sphinx_fxgraph.view.level import BOUNDARY, Box, Level

_BETWEEN_RANKS, _AT_INPUTS, _AT_OUTPUTS = 19.0, 12.0, 8.0
_BETWEEN_BOXES, _BETWEEN_WAYS = 15.0, 40.0
_TITLE, _SECOND_LINE, _BELOW, _BESIDE = 24.0, 14.0, 2.0, 12.0
"""Of a frame: height of its title, of the second line of a run, below and beside what is in it."""
MOST_CENTRED = 400.0
"""Width of a frame up to which what is in it stays in the middle, though its title needs more room at the right."""
_NOTE = 24.0
"""More height between two ranks if an edge between them has a text."""
_LANE = 9.0
"""Width that an edge takes beside boxes."""
PANEL_TITLE = 20.0
"""Height of the title of a panel, above what comes in."""
_MARGIN = 8.0
"""Around the whole picture."""


@dataclass(frozen=True)
class Size:
    """Size of a box or level, and where its main path runs, from its left; in pixels at natural size."""

    width: float
    height: float
    line: float
    elements: int
    """How many SVG elements it has, about."""


class Estimator:
    """Estimates sizes; equal levels once.

    Args:
        turned: whether data flows from left to right.
    """

    def __init__(self, *, turned: bool = False) -> None:
        self.turned = turned
        self._levels: dict[Level, Size] = {}
        self._boxes: dict[Box, Size] = {}

    def picture(self, level: Level) -> Size:
        """Return the size of the whole picture, in its own axes."""
        size = self._level(level)
        width, height = size.width + 2 * _MARGIN, size.height + 2 * _MARGIN
        if self.turned:
            width, height = height, width
        return Size(width, height, size.line + _MARGIN, size.elements)

    def panel(self, box: Box, title: float) -> Size:
        """Return the size of a panel.

        Args:
            box: the block that it shows, open.
            title: width of its title.
        """
        assert box.inner is not None, "a panel shows the inside of a block"
        inner = self._level(box.inner)
        width, height = inner.width + 2 * _BESIDE, inner.height + _TITLE + _BELOW
        if self.turned:
            width, height = height, width
        return Size(max(width, title + 2 * _BESIDE), height + PANEL_TITLE, inner.line, inner.elements)

    def _box(self, box: Box) -> Size:
        if box not in self._boxes:
            self._boxes[box] = self._open(box, box.inner) if box.inner else self._closed(box)
        return self._boxes[box]

    def _closed(self, box: Box) -> Size:
        label = labels.label(box)
        stack = 2 * labels.STACK if label.stacked else 0.0
        width, height = (label.height, label.width) if self.turned else (label.width, label.height)
        elements = 8 * len(label.rows) + 2 if label.rows else 9
        return Size(width + 2 * stack, height + stack, width / 2 + stack, elements)

    def _open(self, box: Box, level: Level) -> Size:
        inner = self._level(level)
        second = _SECOND_LINE if box.run else 0.0
        stack = 2 * labels.STACK if box.run else 0.0
        title = labels.title_width(box) + 16
        width, height = inner.width + 2 * _BESIDE, inner.height + _TITLE + _BELOW + second
        line = inner.line + _BESIDE
        if self.turned:
            height = max(height, title)
        elif title > line:
            more = max(0.0, line + title - width)
            width += more
            if width + more <= MOST_CENTRED:
                width, line = width + more, line + more
        return Size(width + 2 * stack, height + stack, line + stack, inner.elements + 9)

    def _level(self, level: Level) -> Size:
        if level not in self._levels:
            self._levels[level] = self._measured(level)
        return self._levels[level]

    def _measured(self, level: Level) -> Size:
        sizes = [self._box(box) for box in level.boxes]
        downward = _ranks(level)
        ranks = main_path.ranks(level, downward)
        spine = {port.box for edge in level.spine() for port in (edge.tail, edge.head)} - {BOUNDARY}
        heights: dict[float, float] = defaultdict(float)
        beside: dict[float, float] = defaultdict(float)
        left = max((sizes[box].line for box in spine), default=0.0)
        right: dict[float, float] = defaultdict(float)
        for box, rank in enumerate(ranks):
            heights[rank] = max(heights[rank], sizes[box].height)
            if box in level.upward:
                beside[rank] += sizes[box].width + _BETWEEN_WAYS
            elif box in spine:
                right[rank] = max(right[rank], sizes[box].width - sizes[box].line)
            else:
                beside[rank] += sizes[box].width + _BETWEEN_BOXES
        for edge in level.edges:
            if edge.tensors and edge.head.box != BOUNDARY:
                beside[ranks[edge.head.box]] += labels.edge_text_size(edge)[0]
            if not edge.spine and not level.pairs:
                first = -1 if edge.tail.box == BOUNDARY else downward[edge.tail.box]
                last = len(heights) if edge.head.box == BOUNDARY else downward[edge.head.box]
                for rank in range(first + 1, last):
                    beside[rank] += _LANE
        across = max((right[rank] + beside[rank] for rank in heights), default=0.0)
        ends = (_AT_INPUTS if level.inputs else 0) + (_AT_OUTPUTS if level.outputs else 0)
        height = sum(heights.values()) + _BETWEEN_RANKS * max(0, len(heights) - 1) + ends
        height += _NOTE * len(
            {ranks[edge.head.box] for edge in level.edges if edge.tensors and edge.head.box != BOUNDARY}
        )
        elements = sum(size.elements for size in sizes) + len(level.edges)
        return Size(left + across, height, left, elements)


def _ranks(level: Level) -> list[int]:
    """Return the rank of each box: as far down as what it takes from allows; what only gives, beside its consumer."""
    tails: dict[int, list[int]] = defaultdict(list)
    heads: dict[int, list[int]] = defaultdict(list)
    for edge in level.edges:
        if edge.head.box != BOUNDARY:
            tails[edge.head.box].append(edge.tail.box)
        if BOUNDARY not in (edge.tail.box, edge.head.box):
            heads[edge.tail.box].append(edge.head.box)
    ranks = [0] * len(level.boxes)
    for box in range(len(level.boxes)):  # in the order of execution, so that what a box takes from comes before it
        ranks[box] = 1 + max((ranks[tail] for tail in tails[box] if tail != BOUNDARY), default=-1)
    for box in reversed(range(len(level.boxes))):
        if heads[box] and not tails[box]:
            ranks[box] = max(0, min(ranks[head] for head in heads[box]) - 1)
    return ranks
