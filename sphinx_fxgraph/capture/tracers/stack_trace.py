"""Where an operator is called, from the text of a traceback."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from sphinx_fxgraph.capture.trace import Frame

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
