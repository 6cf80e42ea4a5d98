"""The whole model as one list of operators: every body written out each time it is called, in names of the whole.

Inside a body, arguments are called as that body calls them, so that equal bodies read equal. Here they are called by
the paths of the operators they come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from sphinx_fxgraph.record.arguments import format_call
from sphinx_fxgraph.record.model import Body, Node, Record, Value, join


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


def unrolled(record: Record) -> list[Operator]:
    """The operators in the order of execution; none where nothing was traced."""
    operators: list[Operator] = []
    if record.root:
        _run(record, record.bodies[record.root], (), (), operators)
    return operators


def _run(
    record: Record, body: Body, frames: tuple[Frame, ...], given: Sequence[Operator], operators: list[Operator]
) -> list[Operator]:
    """One run of a body with what it is given; returns where its outputs come from."""
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
    """The target of a module or attribute from the root of the model."""
    if node.op not in ("call_module", "get_attr") or not node.target:
        return node.target
    return node.target[1:] if node.target.startswith("/") else join(re.sub(r"@\d+(?=\.|$)", "", path), node.target)


def frames_of(operators: Sequence[Operator], depth: int) -> Iterator[tuple[Frame | None, list[Operator]]]:
    """Runs of operators that stand in the same frame at a depth; None for those that stand in none."""
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
