"""Where the boxes and the ends of a level are, in the axes of the flow: x runs across it, y along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sphinx_fxgraph.layout.lanes import End, Point, Rectangle
from sphinx_fxgraph.layout.level_dot import Extent
from sphinx_fxgraph.view.level import BOUNDARY, Level, Port

_SNAP = 6.0
"""The most that a box is moved to stand exactly on the spine: less than half the distance of two boxes."""


@dataclass
class Spots:
    """The middles of a level's boxes, and its own ends."""

    boxes: list[Point]
    inputs: list[Point]
    outputs: list[Point]
    extents: Sequence[Extent]

    def copy(self) -> Spots:
        """Another one that can be changed."""
        return Spots(list(self.boxes), list(self.inputs), list(self.outputs), self.extents)

    def rectangle(self, box: int) -> Rectangle:
        """What a box covers; of a stack the empty corner before its first sheet is no part."""
        (x, y), extent = self.boxes[box], self.extents[box]
        across, along = extent.width / 2, extent.height / 2
        return Rectangle(x - across + extent.stack, y - along, x + across, y + along)

    def is_open(self, port: Port) -> bool:
        """Whether it is at a box that shows its inside, so that the edge has to meet it at one place."""
        return port.box != BOUNDARY and self.extents[port.box].inputs is not None

    def tail(self, port: Port) -> Point:
        """Where an edge from ``port`` starts: at the bottom of its box."""
        if port.box == BOUNDARY:
            return self.inputs[port.number]
        (x, y), extent = self.boxes[port.box], self.extents[port.box]
        return x + _offset(extent, extent.outputs, port.number), y + extent.height / 2

    def head(self, port: Port) -> Point:
        """Where an edge to ``port`` ends: at the top of its box."""
        if port.box == BOUNDARY:
            return self.outputs[port.number]
        (x, y), extent = self.boxes[port.box], self.extents[port.box]
        return x + _offset(extent, extent.inputs or (), port.number), y - extent.height / 2

    def end(self, port: Port, point: Point, *, moves: bool) -> End:
        """The end of an edge at ``port``, which is at ``point`` and, on the level's border, ``moves`` or not."""
        if port.box == BOUNDARY:
            return End(point, free=moves)
        return End(point, self.rectangle(port.box), free=not self.is_open(port))

    def straighten(self, level: Level) -> None:
        """Move the boxes of the spine sideways by the little that the engine's rounding left them off the line."""
        for edge in level.spine():
            line, (x, _) = self.tail(edge.tail)[0], self.head(edge.head)
            if abs(line - x) > _SNAP:
                continue
            places = self.outputs if edge.head.box == BOUNDARY else self.boxes
            index = edge.head.number if edge.head.box == BOUNDARY else edge.head.box
            places[index] = (places[index][0] + line - x, places[index][1])


def _offset(extent: Extent, ports: Sequence[float], number: int) -> float:
    """How far right of the middle of a box one of its ports lies."""
    return ports[number] - extent.width / 2 if extent.inputs is not None else 0.0
