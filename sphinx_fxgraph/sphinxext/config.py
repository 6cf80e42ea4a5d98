"""The values that ``conf.py`` can set, each declared once with type, default, what it rebuilds, and help."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sphinx.config import ENUM

from sphinx_fxgraph.options import COLORS, CONVENTIONS
from sphinx_fxgraph.sphinxext.messages import warn
from sphinx_fxgraph.units import FORMATS, Units

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config as SphinxConfig


def _value(default: Any, *, help: str, types: Any = (), rebuild: str = "") -> Any:  # noqa: A002 - as argparse calls it
    """A field of `Config`.

    Most values rebuild nothing (``rebuild=""``): what a page shows is compared on every build, so that exactly the
    pages that would look different are written.
    """
    metadata = {"help": help, "types": types, "rebuild": rebuild}
    if isinstance(default, dict | list):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Config:
    """The ``fxgraph_*`` values of a build."""

    mode: str = _value(
        "auto",
        types=ENUM("auto", "cached", "force", "off"),
        help="auto: capture what is missing or stale; cached: never capture; force: capture everything; off: no graphs",
    )
    cache_dir: str = _value(
        "",
        types=(str,),
        help="Folder of the records, relative to conf.py. It may be committed. Default: beside the doctrees",
    )
    commit: str = _value(
        "all",
        types=ENUM("all", "records"),
        help="What the folder of the cache holds. all: records, DOT and layouts; records: only records. DOT and "
        "layouts are then made again, beside the doctrees, in milliseconds each",
    )
    dot: str = _value("", types=(str,), help="The Graphviz engine to use, as a command")
    timeout: int = _value(300, types=(int,), help="Seconds that one capture may take")
    workers: int = _value(0, types=(int,), help="How many captures run at once; 0 for as many as there are cores")
    python: str = _value(
        "", types=(str,), help="Another Python interpreter, one that has torch. Default: the one of the docs"
    )
    executor: str = _value(
        "",
        types=(str,),
        help="Makes a concurrent.futures.Executor that captures elsewhere, as module:factory",
    )
    shard: str = _value("", types=(str,), help="The part that fxgraph-warm captures: 3/16 is the third of sixteen")
    prune: bool = _value(False, types=(bool,), help="Whether fxgraph-warm removes what no page uses any more")
    defaults: Mapping[str, Mapping[str, str]] = _value(
        {},
        types=(dict,),
        rebuild="env",
        help='Options by target pattern, {"torchvision.models.*": {"inputs": "f32[1,3,224,224]"}}; later ones win',
    )
    autodoc: Mapping[str, Mapping[str, str] | None] = _value(
        {},
        types=(dict,),
        rebuild="env",
        help='Classes and functions that get a graph where they are documented, {"pkg.models.*": {"inputs": '
        '"f32[1,3,224,224]"}}, with the options of the directive; the last pattern that fits counts, None is no graph',
    )
    verdict: str = _value(
        "short",
        types=(str,),
        rebuild="html",
        help="What is said below a graph of other input values: short, full with the reason, or none",
    )
    require_verdict: bool = _value(
        False, types=(bool,), help="Whether it is a warning that a graph holds for one path of its model only"
    )
    ignore_packages: Sequence[str] = _value(
        [],
        types=(list, tuple),
        help='Distributions and packages whose changes make no record stale, as patterns: ["numpy", "my-utils*"]',
    )
    macs: str = _value(
        "torchvision",
        types=ENUM(*CONVENTIONS),
        help="What counts as a MAC. torchvision: convolutions, matrix products and attention; "
        "all: norms, resizing and adaptive average pooling too, as in the tables of timm",
    )
    color: str = _value(
        "kind",
        types=ENUM(*COLORS),
        help="What boxes are coloured by, where a directive does not say: kind; params, macs or memory: by their share",
    )
    number_format: str = _value(
        "auto",
        types=ENUM(*FORMATS),
        help="SI: three digits and a prefix; grouped: in full; auto: parameters in full, MACs and bytes short",
    )

    source_url: str = _value(
        "",
        types=(str,),
        rebuild="html",
        help="Address of a line of the documented code, https://host/repository/blob/main/{path}#L{line}",
    )

    @property
    def units(self) -> Units:
        """How numbers are written."""
        return Units(self.number_format, self.macs, self.verdict)

    @classmethod
    def of(cls, config: SphinxConfig) -> Config:
        """Read the settings of a project."""
        return cls(**{field.name: getattr(config, f"fxgraph_{field.name}") for field in dataclasses.fields(cls)})


def check_types(app: Sphinx, config: SphinxConfig) -> None:  # noqa: ARG001 - an event handler
    """Warn of each value whose type is wrong, and use its default."""
    for name, default in dataclasses.asdict(Config()).items():
        value = getattr(config, f"fxgraph_{name}")
        if isinstance(value, os.PathLike) and isinstance(default, str):
            config[f"fxgraph_{name}"] = os.fspath(value)
        elif not isinstance(value, (list, tuple) if isinstance(default, tuple | list) else type(default)):
            kind = _KINDS.get(type(default), type(default).__name__)
            example = ', such as "package.module:factory"' if name == "executor" else ""
            warn(f"fxgraph_{name} is {kind}{example}, not {type(value).__name__}; the default is used", "option")
            config[f"fxgraph_{name}"] = default


_KINDS = {
    str: "a string",
    int: "a whole number",
    bool: "True or False",
    dict: "a dictionary",
    tuple: "a list",
    list: "a list",
}


def setup(app: Sphinx) -> None:
    """Declare the values to Sphinx."""
    for name, value in dataclasses.asdict(Config()).items():
        metadata = Config.__dataclass_fields__[name].metadata
        app.add_config_value(f"fxgraph_{name}", value, metadata["rebuild"], metadata["types"], metadata["help"])
    app.connect("config-inited", check_types, priority=400)
