"""The default tracer: run the model, trace it, compare the two, and add remarks on what the graph does not show.

Where they agree the graph is the traced one: it holds for every input value, and shows what is no tensor too. Otherwise
it is that of the run, and the verdict says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import fx
from torch.autograd import Function

from sphinx_fxgraph.capture import formatting
from sphinx_fxgraph.capture.dependencies import unwatched
from sphinx_fxgraph.capture.errors import place
from sphinx_fxgraph.capture.source_location import defined, placed
from sphinx_fxgraph.capture.trace import SIZE_FROM_VALUES, WRITTEN_TO, Trace, leaves
from sphinx_fxgraph.capture.tracers import eager
from sphinx_fxgraph.capture.tracers import fx as symbolic
from sphinx_fxgraph.capture.tracers.check import compare
from sphinx_fxgraph.capture.tracers.refusals import fx_refusal
from sphinx_fxgraph.record.model import Remark, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn


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
        *(_about(graph, "numbers", lambda node: node.meta.get("reads") == "number") if not trace.complete else ()),
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


def trace(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], leaf: Sequence[str] = (), method: str = ""
) -> Trace:
    """The traced graph of a model if a run of the model agrees with it, else that of the run.

    Args:
        model: it is left with the constants that a traced graph refers to (see `untouched`).
        args: what ``forward`` is called with.
        kwargs: and its keyword arguments.
        leaf: patterns of types or paths of modules that stay closed.
        method: a method to call instead of ``forward``.

    Returns:
        A graph with a verdict; where the model cannot be run, the part that ran, with the error.
    """
    run = eager.trace(model, args, kwargs, leaf, method)
    if run.error is not None:
        return run
    with unwatched():  # all of the model's code has run
        return _judged(run, model, args, kwargs, leaf, method)


def _judged(
    run: Trace, model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], leaf: Sequence[str], method: str
) -> Trace:
    """The traced graph if it is the same as what ran, else that; with a verdict."""
    written = defined(getattr(model, method or "forward"))
    traced = symbolic.trace(model, args, kwargs, leaf, method, literal=False, buffers=True)
    if _reads_buffers(model, traced):  # where that is more than torch.fx can follow, without
        if traced.error is None and compare(model, run, traced, leaf) is None:
            return _agreed(run, traced)
        traced = symbolic.trace(model, args, kwargs, leaf, method, literal=False)
    if traced.error is not None:
        spot = place(traced.error)
        return replace(run, verdict=Verdict("path", fx_refusal(traced.error), *(spot if spot[0] else written)))
    difference = compare(model, run, traced, leaf)
    functions = {node.target for node in run.graph.nodes if _is_autograd_function(node.target)}
    if difference is not None and functions:  # which torch.fx looks into
        opened = eager.trace(model, args, kwargs, leaf, method, opened=functions)
        difference = compare(model, opened, traced, leaf, functions)
    if difference is not None:
        spot = placed(difference.node)
        return replace(run, verdict=Verdict("path", difference.reason, *(spot if spot[0] else written)))
    return _agreed(run, traced)


def _agreed(run: Trace, traced: Trace) -> Trace:
    """Return the traced graph that a run agrees with, unless the run may go another way with other values."""
    for draw in run.draws:
        return replace(run, verdict=Verdict("path", f"{draw.name} gives another value each time", draw.file, draw.line))
    given = sources(run.graph)
    for node in run.graph.nodes:
        if reads_input(node, given):
            return replace(run, verdict=Verdict("path", f"{name_of(node)} reads values of a tensor", *placed(node)))
    sized = next((node for node in run.graph.nodes if SIZE_FROM_VALUES in node.meta.get("marks", ())), None)
    verdict = Verdict("same")
    if sized is not None:
        verdict = Verdict("sizes", f"the size of what {name_of(sized)} gives depends on values", *placed(sized))
    if _macs(run) != _macs(traced):  # torch.fx has computed a part while it traced, and has the result as a constant
        return replace(run, verdict=verdict)
    return replace(traced, tracer="symbolic", probed=True, verdict=verdict, remarks=remarks(run))


def _macs(trace: Trace) -> int:
    return sum(node.meta.get("macs") or 0 for node in trace.graph.nodes)


def _reads_buffers(model: nn.Module, traced: Trace) -> bool:
    names = {name for name, _ in model.named_buffers(remove_duplicate=False)}
    return any(node.op == "get_attr" and node.target in names for node in traced.graph.nodes)


def _is_autograd_function(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, Function)
