"""Find the line of the model's code that is running, or that a traceback names."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import fx

import sphinx_fxgraph
from sphinx_fxgraph.cache.fingerprints import portable
from sphinx_fxgraph.capture.trace import Frame
from sphinx_fxgraph.spec.spec import CODE_FILE

_FOREIGN = (str(Path(torch.__file__).parent) + "/", str(Path(sphinx_fxgraph.__file__).parent) + "/", "<frozen ")


@functools.lru_cache(maxsize=10_000)
def is_foreign(file: str) -> bool:
    """Return whether a file belongs to torch, to this package or to the import system."""
    return file.startswith(_FOREIGN)


def borders(**functions: Sequence[Callable[..., Any]]) -> dict[int, str]:
    """The code of a tracer's own functions, for `place`: by identity, as the hash of code takes as long as the code is.

    Args:
        functions: ``call`` those that call a module, ``end`` those that call the root.
    """
    return {id(function.__code__): what for what, group in functions.items() for function in group}


def place(frame: FrameType | None, borders: Mapping[int, str], *, leaf: bool = False) -> dict[str, Any]:
    """The line that calls an operator, as ``where`` (function and line in it) and ``source`` (file and line).

    ``where`` looks no further than the module call that the operator stands in, so that a Sequential reads the same
    wherever it is called; ``source``, for messages, does.

    Args:
        frame: where to look from, outwards.
        borders: the tracer's own functions (see `borders`).
        leaf: whether the operator is a module call itself, so that the first border is its own.
    """
    inside = True
    while frame is not None:
        code = frame.f_code
        border = borders.get(id(code))
        if border == "end":
            break
        if border == "call":
            inside = inside and leaf
            leaf = False
        elif not is_foreign(code.co_filename):
            name = code.co_qualname.replace("<locals>.", "")
            line = frame.f_lineno - code.co_firstlineno + 1
            return {"where": f"{name}:{line}" if inside else "", "source": (code.co_filename, frame.f_lineno)}
        frame = frame.f_back
    return {}


def defined(function: Callable[..., Any]) -> tuple[str, int]:
    """File (package-relative) and line where a function of the model is written; empty for one of torch's."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or is_foreign(code.co_filename):
        return "", 0
    file = code.co_filename
    return file if file == CODE_FILE else portable(file), code.co_firstlineno


def placed(node: fx.Node | None) -> tuple[str, int]:
    """File (package-relative) and line of the call that a node stands for; empty where all the model is torch's own."""
    if node is None or "source" not in node.meta:
        return "", 0
    file, line = node.meta["source"]
    return file if file == CODE_FILE else portable(file), line


_TORCH = str(Path(torch.__file__).parent) + "/"


def traced_place(trace: str, stack: Sequence[Frame]) -> dict[str, Any]:
    """Where in the model's code an operator is called.

    In a module of torch.nn that is a matter of torch: what called the module may stand in any other, and modules that
    are equal would differ.
    """
    found = re.findall(r'File "(.+)", line (\d+), in ', trace)
    places = [(file, int(line)) for file, line in found if Path(file).is_absolute() and not file.startswith(_TORCH)]
    if not places:
        return {}
    file, line = places[-1]
    inside = not (stack and stack[-1].type.startswith("torch.nn."))
    return {"where": _function_at(file, line) if inside else "", "source": (file, line)}


def _function_at(file: str, line: int) -> str:
    """The function that a line stands in, and the line within it: ``BasicBlock.forward:12``."""
    around = [(start, name) for start, end, name in _functions(file) if start <= line <= end]
    if not around:
        return ""
    start, name = max(around)
    return f"{name}:{line - start + 1}"


@functools.cache
def _functions(file: str) -> tuple[tuple[int, int, str], ...]:
    """First line (that of a decorator, as in code objects), last line and qualified name of each function in a file."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    found: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}."
                if not isinstance(child, ast.ClassDef):
                    first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                    found.append((first, child.end_lineno or first, name[:-1]))
            visit(child, name)

    visit(tree, "")
    return tuple(found)
