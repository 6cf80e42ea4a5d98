"""Find the file and the line of code that a node comes from, without importing it, and the address of both."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from sphinx_fxgraph.cache.fingerprints import SourceFinder, read_file
from sphinx_fxgraph.record.model import Record

_WHERE = re.compile(r"(?P<function>.+):(?P<line>\d+)")


class SourceLinks:
    """Locates the nodes of one record.

    Args:
        record: the model.
        template: the address of a file and a line, ``https://host/repository/{path}#L{line}``; empty for no links.
    """

    def __init__(self, record: Record, template: str) -> None:
        self._template = template
        self._finder = SourceFinder()
        self._files = [source.file for source in record.sources]
        target = str(record.spec.get("target", ""))
        self._own = {file.split("/")[0] for file in self._files} | {re.split(r"[.:(]", target)[0]}

    def __call__(self, type_: str, where: str) -> tuple[str, str]:
        """Return file and line as text, and their address if they are of the documented project.

        Args:
            type_: the dotted path of the class of the module.
            where: the function and the line within it, ``Block.forward:3``; empty for the class itself.
        """
        match = _WHERE.fullmatch(where)
        name = match["function"] if match else where or type_.rpartition(".")[2]
        place = self._find(type_, name)
        if place is None:
            return where, ""
        file, line = place
        line += int(match["line"]) - 1 if match else 0
        below = file.split("/")[0] in self._own
        address = self._template.format(path=file, line=line) if self._template and below else ""
        return f"{file}:{line} {name}" if where else f"{file}:{line}", address

    @functools.cache  # noqa: B019 - it lives for one page
    def _find(self, type_: str, name: str) -> tuple[str, int] | None:
        """Return the file of a function or class, and its first line."""
        for file in dict.fromkeys([*_candidates(type_), *self._files]):
            path = self._finder.locate(file)
            lines = _definitions(path) if path and path.is_file() else {}
            if name in lines:
                return file, lines[name]
        return None


def _candidates(type_: str) -> Iterator[str]:
    module = type_.rpartition(".")[0].replace(".", "/")
    if module:
        yield f"{module}.py"
        yield f"{module}/__init__.py"


@functools.lru_cache(256)
def _definitions(path: Path) -> dict[str, int]:
    """Return the first line of every class and function in a file by qualified name."""
    try:
        tree = ast.parse(read_file(path))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, int] = {}

    def visit(node: ast.AST, around: str) -> None:
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{around}{inner.name}"
                # A function begins at its first decorator, from which its lines are counted.
                found.setdefault(name, min([inner.lineno, *(each.lineno for each in inner.decorator_list)]))
                visit(inner, f"{name}." if isinstance(inner, ast.ClassDef) else f"{name}.<locals>.")
            else:
                visit(inner, around)

    visit(tree, "")
    return found
