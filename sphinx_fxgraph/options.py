"""Every option of a graph, declared once: name, default, kind of value, help.

`CaptureOptions` decide what is captured and are part of the spec; `ViewOptions` decide how it is drawn and never cause
a capture; `FigureOptions` decide what stands around the drawing in a page. The directives, the command line, the Python
interface and the reference page are made from these three classes: a new option is one field here, and its effect.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sphinx_fxgraph.dtypes import CASTABLE, nearest_dtype
from sphinx_fxgraph.errors import SpecError, suggestion
from sphinx_fxgraph.option_types import Choice, Classes, Dimensions, Kind, Length, Names, Patterns, Switch, Text, Whole

COLORS = {"kind": "", "params": "parameters", "macs": "MACs", "memory": "bytes of activations"}
"""What boxes can be coloured by, and what their shares are then shares of."""

CONVENTIONS = {
    "torchvision": "multiply-accumulate operations of convolutions, matrix products and attention",
    "all": "multiply-accumulate operations, with those of norms, resizing and adaptive average pooling",
}
"""What counts as a MAC: as torchvision publishes it (its "GFLOPS"), or as timm does, whose tables fvcore counts."""

COLUMNS = (
    "name",
    "op",
    "target",
    "arguments",
    "input shape",
    "output shape",
    "dtype",
    "parameters",
    "MACs",
    "connected to",
)
"""The columns of the node table."""


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        name: as a directive and the command line have it: ``expect-params``.
        field: as Python has it: ``expect_params``.
        default: the value where the option is not given.
        kind: reads and checks a value.
        help: one or two sentences, with ````code```` as in reStructuredText.
    """

    name: str
    field: str
    default: Any
    kind: Kind
    help: str

    def read(self, value: Any, *, exact: bool = False) -> Any:
        """Return a value in canonical form.

        Args:
            value: text or a Python value.
            exact: whether words must be written as declared.

        Raises:
            SpecError: the value is wrong; the message starts with the option's name.
        """
        try:
            return self.kind.read(value, exact=exact)
        except (ValueError, TypeError, AttributeError) as error:
            raise SpecError(f"{self.name}: {error}") from None

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it knows; empty where any value may be right."""
        return self.kind.words if isinstance(self.kind, Choice) else ("yes", "no") if self.kind == Switch() else ()


def _option(default: Any, kind: Kind, help: str) -> Any:  # noqa: A002 - as argparse calls it
    return dataclasses.field(default=default, metadata={"kind": kind, "help": help})


class _Options:
    """The base of the three classes of options."""

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Return the options with the given values, checked as Python code writes them.

        Args:
            values: by the option's field name.

        Raises:
            SpecError: there is no such option, or a value is wrong; the message suggests the nearest.
        """
        known = {option.field: option for option in declared(cls)}
        for name in values:
            if name not in known:
                raise SpecError(f"unknown option {name!r}{suggestion(name, known)}")
        return cls(**{name: known[name].read(value, exact=True) for name, value in values.items()})


@dataclass(frozen=True, kw_only=True)
class CaptureOptions(_Options):
    """The options that decide what is captured, besides target and inputs. Changing one captures the model again."""

    method: str = _option(
        "",
        Text(r"([^\W\d]\w*)?", "is no name of a method; for example encode"),
        "The method to trace instead of ``forward``.",
    )
    submodule: str = _option(
        "",
        Text(r"([^\s.]+(\.[^\s.]+)*)?", "is no dotted path; for example layer1.0.conv1"),
        "Dotted path of the part of the model that is captured.",
    )
    mode: str = _option("eval", Choice(("eval", "train")), "Whether the model runs in ``eval`` or ``train`` mode.")
    tracer: str = _option(
        "auto",
        Choice(("auto", "symbolic", "observed", "export", "autograd")),
        "``auto`` runs the model, traces it, and says whether the two agree. ``symbolic`` is ``torch.fx`` alone, "
        "``observed`` is the run alone, ``export`` is ``torch.export`` with open dimensions, and ``autograd`` is the "
        "graph of the backward pass.",
    )
    leaf: tuple[str, ...] = _option(
        (),
        Patterns("torchvision.ops.*, layer4.*", ordered=False),
        "Types or paths of modules whose inside is not traced, with ``*`` and ``?``. Layers of ``torch.nn`` are never "
        "traced inside, except by ``export``.",
    )
    dtype: str = _option(
        "",
        Choice(CASTABLE, nearest_dtype, optional=True),
        "The floating dtype that the model and its floating inputs are cast to, such as ``bf16``.",
    )
    device: str = _option(
        "auto",
        Choice(("auto", "meta", "cpu", "fake")),
        "``meta`` computes shapes only, ``cpu`` runs the model for real, ``fake`` uses fake tensors that claim to be "
        "on the CPU. ``auto`` runs a small model for real and a large one on ``meta``, and tries the next device where "
        "that fails.",
    )
    seed: int = _option(0, Whole("1", most=2**63 - 1), "The seed of parameters and random inputs.")
    timeout: int = _option(
        0,
        Whole("90, in seconds", most=31_536_000),
        "Seconds that the capture may take; 0 is the value of ``fxgraph_timeout``.",
    )
    network: bool = _option(
        False, Switch(), "``yes`` lets the model use the network while it is built. By default an attempt is an error."
    )


@dataclass(frozen=True, kw_only=True)
class ViewOptions(_Options):
    """How a model is drawn. Changing one captures nothing."""

    depth: int | None = _option(
        None,
        Whole("1", optional=True),
        "How many levels of modules are open. By default as many as keep the picture legible.",
    )
    open: tuple[str, ...] = _option(
        (), Patterns("layer1, layer2.*"), "Paths of modules that are open in any case, with ``*`` and ``?``."
    )
    fold: str = _option(
        "auto",
        Choice(("auto", "loose", "off")),
        "``auto`` draws runs of equal siblings once, as ``×12``; ``loose`` also folds siblings that differ in sizes "
        "only; ``off`` folds none.",
    )
    nontensor: str = _option(
        "auto",
        Choice(("auto", "show", "compact", "hide")),
        "Operators whose result holds no tensor: ``show`` draws them, ``compact`` draws each chain as a remark at its "
        "consumer, ``hide`` leaves them out. ``auto`` shows a few and compacts many.",
    )
    rows: str = _option(
        "auto",
        Choice(("auto", "off")),
        "``auto`` draws operators that follow each other without a branch as one box with a row for each; ``off`` "
        "draws a box for each.",
    )
    panels: str = _option(
        "auto",
        Choice(("auto", "yes", "no")),
        "Draws each kind of block once beside the overview, at most four: ``auto`` on paper, and on pages where all of "
        "it fits into one and a half windows; ``yes`` also where it takes more width; ``no`` never.",
    )
    layout: str = _option(
        "auto",
        Choice(("auto", "column", "u")),
        "``u`` draws a model whose skips nest, such as a U-Net, down at the left and up at the right, with the skips "
        "across; ``auto`` does so from three such skips on; ``column`` never.",
    )
    direction: str = _option("TB", Choice(("TB", "LR")), "``TB`` draws from top to bottom, ``LR`` from left to right.")
    dims: tuple[tuple[str, ...], ...] = _option(
        (),
        Dimensions(),
        "Names of the dimensions of the inputs, ``N C H W``: of all inputs that have as many, or with commas of each "
        "input in turn. A size that ``tracer`` ``export`` leaves open is shown by its name everywhere.",
    )


NUMBER = r"(\d[\d,_]*)(?:\.(\d+))?\s*([kMGTP]?)\s*(?:MACs|parameters)?"
_WRONGNUMBER = "is no number; for example 11689512, 11,689,512 or 11.7M"


@dataclass(frozen=True, kw_only=True)
class FigureOptions(_Options):
    """The options that decide what stands around the drawing in a page."""

    caption: str = _option("", Text(), "Text below the picture, with markup. A figure with a caption has a number.")
    name: str = _option("", Text(), "The name for ``:ref:`` and ``:numref:``, and the id of the figure in the page.")
    alt: str = _option("", Text(), "A sentence in place of the generated description.")
    align: str = _option("", Choice(("left", "center", "right"), optional=True), "Where the figure stands.")
    class_: tuple[str, ...] = _option((), Classes(), "Classes of the figure, for your style sheet.")
    color: str = _option(
        "",
        Choice(tuple(COLORS), optional=True),
        "What boxes are coloured by: ``kind``, or their share of ``params``, ``macs`` or ``memory``. By default the "
        "value of ``fxgraph_color``.",
    )
    height: str = _option("", Length(), "Height of the frame that a large picture scrolls in: ``400px``, ``60vh``.")
    legend: bool = _option(True, Switch(), "Whether a legend of the colours stands below the picture.")
    stages: bool = _option(
        False,
        Switch(),
        "Whether a table of the model's stages follows: what each is made of, its result, parameters and MACs.",
    )
    describe: bool = _option(
        False,
        Switch(),
        "Whether a paragraph before the picture describes the model: inputs, result, what it is made of, its stages, "
        "parameters and MACs, all from the record.",
    )
    table: tuple[str, ...] | None = _option(
        None, Names(COLUMNS, "column"), "The columns of the node table, in this order, or ``none``."
    )
    expect: str = _option(
        "",
        Text(".+", "names no result; for example f32[1, 1000], or error", collapse=True),
        "What the model returns, ``f32[1, 1000]``, or ``error`` where a failure is expected. A mismatch is a warning.",
    )
    expect_params: str = _option(
        "",
        Text(NUMBER, _WRONGNUMBER),
        "How many parameters the model has: ``11689512``, ``11,689,512`` or ``11.7M``. A mismatch is a warning.",
    )
    expect_macs: str = _option(
        "", Text(NUMBER, _WRONGNUMBER), "How many MACs the model takes: ``1.81G``. A mismatch is a warning."
    )


def declared(*scopes: type[_Options]) -> tuple[Option, ...]:
    """Return the options that classes declare, in their order."""
    return _declared(scopes)


@functools.cache
def _declared(scopes: tuple[type[_Options], ...]) -> tuple[Option, ...]:
    return tuple(
        Option(
            field.name.rstrip("_").replace("_", "-"),
            field.name,
            field.default,
            field.metadata["kind"],
            field.metadata["help"],
        )
        for scope in scopes
        for field in dataclasses.fields(scope)  # type: ignore[arg-type]  # each of the three is a dataclass
        if "kind" in field.metadata
    )


def read_options(
    given: Mapping[str, Any], scopes: Sequence[type[_Options]], *, also: Iterable[str] = ()
) -> tuple[dict[str, Any], list[SpecError]]:
    """Read options as a page or a command line writes them.

    Args:
        given: values by the options' names.
        scopes: the classes whose options are known.
        also: further names that may have been meant.

    Returns:
        The values in canonical form by name, and an error for each value that is wrong and each name that is unknown.
    """
    known = {option.name: option for option in declared(*scopes)}
    values: dict[str, Any] = {}
    errors = []
    for name, value in given.items():
        try:
            if name not in known:
                meant = sorted({*known, *also})
                hint = suggestion(name, meant) or f"; there are {', '.join(meant)}"
                raise SpecError(f"unknown option {name!r}{hint}")
            values[name] = known[name].read(value)
        except SpecError as error:
            errors.append(error)
    return values, errors
