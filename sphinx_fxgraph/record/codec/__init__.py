"""How a record is written: as its dataclasses, without what a reader can tell from the rest, one entry a line.

``nodes.py`` and ``modules.py`` say what that is. Classes are written by name, and once in full. A text in brackets is
meant as it stands. Versions before `SHORT` wrote all of it; both can be read.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from sphinx_fxgraph.record.codec.modules import all_modules, listed
from sphinx_fxgraph.record.codec.nodes import long_bodies, short_bodies
from sphinx_fxgraph.record.codec.parts import Plain, filled, named

SHORT = 3
"""The version of the format from which on records are written like this."""

# Containers that are written one entry a line, by depth; everything below them stands on the entry's line.
_OPEN: Plain = {
    "bodies": {"*": {"nodes": {}, "inputs": {}}},
    "modules": {},
    "types": {},
    "sources": {},
    "distributions": {},
    "ties": {},
    "made_by": {},
    "notes": {},
}


def text(record: Any) -> str:
    """A record as JSON: sorted keys, one node, module or source a line."""
    plain = _plain(record)
    lines = _lines(shortened(plain) if plain["schema"] >= SHORT else plain, _OPEN)
    return ("\n".join(lines) + "\n").encode("utf-8", "replace").decode()  # a lone surrogate fits in no file


def shortened(plain: Plain) -> Plain:
    """A record as plain data, without what `lengthened` adds."""
    bodies = plain.get("bodies", {})
    classes = _classes(plain)
    names = {full: name for name, full in classes.items()}
    modules = listed(plain.get("modules", []), bodies, plain.get("root", ""))
    return filled(
        plain,
        bodies=short_bodies(bodies, names),
        modules=[named(entry, names) if isinstance(entry, dict) else entry for entry in modules],
        types={name: full for name, full in classes.items() if name != full},
    )


def lengthened(plain: Any) -> Any:
    """The same with all that was left out. What is no record comes back as something that is none.

    Raises:
        TypeError, KeyError, AttributeError, IndexError, ValueError: it is none.
    """
    if not isinstance(plain, dict) or plain.get("schema", 0) < SHORT:
        return plain
    classes = plain.pop("types", {})
    bodies = long_bodies(plain.get("bodies", {}), classes)
    entries = [named(entry, classes) if isinstance(entry, dict) else entry for entry in plain.get("modules", [])]
    return filled(plain, bodies=bodies, modules=all_modules(entries, bodies, plain.get("root", "")))


def _classes(plain: Plain) -> dict[str, str]:
    """The classes by the names that stand for them."""
    bodies = [body for _, body in sorted(plain.get("bodies", {}).items())]
    parts = [part for body in bodies for part in (body, *body.get("nodes", []))] + plain.get("modules", [])
    types = dict.fromkeys(part["type"] for part in parts if part.get("type"))
    names = {full: full for full in types if "." not in full}
    for full in types:
        names.setdefault(full.rpartition(".")[2] or full, full)
    return names


# -- plain data, and its lines


def _plain(value: Any) -> Any:
    """Dataclasses as dicts without the fields that have their default value; named tuples likewise as lists."""
    if dataclasses.is_dataclass(value):
        plain = {}
        for spec in dataclasses.fields(value):
            item = getattr(value, spec.name)
            default = spec.default if spec.default_factory is dataclasses.MISSING else spec.default_factory()
            if spec.name == "schema" or item != default:
                plain[spec.name] = _plain(item)
        return plain
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value]
        defaults = list(getattr(value, "_field_defaults", {}).values())
        while defaults and items[-1] == defaults.pop():
            del items[-1]
        return items
    return value


def _lines(value: Any, opened: Plain | None, indent: str = "") -> Iterator[str]:
    """The lines of a JSON value whose containers named in ``opened`` have a line an entry."""
    if opened is None or not isinstance(value, dict | list) or not value:
        yield json.dumps(value, ensure_ascii=False, sort_keys=True)
        return
    entries = (
        [
            (json.dumps(key, ensure_ascii=False) + ": ", opened.get(key, opened.get("*")), value[key])
            for key in sorted(value)
        ]
        if isinstance(value, dict)
        else [("", None, item) for item in value]
    )
    start, end = "{}" if isinstance(value, dict) else "[]"
    yield start
    for number, (key, inner, item) in enumerate(entries, 1):
        lines = list(_lines(item, inner, indent))
        lines[0] = key + lines[0]
        lines[-1] += "," if number < len(entries) else ""
        yield from (" " + line for line in lines)
    yield end
