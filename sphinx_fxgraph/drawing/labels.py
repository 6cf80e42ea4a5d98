"""What a box says and how large that makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sphinx_fxgraph.drawing import fonts
from sphinx_fxgraph.drawing.levels import Box
from sphinx_fxgraph.record import Node, TensorMeta

KIND_SIZE, DETAIL_SIZE, NAME_SIZE, SHAPE_SIZE = 12.0, 11.0, 9.5, 9.5
"""Font sizes in user units of the drawing."""
GAP = 5.0
"""Between the kind and its detail."""
_MOST_CHARACTERS = 36
_SHOWN_TENSORS = 3


@dataclass(frozen=True)
class Label:
    """Up to three lines: kind and detail, name, shape; and the size of the box around them."""

    kind: str
    detail: str
    name: str
    shape: str
    width: float
    height: float
    closed: bool = False
    """A module call whose inside is not shown."""

    @property
    def kind_width(self) -> float:
        """Width of the kind alone."""
        return fonts.sans(self.kind, KIND_SIZE, bold=True)

    @property
    def first_line(self) -> float:
        """Width of kind and detail together."""
        return self.kind_width + (GAP + fonts.sans(self.detail, DETAIL_SIZE) if self.detail else 0)


def label(box: Box) -> Label:
    """The label of a closed box or an operator."""
    node = box.node
    kind, name = _names(node)
    short = fonts.shorten(kind, _MOST_CHARACTERS)
    text = Label(
        short,
        fonts.shorten(node.detail, _MOST_CHARACTERS),
        fonts.shorten(name, _MOST_CHARACTERS),
        shape(box.tensors),
        0,
        0,
        closed=bool(node.body),
    )
    marker = 14 if text.closed else 0
    inner = max(
        text.first_line + marker,
        fonts.mono(text.name, NAME_SIZE),
        fonts.sans(text.shape, SHAPE_SIZE),
        44,
    )
    lines = 1 + bool(text.name) + bool(text.shape)
    # Even numbers, so that the middle of a box, where edges end, is a whole unit.
    width = 2 * round((inner + 18) / 2 + 0.5)
    return Label(text.kind, text.detail, text.name, text.shape, width, {1: 22, 2: 34, 3: 46}[lines], text.closed)


def _names(node: Node) -> tuple[str, str]:
    """First and second line. What a reader looks for comes first: an operator's kind, but an input's own name."""
    if node.op == "output":
        return "output", ""
    if node.op in ("placeholder", "get_attr"):
        return node.name, node.kind
    return node.kind, node.name


def shape(tensors: Sequence[TensorMeta]) -> str:
    """``1×64×56×56 f32``; of several tensors the first few."""
    shown = [f"{dims(meta)} {meta.dtype}" for meta in tensors[:_SHOWN_TENSORS]]
    if len(tensors) > 1:
        more = len(tensors) - len(shown)
        return f"{len(tensors)} tensors" if more or len(set(shown)) > 1 else f"{len(tensors)} · {shown[0]}"
    return "".join(shown)


def dims(meta: TensorMeta) -> str:
    """``1×64×56×56``; a tensor without dimensions is a scalar."""
    return "×".join(map(str, meta.shape)) or "scalar"
