"""Texts at edges: each stands beside its own edge, off boxes, other texts and other edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sphinx_fxgraph.layout.lanes import Point, Rectangle, sampled, straight
from sphinx_fxgraph.layout.route import Line

_BESIDE = 2.0
"""From an edge to its text."""


def placed(
    sizes: Mapping[int, tuple[float, float]],
    asked: Mapping[int, Point],
    lines: Sequence[Line],
    boxes: Sequence[Rectangle],
) -> dict[int, Rectangle]:
    """Where the texts stand.

    Args:
        sizes: of each text, by number of its edge.
        asked: the middles that the engine gives them; the first choice.
        lines: all edges.
        boxes: all boxes.
    """
    found: dict[int, Rectangle] = {}
    points = [list(sampled(line.points if line.curved else straight(*line.points))) for line in lines if not line.rail]
    for index, size in sizes.items():
        near = [path for number, path in enumerate(points) if number != index]
        first = _around(asked[index], size)
        found[index] = next(
            (
                place
                for place in (first, *_places(points[index], size))
                if not any(map(place.overlaps, (*boxes, *found.values())))
                and not any(place.holds(point, 1) for path in near for point in path)
            ),
            first,
        )
    return found


def _places(path: Sequence[Point], size: tuple[float, float]) -> Iterator[Rectangle]:
    """On the right and on the left of a line, from its middle to its ends."""
    for at in sorted(range(len(path)), key=lambda at: abs(at - len(path) // 2)):
        for side in (1, -1):
            yield _around((path[at][0] + side * (size[0] / 2 + _BESIDE), path[at][1]), size)


def _around(middle: Point, size: tuple[float, float]) -> Rectangle:
    (x, y), (width, height) = middle, size
    return Rectangle(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
