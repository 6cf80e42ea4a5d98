"""The Python interface: a model's record and its picture, without Sphinx. The model is left as it was."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from sphinx_fxgraph.errors import SpecError, suggestion
from sphinx_fxgraph.escape import xml
from sphinx_fxgraph.options import CONVENTIONS, CaptureOptions, ViewOptions
from sphinx_fxgraph.record.metrics import macs_of
from sphinx_fxgraph.record.model import Record

if TYPE_CHECKING:  # only capture/ imports torch, and the model brings it along
    import graphviz  # type: ignore[import-untyped]  # ships no types
    from torch import Tensor, nn  # for types only

    from sphinx_fxgraph.record.diff import Difference
    from sphinx_fxgraph.render.dot import Operator

# What draws, compares or loads is imported by the methods that need it: it would double the time of a first capture.

_HEIGHT = 640
"""Height of a picture in a notebook, in pixels."""


class ModelOptions(TypedDict, total=False):
    """How a model is captured; each is an option of the directive, with the same default.

    Attributes:
        tracer: ``auto``, ``symbolic``, ``observed``, ``export`` or ``autograd``.
        mode: ``eval`` or ``train``.
        leaf: patterns of types or paths of modules whose inside is not traced.
        method: the method to trace instead of ``forward``.
        seed: the seed of random operators.
        dtype: the floating dtype that a copy of the model and its floating inputs are cast to, such as ``bf16``.
    """

    tracer: str
    mode: str
    leaf: tuple[str, ...]
    method: str
    seed: int
    dtype: str


class DrawOptions(TypedDict, total=False):
    """How a model is drawn; each is an option of the directive, with the same default.

    Attributes:
        depth: how many levels of modules are open; None opens as many as keep the picture legible.
        open: paths of modules, with ``*`` and ``?``, that are open in any case.
        fold: ``auto``, ``loose`` or ``off``.
        nontensor: ``auto``, ``show``, ``compact`` or ``hide``.
        rows: ``auto`` or ``off``.
        direction: ``TB`` or ``LR``.
        dims: names of the dimensions of each input, or of all that have as many: ``(("N", "C", "H", "W"),)``.
    """

    depth: int | None
    open: tuple[str, ...]
    fold: str
    nontensor: str
    rows: str
    direction: str
    dims: tuple[tuple[str, ...], ...]


def model_record(
    model: nn.Module, args: Any = (), kwargs: Mapping[str, Any] | None = None, **options: Unpack[ModelOptions]
) -> ModelRecord:
    """Capture a model: run it once, trace it, and compare the two.

    The call follows `torch.export.export`. The model keeps its parameters, buffers, hooks, mode and attributes, and
    torch's random numbers go on as if nothing had run. Captures in several threads wait for each other.

    Args:
        model: the model, on any device. It is traced in eval mode unless ``mode="train"`` is given.
        args: the positional arguments of ``forward`` as a tuple; a single tensor is one argument.
        kwargs: the keyword arguments of ``forward``.
        options: see `ModelOptions`.

    Returns:
        The record, which can draw, save and compare itself.

    Raises:
        CaptureError: the model cannot be traced, or fails when it is run; the error has the stage, file and line, the
            partial record, and the model's own exception as its cause.
        SpecError: an option is wrong; the message suggests the nearest right value.
        TypeError: ``args`` is neither a tuple, a list nor a tensor.

    Example:
        >>> from torch import nn, zeros
        >>> from sphinx_fxgraph import model_record
        >>> record = model_record(nn.Sequential(nn.Linear(4, 2), nn.ReLU()), zeros(1, 4))
        >>> record
        <ModelRecord Sequential: 4 operators, 10 parameters, 8 MACs>
        >>> [operator.path for operator in record.nodes()]
        ['input', '0', '1', 'output']
    """
    from sphinx_fxgraph.capture.capture import capture_model
    from sphinx_fxgraph.capture.errors import CaptureError
    from sphinx_fxgraph.capture.inputs import positional

    try:
        asked = CaptureOptions.of(**options)
    except SpecError as error:
        if options.keys() - ModelOptions.__annotations__.keys():
            raise SpecError(f"{error} (keyword arguments of forward are given as a dict in kwargs)") from None
        raise
    captured = capture_model(model, positional(args), dict(kwargs or {}), asked)
    if failure := captured.record.failure:
        raise CaptureError.of(failure, ModelRecord(captured.record)) from captured.error
    return ModelRecord(captured.record)


def model_graph(
    model: nn.Module, args: Any = (), kwargs: Mapping[str, Any] | None = None, **options: Unpack[ModelOptions]
) -> graphviz.Digraph:
    """Return the model as one graph for Graphviz: a table per operator with name, target, arguments and result.

    Edges are dashed and light grey where no tensor flows, and every module call is a frame.

    Args:
        model: see `model_record`.
        args: see `model_record`.
        kwargs: see `model_record`.
        options: see `ModelOptions`.

    Raises:
        CaptureError: the model cannot be traced, or fails when it is run.
        SpecError: an option is wrong.

    Example:
        >>> from torch import nn, zeros
        >>> from sphinx_fxgraph import model_graph
        >>> graph = model_graph(nn.Sequential(nn.Linear(4, 2), nn.ReLU()), zeros(1, 4))
        >>> graph.source.splitlines()[0]
        'digraph model {'
    """
    return model_record(model, args, kwargs, **options).to_dot()


def autograd_graph(
    output: Any,
    params: Mapping[str, Tensor] | None = None,
    *,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
) -> graphviz.Digraph:
    """Return the backward graph of a model's output, from the parameters to the output, as torchviz draws it.

    Nothing is run: no backward pass, no hook; no saved tensor is unpacked and no reference is kept. The function can be
    called between the forward and the backward pass of a training step.

    Frames are modules. torch does not note which module made a function, so they come from the names in ``params``: a
    function that is given parameters stands in the module that owns them, any other in the deepest module that has both
    the last such function made before it and the first one made after it (it may have been called further inside).
    ``:tracer: autograd`` on a page runs the model itself and knows the exact call.

    Args:
        output: a tensor, such as the loss, or a tuple, list, dict or dataclass with tensors in it.
        params: tensors by their names, usually ``dict(model.named_parameters())``.
        show_attrs: show what each function has saved besides tensors: sizes, dimensions, options.
        show_saved: draw the tensors that each function has saved for the backward pass.
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
    from sphinx_fxgraph.render.dot import backward_digraph

    return backward_digraph(
        read(output, params or {}, show_attrs=show_attrs, show_saved=show_saved, most=max_attr_chars)
    )


@dataclass(frozen=True, repr=False)
class ModelRecord:
    """A captured model: its graph and numbers. It can draw, save and compare itself.

    Attributes:
        record: the data, see `sphinx_fxgraph.record.model.Record`.
    """

    record: Record

    def __repr__(self) -> str:
        facts = [f"{self.record.operators:,} operators", f"{self.parameters:,} parameters"]
        if self.macs is not None:
            facts.append(f"{self.macs:,} MACs")
        if self.record.failure:
            facts.append(f"{self.record.failure.stage} failed")
        return f"<ModelRecord {self.title}: {', '.join(facts)}>"

    # -- what is known

    @property
    def title(self) -> str:
        """The name of the model's class."""
        return self.record.bodies[self.record.root].type.rpartition(".")[2] if self.record.root else "model"

    @property
    def parameters(self) -> int:
        """Number of elements in the parameters; each tensor counts once."""
        return self.record.totals.parameters

    @property
    def macs(self) -> int | None:
        """Multiply-accumulate operations of convolutions, matrix products and attention; None if there are none."""
        return self.count_macs()

    def count_macs(self, convention: str = "torchvision") -> int | None:
        """Return the multiply-accumulate operations in a convention.

        Args:
            convention: ``torchvision`` or ``all``, which also counts norms, resizing and adaptive average pooling.

        Raises:
            ValueError: there is no such convention.
        """
        if convention not in CONVENTIONS:
            hint = suggestion(convention, CONVENTIONS)
            raise ValueError(f"convention: {convention!r} is none of {', '.join(CONVENTIONS)}{hint}")
        return macs_of(self.record.totals, convention)

    @property
    def verdict(self) -> str:
        """Return in one sentence for which input values the graph holds; empty where nothing was compared."""
        from sphinx_fxgraph.render import summary

        return summary.holds_for(self.record.verdict) if self.record.verdict else ""

    def nodes(self) -> Iterator[Operator]:
        """Iterate over the operators in the order of execution, each with its path and the data in ``node``."""
        from sphinx_fxgraph.render.dot import flatten_record

        return iter(flatten_record(self.record))

    def diff(self, other: ModelRecord) -> Difference:
        """Compare the architecture with that of another record.

        Args:
            other: what the model became; this record is what it was.

        Returns:
            The changes; ``lines()`` gives them as text, and there are none if the architectures are equal.

        Example:
            >>> from torch import nn, zeros
            >>> from sphinx_fxgraph import model_record
            >>> before, after = (model_record(nn.Linear(4, width), zeros(1, 4)) for width in (2, 3))
            >>> print(*before.diff(before).lines())
            <BLANKLINE>
            >>> before.diff(after).facts[0].name
            'parameters'
        """
        from sphinx_fxgraph.record.diff import compare

        return compare(self.record, other.record)

    # -- files

    def save(self, path: str | os.PathLike[str], **view: Unpack[DrawOptions]) -> None:
        """Write the record or its picture; the suffix says which: svg, html, pdf, png, dot or json.

        Args:
            path: the file. A ``.json`` file can be read with `load`.
            view: see `DrawOptions`; for pictures.

        Raises:
            ValueError: the suffix is none of these.
            SpecError: an option is wrong.
            EngineMissingError: no layout engine is installed.
            ConverterMissingError: PDF or PNG is asked for and CairoSVG is not installed.
        """
        from sphinx_fxgraph.render import export

        suffix = Path(path).suffix.lower()
        if suffix not in export.SUFFIXES:
            raise ValueError(f"{os.fspath(path)!r} ends in none of {', '.join(export.SUFFIXES)}")
        Path(path).write_bytes(export.content(suffix, self.record, ViewOptions.of(**view), self.title))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a record that `save`, the command line or a docs build has written.

        Raises:
            RecordFileError: there is no record that this version can read.
        """
        from sphinx_fxgraph.cache import store

        return cls(store.from_file(path))

    def to_json(self) -> str:
        """Return the record as JSON."""
        return self.record.to_json()

    def to_dot(self) -> graphviz.Digraph:
        """Return the whole model as one graph for Graphviz (see `model_graph`)."""
        from sphinx_fxgraph.render.dot import model_digraph

        return model_digraph(self.record)

    def to_svg(self, **view: Unpack[DrawOptions]) -> str:
        """Return the picture as an SVG file in light colours, without style sheet and script.

        Args:
            view: see `DrawOptions`.

        Raises:
            SpecError: an option is wrong.
            EngineMissingError: no layout engine is installed.

        Example:
            >>> from torch import nn, zeros
            >>> from sphinx_fxgraph import model_record
            >>> picture = model_record(nn.Linear(4, 2), zeros(1, 4)).to_svg(direction="LR")
            >>> "Linear" in picture
            True
        """
        from sphinx_fxgraph.render import export

        return export.print_svg(self.record, ViewOptions.of(**view), self.title)

    def to_html(self, **view: Unpack[DrawOptions]) -> str:
        """Return one HTML page with the picture, the viewer and the tables that needs no other file.

        Args:
            view: see `DrawOptions`.

        Raises:
            SpecError: an option is wrong.
            EngineMissingError: no layout engine is installed.
        """
        from sphinx_fxgraph.render import export

        return export.html(self.record, ViewOptions.of(**view), self.title)

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, which keeps a notebook's styles apart from ours."""
        page = html.escape(self.to_html())
        return f'<iframe srcdoc="{page}" title="{xml(self.title)}" width="100%" height="{_HEIGHT}"></iframe>'

    def table(self) -> str:
        """Return a line per operator with the columns of `torch.fx.Graph.print_tabular` and the result."""
        from sphinx_fxgraph.render.dot import result

        rows: list[tuple[str, ...]] = [("opcode", "name", "target", "args", "kwargs", "result")]
        for operator in self.nodes():
            node = operator.node
            rows.append((node.op, operator.path, node.target, operator.args, operator.kwargs, result(node)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple("-" * width for width in widths))
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
