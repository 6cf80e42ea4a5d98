"""The Python face: a model's record and its picture, without Sphinx. The model is left as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from sphinx_fxgraph.drawing.dot import classic, result
from sphinx_fxgraph.drawing.unrolled import unrolled
from sphinx_fxgraph.record import Record

if TYPE_CHECKING:  # only capture/ imports torch and the model brings it along
    import graphviz  # type: ignore[import-untyped]  # ships no types
    from torch import nn

    from sphinx_fxgraph.capture.errors import Stage


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


def model_record(model: nn.Module, *args: Any, **kwargs: Any) -> ModelRecord:
    """What is known of the model: operators, shapes, modules, totals.

    Args:
        model: a module, traced in eval mode and run once without gradients.
        args: what it is called with.
        kwargs: and by keyword.

    Raises:
        CaptureError: the model cannot be traced, or fails when it is run.
    """
    from sphinx_fxgraph.capture.errors import CaptureError
    from sphinx_fxgraph.capture.recording import record_model

    record = record_model(model, args, kwargs)
    if failure := record.failure:
        place = f" ({failure.file}:{failure.line})" if failure.file else ""
        raise CaptureError(cast("Stage", failure.stage), f"{failure.type}: {failure.message}{place}")
    return ModelRecord(record)


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

    def table(self) -> str:
        """One line an operator, the columns of `torch.fx.Graph.print_tabular` and the result."""
        rows: list[tuple[str, ...]] = [("opcode", "name", "target", "args", "kwargs", "result")]
        for operator in unrolled(self.record):
            node = operator.node
            rows.append((node.op, operator.path, node.target, node.args, node.kwargs, result(node)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple("-" * width for width in widths))
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
