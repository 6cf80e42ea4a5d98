"""The classic picture: the whole model as one DOT graph, each operator a table of its name, target, arguments, result.

It is what model_graph returns and what a page offers as a download. Ids are ours, ``n1`` and ``c1``; everything that
comes from the model stands in dot_html text only.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sphinx_fxgraph.record.model import Node, Record, TensorMeta
from sphinx_fxgraph.render.dot.flattened import Operator, frames_of, unrolled
from sphinx_fxgraph.render.theme import LIGHT
from sphinx_fxgraph.text.escape import dot_html
from sphinx_fxgraph.view.categories import category

if TYPE_CHECKING:
    import graphviz  # type: ignore[import-untyped]  # ships no types

_WIDTH = 44
"""Characters of a line in a table."""
_WEAK = " [color=lightgrey style=dashed]"


def classic(record: Record) -> graphviz.Digraph:
    """The whole model, every module call open: a frame for each, dashed light-grey edges where no tensor flows.

    Args:
        record: one without a graph (a model that could not be built) gives an empty picture.

    Returns:
        A graph that `graphviz` writes as text (``.source``) or renders.
    """
    import graphviz

    return graphviz.Digraph("model", body=list(_lines(record)))


def source(record: Record) -> str:
    """The same as text; pages are written where no part of Graphviz is installed, too."""
    return f"digraph model {{\n{''.join(_lines(record))}}}\n"


def _lines(record: Record) -> Iterator[str]:
    yield "\tgraph [fontname=Helvetica fontsize=12]\n"
    yield "\tnode [fontname=Helvetica fontsize=10 shape=plain]\n"
    yield f'\tedge [arrowsize=0.6 color="{LIGHT.edge}"]\n'
    operators = unrolled(record)
    yield from _inside(operators, 0, itertools.count(1))
    for operator in operators:
        for each in operator.sources:
            weak = _without_tensor(each.node) or _without_tensor(operator.node)
            yield f"\tn{each.number} -> n{operator.number}{_WEAK if weak else ''}\n"


def _without_tensor(node: Node) -> bool:
    """Whether a result is known to hold no tensor: that of an operator that was not reached is not known."""
    return bool(node.result) and not node.has_tensor


def _inside(operators: Sequence[Operator], depth: int, numbers: Iterator[int]) -> Iterator[str]:
    """Operators, those that stand in frames inside these."""
    indent = "\t" * (depth + 1)
    for frame, inside in frames_of(operators, depth):
        if frame is None:
            for operator in inside:
                yield f"{indent}n{operator.number} [label={_label(operator)}]\n"
            continue
        title = f"<<B>{dot_html(frame.node.name)}</B> {dot_html(frame.node.kind)}>"
        fill = LIGHT.frames[depth % len(LIGHT.frames)]
        yield f"{indent}subgraph cluster_c{next(numbers)} {{\n"
        yield f'{indent}\tcolor="{LIGHT.frame}" fillcolor="{fill}" label={title} labeljust=l style=filled\n'
        yield from _inside(inside, depth + 1, numbers)
        yield f"{indent}}}\n"


def _label(operator: Operator) -> str:
    rows = "".join(
        f'<TR><TD ALIGN="LEFT" VALIGN="TOP">{name}</TD><TD ALIGN="LEFT" BALIGN="LEFT">{_wrapped(value)}</TD></TR>'
        for name, value in _rows(operator)
        if value
    )
    hue = category(operator.node)
    title = f"<B>{dot_html(operator.path)}</B>  {dot_html(operator.node.kind)}"
    return (
        f'<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="3" COLOR="{LIGHT.strokes[hue]}">'
        f'<TR><TD COLSPAN="2" BGCOLOR="{LIGHT.fills[hue]}">{title}</TD></TR>{rows}</TABLE>>'
    )


def _rows(operator: Operator) -> Iterator[tuple[str, str]]:
    node = operator.node
    yield "target", node.target
    yield "args", operator.args
    yield "kwargs", operator.kwargs
    yield "result", result(node)
    yield "note", ", ".join([*["in place"] * node.inplace, *node.marks])


def result(node: Node) -> str:
    """What an operator gives, as text: ``f32[1, 64]``."""
    return node.result or ", ".join(map(_short, node.outputs))


def _short(meta: TensorMeta) -> str:
    return f"{meta.dtype}[{', '.join(map(str, meta.shape))}]"


def _wrapped(text: str) -> str:
    if len(text) <= _WIDTH and text.isprintable():
        return dot_html(text)
    return "<BR/>".join(map(dot_html, textwrap.wrap(text, _WIDTH, break_on_hyphens=False)))
