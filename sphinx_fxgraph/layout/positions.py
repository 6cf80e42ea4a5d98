"""Where the boxes and the ends of a level are, in the axes of the flow: x runs across it, y along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sphinx_fxgraph.layout.geometry import Point, Rectangle
from sphinx_fxgraph.layout.level_dot import Extent
from sphinx_fxgraph.view.level import BOUNDARY, Level, Port

_SNAP = 6.0
"""The most that a box is moved to stand exactly on the main path: less than half the distance of two boxes."""


@dataclass
class Positions:
    """The middles of a level's boxes, and where its own ends lie across it."""

    boxes: list[Point]
    inputs: list[float]
    outputs: list[float]
    extents: Sequence[Extent]
    height: float = 0.0
    """Of the level; its outputs lie there."""
    upward: frozenset[int] = frozenset()
    """The boxes that edges enter from below and leave at the top."""

    def rectangle(self, box: int) -> Rectangle:
        """Return what a box covers; the empty corner before the first sheet of a stack does not count."""
        (x, y), extent = self.boxes[box], self.extents[box]
        across, along = extent.width / 2, extent.height / 2
        return Rectangle(x - across + extent.stack, y - along, x + across, y + along)

    def is_open(self, port: Port) -> bool:
        """Return whether a port is at a box that shows its inside, so that an edge has to meet it at one place."""
        return port.box != BOUNDARY and self.extents[port.box].inputs is not None

    def is_upward(self, port: Port) -> bool:
        """Return whether the flow goes up at a port."""
        return port.box in self.upward

    def tail(self, port: Port) -> Point:
        """Return where an edge from a port starts: at the bottom of its box, or at the top of the level."""
        if port.box == BOUNDARY:
            return self.inputs[port.number], 0.0
        (x, y), extent = self.boxes[port.box], self.extents[port.box]
        along = extent.height / 2
        return x + _offset(extent, extent.outputs, port.number), y - along if self.is_upward(port) else y + along

    def head(self, port: Port) -> Point:
        """Return where an edge to a port ends: at the top of its box, or at the bottom of the level."""
        if port.box == BOUNDARY:
            return self.outputs[port.number], self.height
        (x, y), extent = self.boxes[port.box], self.extents[port.box]
        along = extent.height / 2
        return x + _offset(extent, extent.inputs or (), port.number), y + along if self.is_upward(port) else y - along

    def straighten(self, level: Level) -> None:
        """Move the boxes of the main path sideways by the little that the engine's rounding left them off the line.

        The way up of a U becomes one column.
        """
        column = max((self.boxes[box][0] for box in level.upward), default=0.0)
        for box in level.upward:
            self.boxes[box] = column, self.boxes[box][1]
        for edge in level.spine():
            line, (x, _) = self.tail(edge.tail)[0], self.head(edge.head)
            if abs(line - x) > _SNAP:
                continue
            if edge.head.box == BOUNDARY:
                self.outputs[edge.head.number] += line - x
            else:
                x, y = self.boxes[edge.head.box]
                self.boxes[edge.head.box] = x + line - self.head(edge.head)[0], y


def _offset(extent: Extent, ports: Sequence[float], number: int) -> float:
    """Return how far right of the middle of a box one of its ports lies."""
    return ports[number] - extent.width / 2 if extent.inputs is not None else 0.0
