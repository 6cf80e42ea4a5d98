"""The export tracer: what ``torch.export.export`` makes of a model, or one sentence on why it refuses.

The first dimension of every tensor input is left open (``torch.export.Dim.AUTO``) and shown as ``s0``, ``s1`` in order
of appearance; torch.export closes it where the model needs one size. All others have the size of the inputs: with every
dimension open a ResNet takes seven times as long, and its shapes read ``((s53 - 1)//32) + 1``.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import fx, nn

from sphinx_fxgraph.capture.errors import CaptureError, by_model, cut, message_of
from sphinx_fxgraph.capture.metrics.shape_prop import ProbeError, probe
from sphinx_fxgraph.capture.model.arguments import ArgumentError, bind
from sphinx_fxgraph.capture.torch_private import open_sizes_of_one, pytree
from sphinx_fxgraph.capture.trace import Trace
from sphinx_fxgraph.capture.tracers.collapse import close
from sphinx_fxgraph.capture.tracers.export_graph import Flat, Symbols

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def trace(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], leaf: Sequence[str] = (), method: str = ""
) -> Trace:
    """Export a model and bring its operators back under the modules and names they come from.

    Args:
        model: it is left with constants of the graph and, for a method, another ``forward`` (see `untouched`).
        args: what ``forward`` is called with.
        kwargs: and its keyword arguments.
        leaf: patterns of types or paths of modules that stay closed; torch.export itself opens everything.
        method: a method to export instead of ``forward``.

    Returns:
        The graph, results noted, or none and the error.
    """
    notes: list[str] = []
    if method:
        model.forward = getattr(model, method)
    try:
        args, kwargs = tuple(args), _in_order(model, args, kwargs)
        with _quiet():
            program = _export(model, args, kwargs, notes)
            flat = Flat(model, program, pytree.tree_leaves((args, kwargs)))
    except (ArgumentError, CaptureError) as error:
        return Trace(fx.Graph(), [], [], error, probed=True)
    except by_model() as error:
        scripted = (path for path, each in model.named_modules() if isinstance(each, torch.jit.ScriptModule))
        reason = f"torch.export refuses: {path!r} is TorchScript" if (path := next(scripted, "")) else refused(error)
        return Trace(fx.Graph(), [], [], CaptureError("trace", reason, cause=error), probed=True, notes=tuple(notes))
    with contextlib.suppress(ProbeError), _quiet():  # what asks for values has none on meta: then MACs stay unknown
        probe(model, flat.graph, flat.inputs)
    flat.note_results()
    close(flat.graph, leaf)
    return Trace(flat.graph, [], flat.inputs, probed=True, notes=tuple(notes))


def _in_order(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments in the order of the signature, so that equal calls give equal records.

    Raises:
        ArgumentError: the arguments do not fit.
    """
    names = list(bind(model.forward, args, kwargs).signature.parameters)
    return dict(sorted(kwargs.items(), key=lambda item: names.index(item[0]) if item[0] in names else len(names)))


def _export(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], notes: list[str]) -> ExportedProgram:
    """Export with open dimensions, or where that fails with the sizes of the inputs."""
    from torch import export  # it and what it imports cost a second: only where it is asked for

    # A size of one is a size like any other; torch takes it for a size that must be one.
    opened: Any = _copied((args, kwargs))  # torch.export marks the tensors whose dimensions are open
    shapes = cast("Any", export.ShapesCollection)()
    for leaf in pytree.tree_leaves(opened):
        if isinstance(leaf, torch.Tensor) and leaf.dim():
            shapes[leaf] = {0: export.Dim.AUTO}
    with torch.enable_grad():  # so that the graph shows the regions without gradients
        try:
            with open_sizes_of_one():
                return export.export(model, *opened, dynamic_shapes=shapes, strict=False)
        except Exception as error:  # noqa: BLE001 - the same again without what may be the reason
            program = export.export(model, *_copied((args, kwargs)), strict=False)
            notes.append(f"no dimension is open: {refused(error)}")
            return program


def _copied(value: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, torch.clone, value)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep to ourselves what torch.export prints: the graph so far, in several ways."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


# -- refusals

_SENTENCES: tuple[tuple[str, str], ...] = (
    (r"data-dependent expression (.+?) \(unhinted", "what runs here depends on the values in a tensor ({})"),
    (r"Found <class '([^']+)'> in output, which is not a known type", "the output holds an object of {}"),
    (r"input type.*?<class '([^']+)'>", "the inputs hold an object of {}"),
)
"""What torch.export says of its own limits, and what we say."""


def refused(error: BaseException) -> str:
    """Why a model cannot be exported, in one sentence."""
    text = message_of(error).split("\n\nThe error above occurred when calling torch.export")[0]
    for pattern, sentence in _SENTENCES:
        if found := re.search(pattern, text, re.DOTALL):
            what = found[1].rpartition("<locals>.")[2]
            reason = sentence.format(_plain(what) if "values" in sentence else f"{what}, a type it does not know")
            return f"torch.export refuses: {reason}"
    first = re.split(r"\n\s*\n|\nCaused by:", text.strip())[0]
    if type(error).__module__ != "builtins" or isinstance(error, RuntimeError):
        first = Symbols().text(first)
    return cut(first)


def _plain(expression: str) -> str:
    """``u0 == 1`` for ``Eq(u3, 1)``."""
    expression = Symbols().text(expression)
    return re.sub(r"^(Eq|Ne)\((.+), (.+)\)$", lambda e: f"{e[2]} {'==' if e[1] == 'Eq' else '!='} {e[3]}", expression)
