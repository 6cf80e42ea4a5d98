"""What a box says and how large that makes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sphinx_fxgraph.record.diff import SIGNS
from sphinx_fxgraph.record.model import Node, TensorMeta
from sphinx_fxgraph.render import fonts
from sphinx_fxgraph.text.shapes import format_shape
from sphinx_fxgraph.view.level import Box
from sphinx_fxgraph.view.simplified import GROUP, Run

KIND_SIZE, DETAIL_SIZE, NAME_SIZE, SHAPE_SIZE = 12.0, 11.0, 9.5, 9.5
"""Font sizes in user units of the drawing."""
GAP = 5.0
"""Between the parts of a line."""
STACK = 3.0
"""How far each sheet of a stack stands out of the one before."""
CHIP_HEIGHT = 14.0
_MOST_CHARACTERS = 36
_MOST_CHIPS = 3
_SHOWN_TENSORS = 3


@dataclass(frozen=True)
class Label:
    """Up to four lines in a box: kind, detail and count; name; shape; chips. ``width`` and ``height`` are the box's."""

    kind: str
    detail: str
    count: str
    name: str
    shape: str
    chips: str
    width: float
    height: float
    closed: bool
    """A module call whose inside is not shown."""
    stacked: bool
    """It stands for a run."""


def label(box: Box) -> Label:
    """The label of a closed box or an operator."""
    node, closed = box.node, bool(box.node.body)
    kind, name = _names(node)
    kind, name = sign(node) + fonts.shorten(kind, _MOST_CHARACTERS), fonts.shorten(name, _MOST_CHARACTERS)
    detail, count = fonts.shorten(node.detail, _MOST_CHARACTERS), times(box.run)
    if box.run:
        name = span(node, box.run)
    first = fonts.sans(kind, KIND_SIZE, bold=True) + (14 if closed else 0)
    first += GAP + fonts.sans(detail, DETAIL_SIZE) if detail else 0
    first += GAP + fonts.sans(count, KIND_SIZE, bold=True) if count else 0
    said, chips = shape(box.tensors), chip(box.chips)
    inner = max(
        first,
        fonts.mono(name, NAME_SIZE),
        fonts.sans(said, SHAPE_SIZE),
        fonts.mono(chips, NAME_SIZE) + 10,
        44,
    )
    lines = 1 + bool(name) + bool(said)
    return Label(
        kind=kind,
        detail=detail,
        count=count,
        name=name,
        shape=said,
        chips=chips,
        # Even, so that its middle, where edges end, is a whole unit.
        width=2 * round((inner + 16) / 2 + 0.5),
        height=10 + 12 * lines + (CHIP_HEIGHT + 2 if chips else 0),
        closed=closed,
        stacked=bool(box.run),
    )


def _names(node: Node) -> tuple[str, str]:
    """First and second line. What a reader looks for comes first: an operator's kind, but an input's own name."""
    if node.op == "output":
        return "output", ""
    if node.op in ("placeholder", "get_attr"):
        return node.name, node.kind
    if node.op == GROUP:
        return node.kind, title(node)
    return node.kind, node.name


def sign(node: Node) -> str:
    """What stands before the kind in a picture of a difference."""
    return "".join(f"{SIGNS[mark]} " for mark in node.marks if mark in SIGNS)


def times(run: Run | None) -> str:
    """``×12``."""
    return f"×{run.count}" if run else ""


def span(node: Node, run: Run) -> str:
    """First and last name of a run, and whether its members share their weights."""
    first, last = node.name, run.last
    head, _, tail = last.rpartition(".")
    if head and first.startswith(f"{head}."):
        last = tail
    weights = f", {run.weights} weights" if run.weights else ""
    return f"{fonts.shorten(first, 20)} … {fonts.shorten(last, 20)}{weights}"


def title(node: Node) -> str:
    """The attribute in a frame's title; of a stretch of operators the first and the last."""
    if node.op == GROUP:
        return f"{fonts.shorten(node.name, 20)} … {fonts.shorten(node.target, 20)}" if node.target else ""
    return node.name


def title_width(box: Box) -> float:
    """Width of a frame's title: triangle, attribute, class, count and chips; below it the names of a run."""
    parts = [
        12.0,
        fonts.mono(title(box.node), NAME_SIZE + 1),
        fonts.sans(sign(box.node) + box.node.kind, KIND_SIZE, bold=True),
        fonts.sans(times(box.run), KIND_SIZE, bold=True),
        fonts.mono(chip(box.chips), NAME_SIZE),
    ]
    second = fonts.mono(span(box.node, box.run), NAME_SIZE) if box.run else 0.0
    return max(sum(part + GAP for part in parts if part), second)


def chip(names: Sequence[str]) -> str:
    """The names of side inputs, shortened."""
    shown = [fonts.shorten(name, 16) for name in names[:_MOST_CHIPS]]
    return ", ".join(shown) + (f" +{len(names) - len(shown)}" if len(names) > len(shown) else "")


def shape(tensors: Sequence[TensorMeta]) -> str:
    """``1×64×56×56 f32``; of several tensors the first few."""
    shown = [f"{format_shape(meta)} {meta.dtype}" for meta in tensors[:_SHOWN_TENSORS]]
    if len(tensors) > 1:
        more = len(tensors) - len(shown)
        return f"{len(tensors)} tensors" if more or len(set(shown)) > 1 else f"{len(tensors)} · {shown[0]}"
    return "".join(shown)


def note_size(tensors: Sequence[TensorMeta]) -> tuple[float, float]:
    """Width and height of the text at an edge; most edges have none."""
    text = shape(tensors)
    return (math.ceil(fonts.sans(text, SHAPE_SIZE)) + 6, 13) if text else (0, 0)
