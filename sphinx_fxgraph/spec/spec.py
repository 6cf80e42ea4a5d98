"""The spec: target, inputs and capture options, everything that decides what is captured.

A `GraphSpec` holds canonical text, so that two ways to write one thing have one id. The grammar of target and inputs is
in `grammar` and handed on from here. Nothing is imported, called or evaluated.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import re
import symtable
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sphinx_fxgraph.errors import SpecError, suggestion
from sphinx_fxgraph.escape import one_line
from sphinx_fxgraph.options import CaptureOptions, declared
from sphinx_fxgraph.spec.parser import parse_inputs, parse_target
from sphinx_fxgraph.spec.syntax import Call, Literal

CODE_FILE = "<directive>"
"""File name of the code in a directive's body, in messages and failures; lines count from the body's first."""


@dataclass(frozen=True)
class GraphSpec(CaptureOptions):
    """The specification of a capture. `parse` checks the author's text and brings it to canonical form."""

    target: str
    """Expression that makes the model; empty where ``code`` sets ``model``."""
    inputs: str = ""
    """What ``forward`` is called with; ``auto`` is what the model says of itself."""
    code: str = ""
    """Python that sets ``model``, ``inputs`` or both."""

    @classmethod
    def parse(cls, target: str = "", inputs: str = "", *, code: str | None = None, **options: Any) -> GraphSpec:
        """Return the spec in canonical form.

        Args:
            target: expression that makes the model.
            inputs: what ``forward`` is called with.
            code: Python that sets ``model``, ``inputs`` or both.
            options: those of `CaptureOptions`, as text or as Python values; one that is None was not given.

        Raises:
            SpecError: something is wrong; the message is about the first fault found.
        """
        known = {option.field: option for option in declared(CaptureOptions)}
        for name in options:
            if name not in known:
                raise SpecError(f"unknown option {name!r}{suggestion(name, known)}")
        given = {name: known[name].read(value) for name, value in options.items() if value is not None}
        code = _canonical_code(code or "")
        names = names_set(code)
        if code and not names & {"model", "inputs"}:
            raise SpecError(f"code: it sets neither model nor inputs; {_CODE_EXAMPLE}")
        if target.strip() or "model" not in names:
            target = str(parse_target(target))
        if "inputs" in names and inputs.strip():
            raise SpecError("inputs: the code sets inputs too; write them in one place")
        return cls(target.strip(), str(parse_inputs(inputs)), code, **given)

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
        """Return the values that differ from the defaults, by name in alphabetical order."""
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


# -- the code in a directive's body

_CODE_EXAMPLE = "for example model = pkg.Net(depth=2)"


def _canonical_code(code: str) -> str:
    text = textwrap.dedent(code.replace("\r\n", "\n").replace("\r", "\n"))
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip()


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
