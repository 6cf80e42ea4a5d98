"""What is wrong with a picture: overlaps and crossings, from nothing but its SVG."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

_SVG = "{http://www.w3.org/2000/svg}"
_STEPS = 32
"""Points on each Bézier curve or straight line."""
_AT_END = 2.5
"""How deep an edge may reach into a box that it ends at: its arrow's tip."""
_NEAR = 3
_CORNER = 6.0
"""No edge ends nearer to a corner of a box."""
_TOUCHES = 3.0
"""An edge ends at a box, a border or another edge that is no farther away."""
_NUMBER = re.compile(r"-?[\d.]+")

Point = tuple[float, float]


@dataclass(frozen=True)
class Rectangle:
    """A box, a frame or a text, from the corner of the picture."""

    name: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Rectangle) -> bool:
        """Whether they share more than a border."""
        across = min(self.right, other.right) - max(self.left, other.left)
        along = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > 0.1 and along > 0.1

    def depth(self, point: Point) -> float:
        """How far inside a point is; negative outside."""
        x, y = point
        return min(x - self.left, self.right - x, y - self.top, self.bottom - y)


@dataclass
class Level:
    """The inside of a frame or of the picture: what stands directly in it."""

    frame: Rectangle
    parts: list[Rectangle] = field(default_factory=list)
    edges: list[list[Point]] = field(default_factory=list)
    titles: list[Rectangle] = field(default_factory=list)
    controls: list[list[Point]] = field(default_factory=list)
    """The corners and control points of each edge, as they stand in its path."""
    open_parts: set[str] = field(default_factory=set)
    """The names of the parts that are frames."""
    around: Level | None = None
    """The level that the frame stands in."""
    is_panel: bool = False
    """Whether it is a block beside the overview, which lines enter below its title and leave at its border."""


def levels(root: ET.Element) -> list[Level]:
    """Every level of a picture, the outermost first."""
    whole = Level(Rectangle("picture", 0, 0, float(root.get("width", 0)), float(root.get("height", 0))))
    found = [whole]
    _read(root, whole, 0, 0, found)
    return found


def _read(element: ET.Element, level: Level, x: float, y: float, found: list[Level]) -> None:
    for child in element:
        kinds = (child.get("class") or "").split()
        if child.tag == f"{_SVG}path" and "fxg-edge" in kinds:
            path = child.get("d", "")
            level.edges.append([(x + px, y + py) for px, py in points(path)])
            numbers = [float(number) for number in _NUMBER.findall(path)]
            level.controls.append([(x + px, y + py) for px, py in zip(numbers[::2], numbers[1::2], strict=True)])
        elif child.tag == f"{_SVG}g" and child.get("transform"):
            left, top = (float(value) for value in re.findall(r"-?[\d.]+", child.get("transform", "")))
            rectangles = [one for one in child.findall(f"{_SVG}rect") if "fxg-chip" not in (one.get("class") or "")]
            if not rectangles:
                _read(child, level, x + left, y + top, found)
                continue
            part = _outline(child, rectangles, x + left, y + top)
            level.parts.append(part)
            if any("fxg-frame" in (one.get("class") or "") for one in rectangles):
                level.open_parts.add(part.name)
                inner = Level(part, around=level, is_panel="fxg-panel" in kinds)
                found.append(inner)
                _read(child, inner, x + left, y + top, found)
        elif child.tag == f"{_SVG}text" and {"fxg-title", "fxg-note", "fxg-port"} & set(kinds):
            level.titles.append(_text(child, x, y, middle="fxg-note" in kinds))


def _outline(group: ET.Element, rectangles: list[ET.Element], x: float, y: float) -> Rectangle:
    """A box with all the sheets of its stack."""
    lefts = [float(one.get("x", 0)) for one in rectangles]
    tops = [float(one.get("y", 0)) for one in rectangles]
    rights = [left + float(one.get("width", 0)) for left, one in zip(lefts, rectangles, strict=True)]
    bottoms = [top + float(one.get("height", 0)) for top, one in zip(tops, rectangles, strict=True)]
    name = group.get("data-path") or group.get("class") or ""
    return Rectangle(name, x + min(lefts), y + min(tops), x + max(rights), y + max(bottoms))


def _text(element: ET.Element, x: float, y: float, *, middle: bool) -> Rectangle:
    """About where a text stands; labels are measured in a browser."""
    text = "".join(element.itertext())
    width, left, base = 5.6 * len(text), x + float(element.get("x", 0)), y + float(element.get("y", 0))
    if middle:
        left -= width / 2
    return Rectangle(text, left, base - 8, left + width, base + 1)


def points(path: str) -> list[Point]:
    """Points along a path of absolute M, L and C commands, close to each other."""
    found: list[Point] = []
    for command, text in re.findall(r"([MLC])([^MLC]*)", path):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", text)]
        corners = list(zip(numbers[::2], numbers[1::2], strict=True))
        if command == "M":
            found += corners[:1]
            corners = corners[1:]
        if command == "C":
            for at in range(0, len(corners), 3):
                found += _bezier(found[-1], *corners[at : at + 3])
        else:
            for corner in corners:
                found += _bezier(found[-1], found[-1], corner, corner)
    return found


def _bezier(a: Point, b: Point, c: Point, d: Point) -> Iterator[Point]:
    for step in range(1, _STEPS + 1):
        t = step / _STEPS
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        yield (
            sum(w * p[0] for w, p in zip(weights, (a, b, c, d), strict=True)),
            sum(w * p[1] for w, p in zip(weights, (a, b, c, d), strict=True)),
        )


@dataclass
class Faults:
    """What should not be, each with where it is."""

    overlaps: list[str] = field(default_factory=list)
    crossings: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    """Edges through the title of a frame, or a text at an edge that stands on a box."""
    close: list[str] = field(default_factory=list)
    """Edges nearer than `_NEAR` to a box or a frame that they do not end at."""
    corners: list[str] = field(default_factory=list)
    """Edges that end at a corner of a box."""
    stray: list[str] = field(default_factory=list)
    """Ends of edges that are at no box, no other edge, and no border where an edge or a name goes on."""
    outside: list[str] = field(default_factory=list)
    """Control points outside the frame of their edge."""


def faults(svg: str) -> tuple[Faults, Counter[str]]:
    """What is wrong with a picture, and how many boxes, frames and elements it has."""
    root = ET.fromstring(svg)  # noqa: S314 - we wrote it
    found = Faults()
    counts: Counter[str] = Counter(elements=sum(1 for _ in root.iter()))
    for level in levels(root):
        counts["boxes"] += len(level.parts)
        for one, other in itertools.combinations(level.parts, 2):
            if one.overlaps(other):
                found.overlaps.append(f"{one.name} and {other.name}")
        for part in level.parts:
            if level.frame.depth((part.left, part.top)) < 0 or level.frame.depth((part.right, part.bottom)) < 0:
                found.overlaps.append(f"{part.name} reaches out of {level.frame.name}")
        for title in level.titles:
            found.titles += [f"{title.name} on {part.name}" for part in level.parts if part.overlaps(title)]
        for edge in level.edges:
            _check(edge, level, found)
        _check_ends(level, found)
        for controls in level.controls:
            found.outside += [
                f"{_at(point)} in {level.frame.name}" for point in controls if level.frame.depth(point) < -1
            ]
    return found, counts


def _at(point: Point) -> str:
    return f"({point[0]:.0f}, {point[1]:.0f})"


def _check_ends(level: Level, found: Faults) -> None:
    """Check where the edges of a level begin and end."""
    for index, edge in enumerate(level.edges):
        for end in (edge[0], edge[-1]):
            part = next((part for part in level.parts if abs(part.depth(end)) <= _TOUCHES), None)
            if part:
                if part.name not in level.open_parts and _from_corner(part, end) < _CORNER:
                    found.corners.append(f"{_at(end)} at {part.name}")
            elif level.is_panel and (end[1] < level.frame.top + 24 or abs(level.frame.depth(end)) <= _TOUCHES):
                continue
            elif abs(level.frame.depth(end)) <= _TOUCHES and level.around:
                if not _goes_on(level, end):
                    found.stray.append(f"{_at(end)} at the border of {level.frame.name}")
            elif not any(_is_on(end, other) for other in (*level.edges[:index], *level.edges[index + 1 :])):
                found.stray.append(f"{_at(end)} in {level.frame.name}")


def _from_corner(part: Rectangle, end: Point) -> float:
    x, y = end
    across, along = min(abs(x - part.left), abs(x - part.right)), min(abs(y - part.top), abs(y - part.bottom))
    return max(across, along)


def _is_on(end: Point, edge: list[Point]) -> bool:
    return any(_distance(end, one, two) <= _TOUCHES for one, two in itertools.pairwise(edge))


def _distance(point: Point, one: Point, two: Point) -> float:
    """Return how far a point is from a straight line between two others."""
    (x, y), (ax, ay), (bx, by) = point, one, two
    length = (bx - ax) ** 2 + (by - ay) ** 2
    t = max(0.0, min(1.0, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length)) if length else 0.0
    return math.hypot(x - ax - t * (bx - ax), y - ay - t * (by - ay))


def _goes_on(level: Level, end: Point) -> bool:
    """Return whether an edge of the level around meets this end, or a text beside it names it."""
    assert level.around is not None, "the outermost level has no border"
    if any(_is_on(end, [edge[at], edge[at]]) for edge in level.around.edges for at in (0, -1)):
        return True
    near = Rectangle("", end[0] - 12, end[1] - 16, end[0] + 12, end[1] + 16)
    return any(near.overlaps(title) for title in (*level.titles, *level.around.titles))


def _check(edge: list[Point], level: Level, found: Faults) -> None:
    ends = edge[0], edge[-1]
    name = f"({ends[0][0]:.0f}, {ends[0][1]:.0f}) to ({ends[1][0]:.0f}, {ends[1][1]:.0f})"
    for part in level.parts:
        ends_here = any(abs(part.depth(end)) < _AT_END for end in ends)
        if max(map(part.depth, edge)) > (_AT_END if ends_here else 0.3):
            found.crossings.append(f"{name} through {part.name}")
        elif not ends_here and max(map(part.depth, edge)) > -_NEAR:
            found.close.append(f"{name} along {part.name}")
    if min(map(level.frame.depth, edge)) < -1:
        found.crossings.append(f"{name} leaves {level.frame.name}")
    found.titles += [
        f"{name} through {title.name}"
        for title in level.titles
        if max(map(title.depth, edge)) > 0 and not _is_note_of(title, edge)
    ]


def _is_note_of(title: Rectangle, edge: list[Point]) -> bool:
    """A text may stand beside its own edge so closely that it touches it."""
    return max(map(title.depth, edge)) < 3
