"""Checks of every capture: what a graph does not show, or shows though it leads nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch import fx

from sphinx_fxgraph.capture import formatting
from sphinx_fxgraph.capture.source_location import placed
from sphinx_fxgraph.capture.trace import SIZE_FROM_VALUES, WRITTEN_TO, Trace, leaves
from sphinx_fxgraph.record.model import Remark

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST = 20
"""Remarks of one kind; a model that loops would have one for each time."""


def remarks(trace: Trace) -> tuple[Remark, ...]:
    """Return what there is to say of a trace, each thing once."""
    graph = trace.graph
    given = sources(graph)
    found = [
        *(Remark("random", draw.name, draw.file, draw.line) for draw in trace.draws),
        *_about(graph, "sizes", lambda node: SIZE_FROM_VALUES in node.meta.get("marks", ())),
        *_about(graph, "reads", lambda node: reads_input(node, given)),
        *_about(graph, "unread", _is_unread),
        *(_unreached(graph, given) if trace.error is None else ()),
    ]
    kinds: dict[str, list[Remark]] = {}
    for each in dict.fromkeys(found):
        kinds.setdefault(each.kind, []).append(each)
    return tuple(each for same in kinds.values() for each in same[:_MOST])


def sources(graph: fx.Graph) -> set[fx.Node]:
    """Return the nodes that an input or a random number reaches."""
    reached: set[fx.Node] = set()
    for node in graph.nodes:
        starts = node.op == "placeholder" or node.meta.get("random")
        if starts or not reached.isdisjoint(node.all_input_nodes):
            reached.add(node)
    return reached


def reads_input(node: fx.Node, given: set[fx.Node]) -> bool:
    """Return whether a node makes a plain value of what depends on an input or on random numbers."""
    return bool(node.meta.get("reads")) and node in given


def name_of(node: fx.Node) -> str:
    """Return what a node is called in a remark."""
    return str(node.target) if node.op == "call_module" else formatting.short_name(node.target)


def _about(graph: fx.Graph, kind: str, is_one: Any) -> Iterator[Remark]:
    for node in graph.nodes:
        if is_one(node):
            yield Remark(kind, name_of(node), *placed(node))


def _is_unread(node: fx.Node) -> bool:
    """Return whether a node writes into a tensor of the run that nothing reads afterwards."""
    if not node.meta.get("inplace") or node.users or node.op == "call_module":
        return False
    if any(mark.startswith(WRITTEN_TO) for mark in node.meta.get("marks", ())):
        return False
    return not _writes_input(node)


def _writes_input(node: fx.Node) -> bool:
    """Return whether what a node writes is a view of an input, which the caller may read."""
    at: Any = node
    while isinstance(at, fx.Node) and at.op not in ("placeholder", "get_attr"):
        given = at.kwargs.get("out", at.args[0] if at.args else None)
        while isinstance(given, list | tuple) and given:
            given = given[0]
        at = given
    return isinstance(at, fx.Node)


def _unreached(graph: fx.Graph, given: set[fx.Node]) -> Iterator[Remark]:
    """Yield the outputs that no input leads to."""
    last: fx.Node | None = next(iter(reversed(graph.nodes)), None)
    if last is None or last.op != "output" or not any(node.op == "placeholder" for node in graph.nodes):
        return
    found: Iterable[tuple[str, Any]] = leaves(last.args[0])
    for path, node in found:
        if isinstance(node, fx.Node) and node.meta.get("outputs") and node not in given:
            yield Remark("unreached", f"output{path}")
