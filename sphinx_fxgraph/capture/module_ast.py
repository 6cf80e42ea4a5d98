"""Split the source of a module into statements: the names that each uses and defines, and what it imports."""

from __future__ import annotations

import ast
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

Imported = tuple[str, int, str]
"""What an import is of: a module, how many dots stand before it, and a name in it; no name for the module itself."""

_BLOCKS = ast.If | ast.For | ast.While | ast.With | ast.Try | ast.TryStar | ast.Match
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SCOPES = _DEFINITIONS | ast.Lambda


class Text:
    """A module's statements.

    Raises:
        SyntaxError, ValueError: this is no Python.
    """

    def __init__(self, file: str, source: bytes) -> None:
        self.statements = [Statement(file, node) for node in ast.parse(source).body]
        self._starts = [statement.line for statement in self.statements]

    def at(self, line: int) -> Statement | None:
        """The statement that a line stands in."""
        index = bisect(self._starts, line)
        return self.statements[index - 1] if index else None

    def defining(self, name: str) -> list[Statement]:
        """The statements that define a name or change what it means."""
        return [statement for statement in self.statements if name in statement.defines]


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement on the level of the module; a block with all that is in it is one."""

    file: str
    node: ast.stmt

    @cached_property
    def line(self) -> int:
        """Where it starts, decorators included."""
        decorators = self.node.decorator_list if isinstance(self.node, _DEFINITIONS) else []
        return min([self.node.lineno, *(decorator.lineno for decorator in decorators)])

    @cached_property
    def names(self) -> set[tuple[str, ...]]:
        """The names it reads, each with the attributes that are read of it: ``("constants", "WIDTH")``."""
        reader = _Reader()
        reader.visit(self.node)
        return reader.names

    @cached_property
    def defines(self) -> set[str]:
        """The names it binds, and those whose values it may change: ``TABLE["a"] = 1``, ``TABLE.update(more)``."""
        names = set(self.imports)
        for node in _outside_scopes(self.node):
            if isinstance(node, _DEFINITIONS):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
                names |= {chain[0] for chain in _names(node)}
        if isinstance(self.node, ast.Expr | _BLOCKS):
            names |= {chain[0] for chain in self.names}
        return names

    @cached_property
    def imports(self) -> dict[str, list[Imported]]:
        """The names that it imports into the module; ``*`` for all of another."""
        return _imports(_outside_scopes(self.node))

    @cached_property
    def nested_imports(self) -> dict[str, list[Imported]]:
        """The names that its functions import when they run."""
        return _imports(ast.walk(self.node))

    @property
    def is_import(self) -> bool:
        """Return whether it does nothing else."""
        return isinstance(self.node, ast.Import | ast.ImportFrom)


class _Reader(ast.NodeVisitor):
    """Collects names. What an annotation says decides nothing."""

    def __init__(self) -> None:
        self.names: set[tuple[str, ...]] = set()

    def visit_Name(self, node: ast.Name) -> None:
        self.names.add((node.id,))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            chain.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            self.names.add((inner.id, *reversed(chain)))
        else:
            self.visit(inner)

    def visit_arg(self, node: ast.arg) -> None:
        """Without its annotation there is nothing in it."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        if node.value:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        node.returns = None
        self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        node.returns = None
        self.generic_visit(node)


def _names(node: ast.AST) -> set[tuple[str, ...]]:
    reader = _Reader()
    reader.visit(node)
    return reader.names


def _outside_scopes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run with the module itself, the first of a function or class included."""
    yield node
    if not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _outside_scopes(child)


def _imports(nodes: Iterator[ast.AST]) -> dict[str, list[Imported]]:
    found: dict[str, list[Imported]] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found.setdefault(alias.asname or alias.name, []).append((node.module or "", node.level, alias.name))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                module = alias.name if alias.asname else alias.name.partition(".")[0]
                found.setdefault(alias.asname or module, []).append((module, 0, ""))
    return found
