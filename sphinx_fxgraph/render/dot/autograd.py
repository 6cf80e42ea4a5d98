"""The picture of a backward graph, as torchviz draws it: from parameters to the output, in frames of modules."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import graphviz  # type: ignore[import-untyped]  # ships no types

from sphinx_fxgraph.record.autograd_graph import BackwardNode
from sphinx_fxgraph.record.model import join
from sphinx_fxgraph.render.theme import LIGHT
from sphinx_fxgraph.text.escape import dot_html

_HUES = {"function": "shape", "parameter": "param", "saved": "act", "base": "norm", "output": "io"}
_STYLES = {
    "flow": {},
    "saved": {"style": "dashed", "dir": "none", "color": LIGHT.strokes["act"]},
    "view": {"style": "dotted", "color": LIGHT.strokes["norm"]},
}


def picture(nodes: Sequence[BackwardNode]) -> graphviz.Digraph:
    """One box a node; dashed lines to tensors that are saved, a dotted one from the base of a view."""
    graph = graphviz.Digraph(
        name="backward",
        graph_attr={"fontname": "Helvetica", "fontsize": "12"},
        node_attr={"shape": "plain", "fontname": "Helvetica", "fontsize": "10"},
        edge_attr={"color": LIGHT.edge, "arrowsize": "0.6"},
    )
    _draw(graph, nodes, "", itertools.count(1))
    for node in nodes:
        for edge in node.edges:
            graph.edge(edge.source, node.name, **_STYLES[edge.kind])
    return graph


def _draw(graph: graphviz.Digraph, nodes: Sequence[BackwardNode], path: str, numbers: Iterator[int]) -> None:
    """Write the nodes of the module at a path, those of its parts inside frames."""
    inside: dict[str, list[BackwardNode]] = {}
    for node in nodes:
        if node.frame == path:
            graph.node(node.name, _label(node))
        else:
            name = node.frame[len(path) :].removeprefix(".").partition(".")[0]
            inside.setdefault(name, []).append(node)
    for name, part in inside.items():
        with graph.subgraph(name=f"cluster_c{next(numbers)}") as cluster:
            depth = path.count(".") + 1 if path else 0
            fill = LIGHT.frames[depth % len(LIGHT.frames)]
            label = f"<<B>{dot_html(name)}</B>>"
            cluster.attr(label=label, labeljust="l", style="filled", color=LIGHT.frame, fillcolor=fill)
            _draw(cluster, part, join(path, name), numbers)


def _label(node: BackwardNode) -> str:
    hue = _HUES[node.role]
    lines = "".join(f'<TR><TD COLSPAN="2">{dot_html(line)}</TD></TR>' for line in node.lines)
    attributes = "".join(
        f'<TR><TD ALIGN="LEFT">{dot_html(key)}</TD><TD ALIGN="LEFT">{dot_html(value)}</TD></TR>'
        for key, value in node.attributes
    )
    return (
        f'<<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="3" COLOR="{LIGHT.strokes[hue]}">'
        f'<TR><TD COLSPAN="2" BGCOLOR="{LIGHT.fills[hue]}"><B>{dot_html(node.title)}</B></TD></TR>'
        f"{lines}{attributes}</TABLE>>"
    )
