"""The tracer that is used where none is asked for: run the model, trace it, and compare the two.

Where they agree the graph is the traced one: it holds for every input value, and shows what is no tensor too. Otherwise
it is that of the run, and the verdict says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch.autograd import Function
from torch.fx.proxy import TraceError

from sphinx_fxgraph.capture.dependencies.call_profiler import unwatched
from sphinx_fxgraph.capture.errors import place, said
from sphinx_fxgraph.capture.source_location import defined, placed
from sphinx_fxgraph.capture.trace import SIZE_FROM_VALUES, Trace
from sphinx_fxgraph.capture.tracers import eager
from sphinx_fxgraph.capture.tracers import fx as symbolic
from sphinx_fxgraph.capture.tracers.check import compare
from sphinx_fxgraph.capture.tracers.remarks import name_of, reads_input, remarks, sources
from sphinx_fxgraph.record.model import Verdict

if TYPE_CHECKING:
    from torch import nn


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
        return replace(run, verdict=Verdict("path", _refused(traced.error), *(spot if spot[0] else written)))
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
    return replace(traced, tracer="symbolic", probed=True, verdict=verdict, remarks=remarks(run))


def _reads_buffers(model: nn.Module, traced: Trace) -> bool:
    names = {name for name, _ in model.named_buffers(remove_duplicate=False)}
    return any(node.op == "get_attr" and node.target in names for node in traced.graph.nodes)


def _is_autograd_function(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, Function)


def _refused(error: BaseException) -> str:
    """Why torch.fx cannot follow a model; its own words need no name of an exception."""
    name = "" if isinstance(error, TraceError | NameError | NotImplementedError) else f"{type(error).__name__}: "
    return f"torch.fx: {name}{said(error)}"
