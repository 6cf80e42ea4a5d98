"""Collapse module calls of a flat graph that stay closed: one node stands for all of their operators."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sphinx_fxgraph.capture.formatting import short_meta
from sphinx_fxgraph.capture.metrics import Count
from sphinx_fxgraph.capture.trace import Frame, is_named
from sphinx_fxgraph.record.model import TensorMeta

if TYPE_CHECKING:
    from torch import fx


def close(graph: fx.Graph, patterns: Sequence[str]) -> None:
    """Close the outermost calls of modules that the patterns name, in a graph whose nodes say what they give."""
    calls: dict[tuple[Frame, ...], list[fx.Node]] = {}
    for node in graph.nodes:
        stack = node.meta["stack"]
        named = (at for at, frame in enumerate(stack, 1) if is_named(frame.path, frame.type, patterns))
        depth = next(named, 0)
        if depth:
            calls.setdefault(stack[:depth], []).append(node)
    for stack, nodes in calls.items():
        _close(graph, stack, nodes)
    for node in reversed(graph.nodes):
        if node.op == "get_attr" and not node.users:  # of a module that is closed now
            graph.erase_node(node)


def _close(graph: fx.Graph, stack: tuple[Frame, ...], nodes: Sequence[fx.Node]) -> None:
    inside = {*nodes}
    own = {source for node in nodes for source in node.all_input_nodes if source.op == "get_attr"}
    given = dict.fromkeys(source for node in nodes for source in node.all_input_nodes if source not in inside | own)
    results = [node for node in nodes if not inside.issuperset(node.users)]
    with graph.inserting_after(nodes[-1]):
        call = graph.call_module(stack[-1].path, tuple(given))
    call.meta.update(_told(stack, nodes, _outputs(results)))
    for number, node in enumerate(results):
        source = call if len(results) == 1 else _taken(graph, call, number, node)
        node.replace_all_uses_with(source, delete_user_cb=lambda user: user not in inside)
    for node in reversed(nodes):
        graph.erase_node(node)


def _told(stack: tuple[Frame, ...], nodes: Sequence[fx.Node], outputs: tuple[TensorMeta, ...]) -> dict[str, Any]:
    """Return the metadata of a call, summed up from the operators in it."""
    single = len(outputs) == 1 and not outputs[0].path
    return {
        "stack": stack[:-1],
        "outputs": outputs,
        "result": "" if single else f"({', '.join(map(short_meta, outputs))})",
        **functools.reduce(Count.plus, (Count.from_meta(node.meta) for node in nodes)).to_meta(),
        "inplace": False,
        "marks": nodes[0].meta.get("marks", ()),
    }


def _outputs(results: Sequence[fx.Node]) -> tuple[TensorMeta, ...]:
    if len(results) == 1:
        told: tuple[TensorMeta, ...] = results[0].meta.get("outputs", ())
        return told
    return tuple(
        replace(meta, path=f"[{number}]{meta.path}")
        for number, node in enumerate(results)
        for meta in node.meta.get("outputs", ())
    )


def _taken(graph: fx.Graph, call: fx.Node, number: int, node: fx.Node) -> fx.Node:
    """Return the node that stands for one of several results."""
    with graph.inserting_after(call):
        taken = graph.call_function(operator.getitem, (call, number))
    kept: dict[str, Any] = {key: node.meta[key] for key in ("outputs", "result") if key in node.meta}
    taken.meta.update(kept, stack=call.meta["stack"], macs=None, takes=True, marks=call.meta["marks"])
    return taken
