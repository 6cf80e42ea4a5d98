"""The Python face: a model's record and its picture, without Sphinx. The model is left as it was."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import export
from sphinx_fxgraph.render.dot.autograd import picture
from sphinx_fxgraph.render.dot.flattened import unrolled
from sphinx_fxgraph.render.dot.model import classic, result

if TYPE_CHECKING:  # only capture/ imports torch and the model brings it along
    import graphviz  # type: ignore[import-untyped]  # ships no types
    from torch import Tensor, nn  # for types only

    from sphinx_fxgraph.capture.errors import Stage

_HEIGHT = 640
"""Of a picture in a notebook, in pixels."""


def model_graph(model: nn.Module, *args: Any, **kwargs: Any) -> graphviz.Digraph:
    """The model as a graph for Graphviz: each operator a table of its name, target, arguments and result.

    Edges are dashed and light grey where no tensor flows, and every module call is a frame.

    Args:
        model: a module, traced in eval mode.
        args: what it is called with.
        kwargs: and by keyword.

    Raises:
        CaptureError: the model cannot be traced, or fails when it is run.

    Example:
        >>> from torch import nn, zeros
        >>> from sphinx_fxgraph import model_graph
        >>> graph = model_graph(nn.Sequential(nn.Linear(4, 2), nn.ReLU()), zeros(1, 4))
        >>> graph.source.splitlines()[0]
        'digraph model {'
    """
    return model_record(model, *args, **kwargs).to_dot()


def autograd_graph(
    output: Any,
    params: Mapping[str, Tensor] | None = None,
    *,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
) -> graphviz.Digraph:
    """The backward graph of what a model has returned, from the parameters to the output, as torchviz draws it.

    It only looks: it calls no backward, unpacks no saved tensor, keeps no reference, and so can be called between the
    forward and the backward pass of a training step.

    Frames are modules. torch does not note which module made a function, so they come from the names in ``params``: a
    function that is given parameters stands in the module that owns them, any other in the deepest module that has both
    the last such function made before it and the first one made after it (it may have been called further inside).
    ``:tracer: autograd`` on a page runs the model itself and knows the very call.

    Args:
        output: a tensor, such as the loss, or a tuple, list, dict or dataclass with tensors in it.
        params: tensors by their names, usually ``dict(model.named_parameters())``.
        show_attrs: tell what each function has kept besides tensors: sizes, dimensions, options.
        show_saved: draw the tensors that each function has kept for the backward pass.
        max_attr_chars: characters of an attribute's value; a longer one is cut.

    Raises:
        TypeError: there is no tensor in the output.

    Example:
        >>> from torch import nn, zeros
        >>> from sphinx_fxgraph import autograd_graph
        >>> model = nn.Linear(4, 2)
        >>> loss = model(zeros(1, 4)).sum()
        >>> graph = autograd_graph(loss, dict(model.named_parameters()))
        >>> graph.source.count("SumBackward0")
        1
    """
    from sphinx_fxgraph.capture.tracers.backward import read

    return picture(read(output, params or {}, show_attrs=show_attrs, show_saved=show_saved, most=max_attr_chars))


def model_record(model: nn.Module, *args: Any, **kwargs: Any) -> ModelRecord:
    """What is known of the model: operators, shapes, modules, totals.

    Args:
        model: a module, traced in eval mode and run once without gradients.
        args: what it is called with.
        kwargs: and by keyword.

    Raises:
        CaptureError: the model cannot be traced, or fails when it is run.
    """
    from sphinx_fxgraph.capture.capture import record_model
    from sphinx_fxgraph.capture.errors import CaptureError

    record = record_model(model, args, kwargs)
    if failure := record.failure:
        place = f" ({failure.file}:{failure.line})" if failure.file else ""
        raise CaptureError(cast("Stage", failure.stage), f"{failure.type}: {failure.message}{place}")
    return ModelRecord(record)


class LookOptions(TypedDict, total=False):
    """How a model is shown; each is an option of the directive, with the same default.

    Attributes:
        depth: how many levels of modules are open; None as many as keep the picture legible.
        open: paths of modules, with ``*`` and ``?``, that are open in any case.
        fold: ``auto``, ``loose`` or ``off``.
        nontensor: ``auto``, ``show``, ``compact`` or ``hide``.
        direction: ``TB`` or ``LR``.
        rows: ``auto`` or ``off``.
        dims: names of the dimensions of each input, or of all that have as many: ``(("N", "C", "H", "W"),)``.
    """

    depth: int | None
    open: tuple[str, ...]
    fold: str
    nontensor: str
    direction: str
    rows: str
    dims: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ModelRecord:
    """A record that can show itself.

    Attributes:
        record: the data.
    """

    record: Record

    def to_json(self) -> str:
        """The record as JSON."""
        return self.record.to_json()

    def to_dot(self) -> graphviz.Digraph:
        """The whole model as one graph for Graphviz (see `model_graph`)."""
        return classic(self.record)

    def to_svg(self, **look: Unpack[LookOptions]) -> str:
        """The picture as an SVG file in light colours, without style sheet and script.

        Args:
            look: what the directive's options of the same names say: ``depth=1``, ``open=("layer4.*",)``,
                ``fold="off"``, ``nontensor="show"``, ``direction="LR"``.

        Raises:
            EngineMissingError: there is no layout engine.

        Example:
            >>> from torch import nn, zeros
            >>> from sphinx_fxgraph import model_record
            >>> picture = model_record(nn.Linear(4, 2), zeros(1, 4)).to_svg(direction="LR")
            >>> "Linear" in picture
            True
        """
        return export.print_svg(self.record, ViewOptions(**look), self.title)

    def to_html(self, **look: Unpack[LookOptions]) -> str:
        """The picture, with the viewer and tables, as one HTML page that needs no other file.

        Args:
            look: as of `to_svg`.

        Raises:
            EngineMissingError: there is no layout engine.
        """
        return export.html(self.record, ViewOptions(**look), self.title)

    def _repr_html_(self) -> str:
        """The page in a frame of its own: a notebook's styles and ours stay out of each other's way."""
        page = html.escape(self.to_html())
        return f'<iframe srcdoc="{page}" title="{html.escape(self.title)}" width="100%" height="{_HEIGHT}"></iframe>'

    @property
    def title(self) -> str:
        """The name of the model's class."""
        return self.record.bodies[self.record.root].type.rpartition(".")[2] if self.record.root else "model"

    def table(self) -> str:
        """One line an operator, the columns of `torch.fx.Graph.print_tabular` and the result."""
        rows: list[tuple[str, ...]] = [("opcode", "name", "target", "args", "kwargs", "result")]
        for operator in unrolled(self.record):
            node = operator.node
            rows.append((node.op, operator.path, node.target, node.args, node.kwargs, result(node)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple("-" * width for width in widths))
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
