"""The tracer that is used where none is asked for: run the model, trace it, and compare the two.

Where they agree the graph is the traced one: it holds for every input value, and shows what is no tensor too. Otherwise
it is that of the run, and the verdict says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sphinx_fxgraph.capture import observed, symbolic
from sphinx_fxgraph.capture.errors import place, said
from sphinx_fxgraph.capture.flat import Trace
from sphinx_fxgraph.capture.place import placed
from sphinx_fxgraph.capture.untouched import untouched
from sphinx_fxgraph.capture.verdict import compare
from sphinx_fxgraph.record import Verdict

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
    with untouched(model):
        run = observed.trace(model, args, kwargs, leaf, method)
    if run.error is not None:
        return run
    traced = symbolic.trace(model, args, kwargs, leaf, method, literal=False)
    if traced.error is not None:
        return replace(run, verdict=Verdict("path", f"torch.fx: {said(traced.error)}", *place(traced.error)))
    difference = compare(model, run, traced, leaf)
    if difference is not None:
        return replace(run, verdict=Verdict("path", difference.reason, *placed(difference.node)))
    return replace(traced, tracer="symbolic", probed=True, verdict=Verdict("same"))
