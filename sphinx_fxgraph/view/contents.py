"""Say what is in a closed module, and how it changes the sizes of what flows through it."""

from __future__ import annotations

from fractions import Fraction

from sphinx_fxgraph.record.model import Body, Node, TensorMeta
from sphinx_fxgraph.view.simplified import GROUP, ROWS, Shown

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
