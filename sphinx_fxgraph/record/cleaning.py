"""One cleaner for every text of a record: the same model gives the same bytes in any process, folder and machine.

Texts come from other people's code: ``repr`` of arguments, ``extra_repr`` of modules, messages of exceptions. They may
hold memory addresses, ids, absolute paths, names of temporary files, the order of a set, symbols numbered by what was
traced before, and values of tensors.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Body, Record, TensorMeta

_AS_IS = frozenset({"spec", "schema", "made_by", "sources", "distributions", "modules", "ties", "totals", "root"})
"""Fields of a record that hold no text of other people's code, and what the author of a page has written."""
_REFERENCES = frozenset({"name", "op", "target", "type", "base", "body", "dtype", "file", "stage", "inputs", "path"})
"""Fields of its parts by which these find each other, or that are names in code."""

_Part = TypeVar("_Part")


def cleaned(record: Record) -> Record:
    """Return a record whose texts say nothing of the process, the machine, or the values of tensors."""
    symbols = _renumbered(dims for name in _in_order(record) for dims in _dims(record.bodies[name]))
    roots = _roots()

    @functools.cache
    def clean(text: str) -> str:
        return _SYMBOL.sub(lambda found: symbols.get(found[0], found[0]), clean_text(text, roots))

    names = [name for name in record.__struct_fields__ if name not in _AS_IS]
    return replace(record, **{name: _clean(getattr(record, name), clean) for name in names})


def clean_text(text: str, roots: Sequence[str] | None = None) -> str:
    """Return a text without addresses, ids, absolute paths, temporary names, orders of sets and values of tensors.

    Args:
        text: the text.
        roots: folders below which a path is told in full; by default those of ``sys.path`` and the current one.
    """
    if not _SUSPECT.search(text):
        return text
    text = _without_values(text)
    text = _ADDRESS.sub("", text)
    text = _NUMBER.sub(lambda found: f"{found[1] or found[2] or ''}…", text)
    text = _prefixes(tuple(_roots() if roots is None else roots)).sub("", text)
    for pattern in _PATHS:
        text = pattern.sub(lambda found: f"{found['before']}…/{_SEPARATOR.split(found['path'].rstrip('/'))[-1]}", text)
    text = _TEMPORARY.sub("tmp…", text)
    return _SET.sub(_sorted, text)


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|(?<=\w)@0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"(0x)[0-9a-fA-F]{6,}|(?i:(\bid\b\W{0,3}))\d{9,}|(?<![\w.])\d{14,15}(?![\w.])")
"""Addresses and ids; an id has 14 or 15 digits on 64-bit machines."""
_PATHS = (
    re.compile(r"(?P<before>['\"])(?P<path>/[^'\"\n]*/[^'\"\n]+|[A-Za-z]:[\\/][^'\"\n]+)(?=['\"])"),
    re.compile(r"(?P<before>^|(?<=[\s(\[{<>=,;]))(?P<path>/(?:[\w.+@~-]+/)+[\w.+@~-]*|[A-Za-z]:\\[\w.+@~\\-]+)"),
)
_SEPARATOR = re.compile(r"[/\\]+")
_TEMPORARY = re.compile(r"\btmp[a-z0-9_]{8}\b")
_SET = re.compile(r"\{(?:'[^'{}]*'|\"[^\"{}]*\")(?:, (?:'[^'{}]*'|\"[^\"{}]*\"))+\}")
_SYMBOL = re.compile(r"\b(s|u|j|zf|zuf)(\d+)\b")
_VALUES = re.compile(r"\b(tensor|array|Parameter)\((?=[\[\d\-.nNiITF])")
_SUSPECT = re.compile(r"0x[0-9a-fA-F]|[/\\]|\{['\"\d-]|\d{9}|\b(tensor|array|Parameter)\(|\btmp")


def _without_values(text: str) -> str:
    """Return a text with ``tensor(…)`` for a tensor's values."""
    start = 0
    while found := _VALUES.search(text, start):
        level, end = 1, found.end()
        while end < len(text) and level:
            level += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = f"{text[: found.end()]}…{')' if not level else ''}{text[end:]}"
        start = found.end()
    return text


@functools.lru_cache(16)
def _prefixes(roots: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the folders that a path is told below, the innermost first."""
    return re.compile(r"(?<![\w./\\-])(?:" + "|".join(map(re.escape, sorted(roots, key=len, reverse=True))) + ")")


def _roots() -> list[str]:
    """Return the folders below which a path is told in full: strings, since a capture of every model asks."""
    folders = [os.path.abspath(entry) for entry in (*sys.path, tempfile.gettempdir(), os.getcwd()) if entry]  # noqa: PTH100, PTH109 - strings are faster
    with_links = [os.path.realpath(folder) for folder in folders]
    return sorted({os.path.join(folder, "") for folder in (*folders, *with_links)} - {os.sep})  # noqa: PTH118 - strings are faster


def _sorted(found: re.Match[str]) -> str:
    items = re.findall(r"'[^']*'|\"[^\"]*\"", found[0])
    return "{" + ", ".join(sorted(items)) + "}"


# -- symbols


def _in_order(record: Record) -> list[str]:
    """Return the names of the bodies in the order in which they are called first."""
    names: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in names:
            names[name] = None
            for node in record.bodies[name].nodes:
                if node.body:
                    visit(node.body)

    if record.root:
        visit(record.root)
    return [*names, *(name for name in sorted(record.bodies) if name not in names)]


def _dims(body: Body) -> Iterator[str]:
    tensors = [meta for item in body.inputs for meta in item.tensors]
    for meta in (*tensors, *(meta for node in body.nodes for meta in (*node.outputs, *node.parameters, *node.buffers))):
        yield from (dim for dim in meta.shape if isinstance(dim, str))


def _renumbered(dims: Iterator[str]) -> Mapping[str, str]:
    """Return new names for symbolic sizes, numbered in the order of their appearance."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for dim in dims:
        for kind, number in _SYMBOL.findall(dim):
            if kind + number not in names:
                names[kind + number] = f"{kind}{counts.setdefault(kind, 0)}"
                counts[kind] += 1
    return names


# -- parts


def _clean(value: Any, clean: Callable[[str], str]) -> Any:
    """Return a part of a record with its texts cleaned; one without any is returned itself."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, TensorMeta):
        if str not in map(type, value.shape):
            return value
        shape = tuple(clean(dim) if isinstance(dim, str) else dim for dim in value.shape)
        return value if shape == value.shape else replace(value, shape=shape)
    if isinstance(value, Mapping):
        return {key: _clean(item, clean) for key, item in value.items()}
    if isinstance(value, tuple | list):
        items = [_clean(item, clean) for item in value]
        return value if all(map(_is, items, value)) else type(value)(items)
    if isinstance(value, msgspec.Struct):
        changed = _changed(value, value.__struct_fields__, clean)
        return replace(value, **changed) if changed else value
    return value


_PLAIN = frozenset({bool, int, float, type(None), Value})


def _changed(value: Any, names: Sequence[str], clean: Callable[[str], str]) -> dict[str, Any]:
    fields = {name: getattr(value, name) for name in names if name not in _REFERENCES}
    new = {name: _clean(item, clean) for name, item in fields.items()}
    return {name: item for name, item in new.items() if item is not fields[name]}


def _is(one: object, two: object) -> bool:
    return one is two
