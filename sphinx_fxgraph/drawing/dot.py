"""The classic picture: the whole model as one DOT graph, each operator a table of its name, target, arguments, result.

It is what model_graph returns and what a page offers as a download. Ids are ours, ``n1`` and ``c1``; everything that
comes from the model stands in escaped text only.
"""

from __future__ import annotations

import html
import itertools
import textwrap
from collections.abc import Iterator, Sequence

import graphviz  # type: ignore[import-untyped]  # ships no types

from sphinx_fxgraph.drawing.palette import LIGHT, category
from sphinx_fxgraph.drawing.unrolled import Operator, frames_of, unrolled
from sphinx_fxgraph.record import Node, Record, TensorMeta

_WIDTH = 44
"""Characters of a line in a table."""
_WEAK = {"style": "dashed", "color": "lightgrey"}


def classic(record: Record) -> graphviz.Digraph:
    """The whole model, every module call open: a frame for each, dashed light-grey edges where no tensor flows.

    Args:
        record: one without a graph (a model that could not be built) gives an empty picture.

    Returns:
        A graph that `graphviz` writes as text (``.source``) or renders.
    """
    graph = graphviz.Digraph(
        name="model",
        graph_attr={"fontname": "Helvetica", "fontsize": "12"},
        node_attr={"shape": "plain", "fontname": "Helvetica", "fontsize": "10"},
        edge_attr={"color": LIGHT.edge, "arrowsize": "0.6"},
    )
    operators = unrolled(record)
    _draw(graph, operators, 0, itertools.count(1))
    for operator in operators:
        for source in operator.sources:
            weak = _without_tensor(source.node) or _without_tensor(operator.node)
            graph.edge(f"n{source.number}", f"n{operator.number}", **_WEAK if weak else {})
    return graph


def _without_tensor(node: Node) -> bool:
    """Whether a result is known to hold no tensor: that of an operator that was not reached is not known."""
    return bool(node.result) and not node.has_tensor


def _draw(graph: graphviz.Digraph, operators: Sequence[Operator], depth: int, numbers: Iterator[int]) -> None:
    """Write operators, those that stand in frames inside these."""
    for frame, inside in frames_of(operators, depth):
        if frame is None:
            for operator in inside:
                graph.node(f"n{operator.number}", _label(operator))
            continue
        with graph.subgraph(name=f"cluster_c{next(numbers)}") as cluster:
            title = f"<<B>{escaped(frame.node.name)}</B> {escaped(frame.node.kind)}>"
            fill = LIGHT.frames[depth % len(LIGHT.frames)]
            cluster.attr(label=title, labeljust="l", style="filled", color=LIGHT.frame, fillcolor=fill)
            _draw(cluster, inside, depth + 1, numbers)


def _label(operator: Operator) -> str:
    rows = "".join(
        f'<TR><TD ALIGN="LEFT" VALIGN="TOP">{name}</TD><TD ALIGN="LEFT" BALIGN="LEFT">{_wrapped(value)}</TD></TR>'
        for name, value in _rows(operator.node)
        if value
    )
    hue = category(operator.node)
    title = f"<B>{escaped(operator.path)}</B>  {escaped(operator.node.kind)}"
    return (
        f'<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="3" COLOR="{LIGHT.strokes[hue]}">'
        f'<TR><TD COLSPAN="2" BGCOLOR="{LIGHT.fills[hue]}">{title}</TD></TR>{rows}</TABLE>>'
    )


def _rows(node: Node) -> Iterator[tuple[str, str]]:
    yield "target", node.target
    yield "args", node.args
    yield "kwargs", node.kwargs
    yield "result", result(node)
    yield "note", ", ".join([*["in place"] * node.inplace, *node.marks])


def result(node: Node) -> str:
    """What an operator gives, as text: ``f32[1, 64]``."""
    return node.result or ", ".join(map(_short, node.outputs))


def _short(meta: TensorMeta) -> str:
    return f"{meta.dtype}[{', '.join(map(str, meta.shape))}]"


def _wrapped(text: str) -> str:
    return "<BR/>".join(map(escaped, textwrap.wrap(text, _WIDTH, break_on_hyphens=False)))


def escaped(text: str) -> str:
    r"""Text for an HTML-like label, where a control character has no place.

    A backslash is doubled: Graphviz writes the node's name for ``\N`` in the text of such labels too.
    """
    plain = "".join(char if char.isprintable() else "�" for char in text)
    return html.escape(plain).replace("\\", "\\\\")
