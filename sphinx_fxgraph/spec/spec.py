"""The spec: target, inputs and capture options, everything that decides what is captured.

A `GraphSpec` holds canonical text, so that two ways to write one thing have one id. The grammar of target and inputs is
in `grammar` and handed on from here. Nothing is imported, called or evaluated.
"""

from __future__ import annotations

import ast
import difflib
import functools
import hashlib
import json
import re
import symtable
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from sphinx_fxgraph.spec.parser import parse_inputs, parse_target
from sphinx_fxgraph.spec.source_text import SpecError
from sphinx_fxgraph.spec.syntax import (
    AUTO,
    DTYPES,
    Arguments,
    Call,
    Dict,
    List,
    Literal,
    Name,
    Tensor,
    Tuple,
    Value,
    meant_dtype,
)
from sphinx_fxgraph.text.escape import one_line

__all__ = [
    "AUTO",
    "CHOICES",
    "CODE_FILE",
    "DTYPES",
    "Arguments",
    "Call",
    "Dict",
    "GraphSpec",
    "List",
    "Literal",
    "Name",
    "SpecError",
    "Tensor",
    "Tuple",
    "Value",
    "names_set",
    "parse_inputs",
    "parse_target",
]

CHOICES = {
    "mode": ("eval", "train"),
    "tracer": ("auto", "symbolic", "observed", "export", "autograd"),
    "device": ("auto", "meta", "cpu", "fake"),
    "dtype": tuple(short for short in DTYPES if short[0] in "fc" or short == "bf16"),
    "network": ("no", "yes"),
}
"""The options whose value is one of a few."""

CODE_FILE = "<directive>"
"""File name of the code in a directive's body, in messages and failures; lines count from the body's first."""


@dataclass(frozen=True)
class GraphSpec:
    """What is captured. Made with `parse`, which checks and brings to canonical form what an author wrote."""

    target: str
    """Expression that makes the model; empty where ``code`` sets ``model``."""
    inputs: str = ""
    """What ``forward`` is called with; ``auto`` is what the model says of itself."""
    code: str = ""
    """Python that sets ``model``, ``inputs`` or both."""
    method: str = ""
    """Method that is traced instead of ``forward``."""
    submodule: str = ""
    """Dotted path of the part of the model that is meant."""
    mode: str = "eval"
    tracer: str = "auto"
    leaf: tuple[str, ...] = ()
    """Patterns of types or paths of modules whose inside is not traced."""
    dtype: str = ""
    """Floating dtype that the model and its float inputs are cast to."""
    device: str = "auto"
    seed: int = 0
    timeout: int = 0
    """Seconds for the capture; 0 is the configured default."""
    network: bool = False

    @classmethod
    def parse(cls, target: str = "", inputs: str = "", **options: Any) -> GraphSpec:
        """The spec in canonical form. An option that is None was not given; values may be text, as in a directive.

        Raises:
            SpecError: something is wrong; the first thing found is told.
        """
        known = {field.name for field in fields(cls)}
        for name in options:
            if name not in known:
                raise SpecError(f"unknown option {name!r}{_suggestion(name, known)}")
        given: dict[str, Any] = {
            name: _READERS[name](name, value) for name, value in options.items() if value is not None
        }
        names = names_set(given.get("code", ""))
        if given.get("code") and not names & {"model", "inputs"}:
            raise SpecError(f"code: it sets neither model nor inputs; {_CODE_EXAMPLE}")
        if target.strip() or "model" not in names:
            target = str(parse_target(target))
        if "inputs" in names and inputs.strip():
            raise SpecError("inputs: the code sets inputs too; write them in one place")
        return cls(target.strip(), str(parse_inputs(inputs)), **given)

    @functools.cached_property
    def id(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @functools.cached_property
    def label(self) -> str:
        """The name of the model for readers, on one short line: ``resnet18`` for ``timm.create_model("resnet18")``."""
        return one_line(self._name(), most=80) or "model"

    def _name(self) -> str:
        if not self.target:
            return _class_in(self.code) or "model"
        tree = parse_target(self.target)
        name = (tree.function if isinstance(tree, Call) else tree).qualname.split(".")
        if re.match(r"(create|get|make|build|load|from)(_|$)", name[-1]):
            first = tree.arguments.args[:1] if isinstance(tree, Call) else ()
            if first and isinstance(first[0], Literal) and isinstance(first[0].value, str) and first[0].value:
                return first[0].value
            if len(name) > 1 and name[-2][:1].isupper():  # a class's own factory, ``AutoModel.from_config(...)``
                return name[-2]
        return name[-1]

    def to_dict(self) -> dict[str, Any]:
        """What differs from the defaults, by name in alphabetical order."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}
        default = {field.name: field.default for field in fields(self)} | {"target": "", "leaf": []}
        return {name: plain[name] for name in sorted(plain) if plain[name] != default[name]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> GraphSpec:
        """The spec that `to_dict` wrote.

        Raises:
            SpecError: it is not one.
        """
        return cls.parse(**plain)


# -- the options


def _choice(name: str, value: Any) -> str:
    choices = CHOICES[name]
    if value in choices or (name == "dtype" and value == ""):
        return str(value)
    close = meant_dtype(str(value)) if name == "dtype" else ""
    hint = f"; did you mean {close}?" if close in choices else _suggestion(str(value), choices)
    raise SpecError(f"{name}: {value!r} is none of {', '.join(choices)}{hint}")


def _flag(name: str, value: Any) -> bool:
    return value if isinstance(value, bool) else _choice(name, value) == "yes"


def _whole(name: str, value: Any) -> int:
    text = str(value).strip()
    if not re.fullmatch(r"[0-9]{1,15}", text) or isinstance(value, bool):
        example = "90, in seconds" if name == "timeout" else "1"
        raise SpecError(f"{name}: {text!r} is no whole number from 0 up; for example {example}")
    return int(text)


def _patterns(name: str, value: Any) -> tuple[str, ...]:
    parts = re.split(r"[\s,]+", value) if isinstance(value, str) else value
    if not all(isinstance(part, str) for part in parts):
        raise SpecError(f"{name}: patterns of types or paths; for example torchvision.ops.*, layer4.*")
    return tuple(sorted({part for part in parts if part}))


def _path(name: str, value: Any) -> str:
    """Dotted names; a submodule's may be numbers."""
    text = str(value).strip()
    if name == "method" and text and not text.isidentifier():
        raise SpecError(f"method: {text!r} is no name of a method; for example encode")
    if not re.fullmatch(r"([^\s.]+(\.[^\s.]+)*)?", text):
        raise SpecError(f"submodule: {text!r} is no dotted path; for example layer1.0.conv1")
    return text


_CODE_EXAMPLE = "for example model = pkg.Net(depth=2)"


def _code(_: str, value: Any) -> str:
    text = textwrap.dedent(str(value).replace("\r\n", "\n").replace("\r", "\n"))
    text = "\n".join(line.rstrip() for line in text.split("\n")).rstrip()
    names_set(text)
    return text


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "code": _code,
    "method": _path,
    "submodule": _path,
    "mode": _choice,
    "tracer": _choice,
    "leaf": _patterns,
    "dtype": _choice,
    "device": _choice,
    "seed": _whole,
    "timeout": _whole,
    "network": _flag,
}


def _suggestion(word: str, words: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, sorted(words), 1)
    return f"; did you mean {close[0]}?" if close else ""


# -- the code in a directive's body


def names_set(code: str) -> frozenset[str]:
    """The names that code sets at its top level.

    Raises:
        SpecError: it is not Python.
    """
    try:
        symbols = symtable.symtable(code, CODE_FILE, "exec").get_symbols()
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise SpecError(f"code{line}: {error.msg}; {_CODE_EXAMPLE}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise SpecError(f"code: this is no Python ({error}); {_CODE_EXAMPLE}") from None
    return frozenset(each.get_name() for each in symbols if each.is_assigned() or each.is_imported())


def _class_in(code: str) -> str:
    """``Net`` where the code says ``model = pkg.Net(...)``; empty where it says something else."""
    for node in ast.parse(code).body:
        if (
            isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) == "model"
            and isinstance(node.value, ast.Call)
        ):
            return ast.unparse(node.value.func).rpartition(".")[2]
    return ""
