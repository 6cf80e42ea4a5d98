"""The whole model, or a backward graph, as one DOT file for Graphviz."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sphinx_fxgraph.escape import dot_html
from sphinx_fxgraph.record.arguments import Value, format_call
from sphinx_fxgraph.record.model import BackwardNode, Body, Node, Record, TensorMeta, join
from sphinx_fxgraph.render.colors import LIGHT
from sphinx_fxgraph.view.annotations import category

if TYPE_CHECKING:
    import graphviz  # type: ignore[import-untyped]  # ships no types


@dataclass(frozen=True)
class Frame:
    """A module call around an operator."""

    path: str
    node: Node


@dataclass(frozen=True)
class Operator:
    """One operator of the model.

    Attributes:
        number: its place in the order of execution, from 1.
        path: unique in the model.
        node: with the target from the root of the model.
        args: the positional arguments as text, values by the paths of the operators they come from.
        kwargs: the keyword arguments likewise.
        frames: the module calls it stands in, the outermost first.
        sources: the operators whose results it takes, each once.
    """

    number: int
    path: str
    node: Node
    args: str
    kwargs: str
    frames: tuple[Frame, ...]
    sources: tuple[Operator, ...]


def flatten_record(record: Record) -> list[Operator]:
    """Return the operators in the order of execution; none where nothing was traced."""
    operators: list[Operator] = []
    if record.root:
        _run(record, record.bodies[record.root], (), (), operators)
    return operators


def _run(
    record: Record, body: Body, frames: tuple[Frame, ...], given: Sequence[Operator], operators: list[Operator]
) -> list[Operator]:
    """Add the operators of one call of a body, and return those that its outputs come from."""
    path = frames[-1].path if frames else ""
    made = {Value("", number): operator for number, operator in enumerate(given)}

    def name(value: Value) -> str:
        return made[value].path if value in made else record.name(body, value)

    for node in body.nodes:
        sources = [made[value] for value in node.inputs]
        if node.body:
            inner = (*frames, Frame(join(path, node.name), node))
            results = _run(record, record.bodies[node.body], inner, sources, operators)
            made |= {Value(node.name, number): operator for number, operator in enumerate(results)}
        else:
            texts = format_call(node.args, {}, name), format_call((), node.kwargs, name)
            whole = replace(node, target=_target(node, path))
            once = tuple({source.number: source for source in sources}.values())
            operators.append(Operator(len(operators) + 1, join(path, node.name), whole, *texts, frames, once))
            made[Value(node.name)] = operators[-1]
    return [made[value] for value in body.outputs]


def _target(node: Node, path: str) -> str:
    """Return the target of a module or attribute from the root of the model."""
    if node.op not in ("call_module", "get_attr") or not node.target:
        return node.target
    return node.target[1:] if node.target.startswith("/") else join(re.sub(r"@\d+(?=\.|$)", "", path), node.target)


def frames_of(operators: Sequence[Operator], depth: int) -> Iterator[tuple[Frame | None, list[Operator]]]:
    """Yield runs of operators with the frame that they share at a depth, or None where they have no frame."""
    run: list[Operator] = []
    current: Frame | None = None
    for operator in operators:
        frame = operator.frames[depth] if len(operator.frames) > depth else None
        if run and (frame is None or current is None or frame.path != current.path):
            yield current, run
            run = []
        current = frame
        run.append(operator)
    if run:
        yield current, run


_WIDTH = 44
"""Characters of a line in a table."""
_WEAK = " [color=lightgrey style=dashed]"


def model_digraph(record: Record) -> graphviz.Digraph:
    """Return the whole model with every module call open: frames for calls, dashed edges where no tensor flows.

    Args:
        record: one without a graph (a model that could not be built) gives an empty picture.

    Returns:
        A graph that `graphviz` writes as text (``.source``) or renders.
    """
    import graphviz

    return graphviz.Digraph("model", body=list(_lines(record)))


def source(record: Record) -> str:
    """Return the DOT of `model_digraph` as text, without the Python package of Graphviz."""
    return f"digraph model {{\n{''.join(_lines(record))}}}\n"


def _lines(record: Record) -> Iterator[str]:
    yield "\tgraph [fontname=Helvetica fontsize=12]\n"
    yield "\tnode [fontname=Helvetica fontsize=10 shape=plain]\n"
    yield f'\tedge [arrowsize=0.6 color="{LIGHT.edge}"]\n'
    operators = flatten_record(record)
    yield from _inside(operators, 0, itertools.count(1))
    for operator in operators:
        for each in operator.sources:
            weak = _without_tensor(each.node) or _without_tensor(operator.node)
            yield f"\tn{each.number} -> n{operator.number}{_WEAK if weak else ''}\n"


def _without_tensor(node: Node) -> bool:
    """Return whether a result is known to hold no tensor; nothing is known of an operator that did not run."""
    return bool(node.result) and not node.has_tensor


def _inside(operators: Sequence[Operator], depth: int, numbers: Iterator[int]) -> Iterator[str]:
    """Yield the lines of operators, those of a frame inside its cluster."""
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
    """Return the result of an operator as text: ``f32[1, 64]``."""
    return node.result or ", ".join(map(_short, node.outputs))


def _short(meta: TensorMeta) -> str:
    return f"{meta.dtype}[{', '.join(map(str, meta.shape))}]"


def _wrapped(text: str) -> str:
    if len(text) <= _WIDTH and text.isprintable():
        return dot_html(text)
    return "<BR/>".join(map(dot_html, textwrap.wrap(text, _WIDTH, break_on_hyphens=False)))


_HUES = {"function": "shape", "parameter": "param", "saved": "act", "base": "norm", "output": "io"}
_STYLES = {
    "flow": {},
    "saved": {"style": "dashed", "dir": "none", "color": LIGHT.strokes["act"]},
    "view": {"style": "dotted", "color": LIGHT.strokes["norm"]},
}


def backward_digraph(nodes: Sequence[BackwardNode]) -> graphviz.Digraph:
    """Draw a backward graph: dashed lines to tensors that are saved, a dotted one from the base of a view."""
    import graphviz

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
            graph.node(node.name, _backward_label(node))
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


def _backward_label(node: BackwardNode) -> str:
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
