"""The text of a box, what is in it when it is closed, and its size."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sphinx_fxgraph.record.diff import SIGNS
from sphinx_fxgraph.record.model import Body, Node, TensorMeta
from sphinx_fxgraph.units import format_shape
from sphinx_fxgraph.view import fonts
from sphinx_fxgraph.view.annotations import category
from sphinx_fxgraph.view.level import Box, Edge
from sphinx_fxgraph.view.simplify import GROUP, ROWS, Run, Shown

WRAPPERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "LayerList", "SequentialCell"})
"""Classes that hold modules and say nothing of what these do."""
_MOST_PARTS = 3


def last_name(node: Node) -> str:
    """Return the last part of a module call's name: ``conv1`` of ``body.conv1``."""
    return node.name.rpartition(".")[2]


def contents(shown: Shown, name: str) -> str:
    """Say what a body consists of: ``Bottleneck ×6``, ``Dropout · Linear 512→1000``.

    Args:
        shown: the simplified graph.
        name: of the body.
    """
    parts = _parts(shown, name)
    said = [part for part, _ in parts[:_MOST_PARTS]]
    return " · ".join(said) + (" · …" if len(parts) > _MOST_PARTS else "")


def repeated(shown: Shown, name: str) -> str:
    """Say which block a body mainly repeats: ``EncoderBlock ×12``; empty if it repeats none."""
    best, most = "", 1
    for node in shown.record.bodies[name].nodes:
        if node.body and node.kind in WRAPPERS and (name, node.name) not in shown.runs:
            found = repeated(shown, node.body)
            count = int(found.rpartition("×")[2]) if found else 0
        else:
            count = _count(shown, name, node) if node.body else 0
            found = f"{node.kind} ×{count}"
        if count > most:
            best, most = found, count
    return best


def _parts(shown: Shown, name: str) -> list[tuple[str, int]]:
    """Return the kinds of a body in order, neighbours of one kind counted, and their numbers."""
    found: list[tuple[str, int]] = []
    nodes: list[Node] = []
    for node in shown.record.bodies[name].nodes:
        nodes += shown.rows.get((name, node.name), (node,)) if node.op == ROWS else (node,)
    for node in nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            continue
        kind = contents(shown, node.body) if node.body and node.kind in WRAPPERS else node.kind
        if len(nodes) == 1 and not node.body and node.detail:
            kind = f"{kind} {node.detail}"
        count = _count(shown, name, node)
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + count)
        else:
            found.append((kind, count))
    return [(kind if count == 1 else f"{kind} ×{count}", count) for kind, count in found]


def _count(shown: Shown, name: str, node: Node) -> int:
    if stage := shown.stages.get((name, node.name)):
        return stage.count
    run = shown.runs.get((name, node.name))
    inside = 1
    if node.op == GROUP and run is None and node.body:
        inside = len(shown.record.bodies[node.body].nodes)
    return run.count * inside if run else 1


def change(before: TensorMeta, after: TensorMeta) -> str:
    """Say how channels and resolution change: ``512→1024, ½``; empty where they stay.

    Args:
        before: what goes in.
        after: what comes out.
    """
    if len(before.shape) != len(after.shape) or len(before.shape) < 2:
        return ""
    axis = _channel_axis(before, after)
    parts = []
    if before.shape[axis] != after.shape[axis]:
        parts.append(f"{before.shape[axis]}→{after.shape[axis]}")
    spatial = {
        Fraction(new, old)
        for number, (old, new) in enumerate(zip(before.shape, after.shape, strict=True))
        if number not in (0, axis % len(before.shape)) and isinstance(old, int) and isinstance(new, int) and old and new
    }
    if len(spatial) == 1 and (ratio := spatial.pop()) != 1 and len(before.shape) > 2:
        parts.append(_RATIOS.get(ratio) or (f"×{ratio}" if ratio.denominator == 1 else ""))
    return ", ".join(part for part in parts if part)


_RATIOS = {Fraction(1, 2): "½", Fraction(1, 4): "¼", Fraction(1, 8): "⅛", Fraction(1, 3): "⅓"}


def _channel_axis(before: TensorMeta, after: TensorMeta) -> int:
    """Return the axis of the channels: the last of a sequence and of images that have it there."""
    if len(before.shape) < 4:
        return -1
    square = before.shape[1] == before.shape[2] and after.shape[1] == after.shape[2]
    return -1 if square and before.shape[2] != before.shape[3] else 1


def change_of_call(shown: Shown, body: Body, node: Node, results: tuple[TensorMeta, ...]) -> str:
    """Say how a module call changes sizes; empty if several tensors go in or come out of it."""
    given = [meta for value in node.inputs[:1] for meta in shown.record.metas(body, value)]
    return change(given[0], results[0]) if len(given) == 1 and len(results) == 1 else ""


KIND_SIZE, DETAIL_SIZE, NAME_SIZE, SHAPE_SIZE = 12.0, 11.0, 11.0, 11.0
"""Font sizes in user units of the drawing."""
GAP = 5.0
"""Between the parts of a line."""
STACK = 3.0
"""How far each sheet of a stack stands out of the one before."""
CHIP_HEIGHT = 14.0
LINE = 13.0
"""Height of each line of a box below its first."""
ROW, THIN_ROW = 19.0, 16.0
"""Height of a row with one line."""
ROW_GAP = 12.0
"""Between what stands at the left and at the right of a row, at least."""
_MOST_CHARACTERS = 36
NAME_GAP = 10.0
"""Between a name and a shape on one line."""
_TOGETHER = 190.0
"""Width up to which they share a line."""
_ROW_CHARACTERS = 24
_THIN_DETAIL = 16
_MOST_CHIPS = 3
_SHOWN_TENSORS = 3


@dataclass(frozen=True)
class Label:
    """Up to four lines in a box: kind, detail and count; name; shape; chips. ``width`` and ``height`` are the box's.

    In a row of a box of rows, the name or the shape stands at the right of the first line (``shape_below`` is False).
    """

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
    rows: tuple[Label, ...] = ()
    """The labels of the rows of a box of rows, which has no other text."""
    shape_below: bool = True
    """Whether the shape has a line of its own."""
    name_middle: float = 0.0
    shape_middle: float = 0.0
    """How far the middles of name and shape lie from the box's, where they share a line."""
    thin: bool = False
    """Whether it is a row of an operator that only rearranges its input."""


def label(box: Box) -> Label:
    """Return the label of a closed box or an operator."""
    if box.rows:
        return _rows_label(box)
    node, closed = box.node, bool(box.node.body)
    kind, name = _names(node)
    if closed and node.kind in WRAPPERS and box.contents:
        kind, details = box.contents, [] if "→" in box.contents else [box.change]
    else:
        details = [node.detail, box.contents, box.stage.difference if box.stage else "", box.change]
    kind, name = sign(node) + fonts.shorten(kind, _MOST_CHARACTERS), fonts.shorten(name, _MOST_CHARACTERS)
    detail, count = fonts.shorten(", ".join(filter(None, details)), _MOST_CHARACTERS), times(box)
    if box.run:
        name = span(node, box.run)
    elif box.shared:
        name = box.shared if box.shared.startswith("shared with") else f"{name}, {box.shared}"
    said, chips = shape(box.tensors), chip(box.chips)
    head, below = first_line(kind, detail, count) + (14 if closed else 0), _below(name, said)
    together = bool(name and said) and below <= max(head, _TOGETHER)
    lines = (below,) if together else (fonts.mono(name, NAME_SIZE), fonts.sans(said, SHAPE_SIZE))
    inner = max(head, *lines, chip_width(chips), 44)
    more_lines = len([line for line in lines if line])
    return Label(
        kind=kind,
        detail=detail,
        count=count,
        name=name,
        shape=said,
        chips=chips,
        width=_even(inner + 16),
        height=22 + LINE * more_lines + (CHIP_HEIGHT + 2 if chips else 0),
        closed=closed,
        stacked=bool(box.run),
        name_middle=-(below - fonts.mono(name, NAME_SIZE)) / 2 if together else 0.0,
        shape_middle=(below - fonts.sans(said, SHAPE_SIZE)) / 2 if together else 0.0,
        shape_below=not together,
    )


def _below(name: str, said: str) -> float:
    """Return the width of name and shape side by side."""
    return fonts.mono(name, NAME_SIZE) + fonts.sans(said, SHAPE_SIZE) + (NAME_GAP if name and said else 0)


def chip_width(text: str) -> float:
    """Return the width of the outline around the names of side inputs."""
    return fonts.mono(text, NAME_SIZE) + 10 if text else 0.0


def _even(width: float) -> float:
    """Round up so that the middle, where edges end, is a whole unit."""
    return 2 * round(width / 2 + 0.5)


def first_line(kind: str, detail: str, count: str = "") -> float:
    """Return the width of the first line of a box."""
    width = fonts.sans(kind, KIND_SIZE, bold=True)
    width += GAP + fonts.sans(detail, DETAIL_SIZE) if detail else 0
    return width + (GAP + fonts.sans(count, KIND_SIZE, bold=True) if count else 0)


def _rows_label(box: Box) -> Label:
    """Return the label of a box of rows: all rows are as wide as the widest."""
    shapes = [shape(row.tensors) for row in box.rows]
    following = [*shapes[1:], ""]
    rows = [
        _row_label(row, said if said != after else "")
        for row, said, after in zip(box.rows, shapes, following, strict=True)
    ]
    width = max(row.width for row in rows)
    return Label(
        kind="",
        detail="",
        count="",
        name="",
        shape="",
        chips="",
        width=width,
        height=sum(row.height for row in rows),
        closed=False,
        stacked=False,
        rows=tuple(dataclasses.replace(row, width=width) for row in rows),
    )


def _row_label(box: Box, said: str) -> Label:
    node = box.node
    kind = sign(node) + fonts.shorten(node.kind, _MOST_CHARACTERS)
    name = fonts.shorten(own_name(node), _ROW_CHARACTERS)
    if box.shared:
        name = box.shared if box.shared.startswith("shared with") else f"{name}, {box.shared}"
    chips = chip(box.chips)
    thin = category(node) == "shape"
    detail = fonts.shorten(node.detail, _THIN_DETAIL if thin else _ROW_CHARACTERS)
    below = bool(said and name)
    right = fonts.mono(name, NAME_SIZE) if name else fonts.sans(said, SHAPE_SIZE)
    width = first_line(kind, detail) + (chip_width(chips) + GAP if chips else 0)
    width += right + ROW_GAP if right else 0
    return Label(
        kind=kind,
        detail=detail,
        count="",
        name=name,
        shape=said,
        chips=chips,
        width=_even(max(width, fonts.sans(said, SHAPE_SIZE)) + 16),
        height=(THIN_ROW if thin else ROW) + (LINE if below else 0),
        closed=False,
        stacked=False,
        shape_below=below,
        thin=thin,
    )


def own_name(node: Node) -> str:
    """Return the name of a node, empty where it says no more than the kind: ``add_1`` of an ``add``."""
    if node.op in ("call_function", "call_method") and re.fullmatch(rf"{re.escape(node.kind)}_*(\d+)?", node.name):
        return ""
    return node.name


def _names(node: Node) -> tuple[str, str]:
    """Return the first and the second line: an operator's kind or an input's own name comes first."""
    if node.op == "output":
        return "output", ""
    if node.op in ("placeholder", "get_attr"):
        return node.name, node.kind
    if node.op == GROUP:
        return node.kind, title(node)
    return node.kind, own_name(node)


def sign(node: Node) -> str:
    """Return the sign before the kind in a picture of a difference."""
    return "".join(f"{SIGNS[mark]} " for mark in node.marks if mark in SIGNS)


def times(box: Box) -> str:
    """Return ``×12`` for what is drawn once for several."""
    repeated = box.run or box.stage
    return f"×{repeated.count}" if repeated else ""


def span(node: Node, run: Run) -> str:
    """Return the first and last name of a run, or all if some are skipped, and whether its members share weights."""
    first, last = node.name, run.last
    head, _, tail = last.rpartition(".")
    if head and first.startswith(f"{head}."):
        last = tail
    weights = f", {run.weights} weights" if run.weights else ""
    if run.carried:  # an arrow back, with the names of the state
        weights += f", ↺ {', '.join(fonts.shorten(name, 16) for name in run.carried[:2])}"
    if numbers := _numbers(run):
        return f"{fonts.shorten(first, 20)}, {fonts.shorten(', '.join(map(str, numbers[1:])), 28)}{weights}"
    return f"{fonts.shorten(first, 20)} … {fonts.shorten(last, 20)}{weights}"


def _numbers(run: Run) -> list[int]:
    """Return the numbers of the members of a run in their list of modules if it skips some, else nothing."""
    period = max(len(run.names) // run.count, 1)
    paths = [name.rpartition(".") for name in run.names[::period]]
    numbers = [int(tail) for _, _, tail in paths if tail.isdecimal()]
    if len(numbers) < len(paths) or len({head for head, _, _ in paths}) > 1:
        return []
    steps = {two - one for one, two in itertools.pairwise(numbers)}
    return [] if len(steps) == 1 and max(steps) <= period else numbers


def title(node: Node) -> str:
    """Return the attribute in a frame's title; of a stretch of operators the first and the last."""
    if node.op == GROUP:
        return f"{fonts.shorten(node.name, 20)} … {fonts.shorten(node.target, 20)}" if node.target else ""
    return node.name


def remark(box: Box) -> str:
    """Return what the title of a frame says at its end: side inputs, and whether others of its kind are closed."""
    return " · ".join(filter(None, (box.shared, chip(box.chips), "the others are closed" if box.example else "")))


def title_width(box: Box) -> float:
    """Return the width of a frame's title: triangle, attribute, class, count and chips; below it the names of a run."""
    parts = [
        18.0,
        fonts.mono(title(box.node), NAME_SIZE),
        fonts.sans(sign(box.node) + box.node.kind, KIND_SIZE, bold=True),
        fonts.sans(times(box), KIND_SIZE, bold=True),
        fonts.mono(remark(box), NAME_SIZE),
    ]
    second = fonts.mono(span(box.node, box.run), NAME_SIZE) if box.run else 0.0
    return max(sum(part + GAP for part in parts if part), second)


def chip(names: Sequence[str]) -> str:
    """Return the names of side inputs, shortened."""
    shown = [fonts.shorten(name, 16) for name in names[:_MOST_CHIPS]]
    return ", ".join(shown) + (f" +{len(names) - len(shown)}" if len(names) > len(shown) else "")


def shape(tensors: Sequence[TensorMeta]) -> str:
    """Return the shape as text, ``1×64×56×56 f32``; of several tensors the first few."""
    shown = [f"{format_shape(meta)} {meta.dtype}" for meta in tensors[:_SHOWN_TENSORS]]
    if len(tensors) > 1:
        more = len(tensors) - len(shown)
        return f"{len(tensors)} tensors" if more or len(set(shown)) > 1 else f"{len(tensors)} · {shown[0]}"
    return "".join(shown)


def panel_width(kind: str, count: int) -> float:
    """Return the width of the title of a panel."""
    return 24 + GAP + first_line(kind, "", f"×{count}")


def edge_text(edge: Edge) -> str:
    """Return the text at an edge: how many results it stands for, or the tensors that no box tells; often empty."""
    return f"×{edge.count}" if edge.count > 1 else shape(edge.tensors)


def edge_text_size(edge: Edge) -> tuple[float, float]:
    """Return the width and height of the text at an edge."""
    text = edge_text(edge)
    return (math.ceil(fonts.sans(text, SHAPE_SIZE)) + 6, 13) if text else (0, 0)
