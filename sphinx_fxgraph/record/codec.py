"""The file format of a record: JSON, one node, module or source a line; see ``docs/design/record.rst``.

A file is what `msgspec` makes of the record, with these rules on top:

1. A field that has its default value is left out; so is a field of a node that the rest of the node tells (`_told`).
2. A tensor is written ``"f32[1, 64, 56, 56] weight"``.
3. A class is written by its last name; ``types`` has the full names.
4. A module with ``same`` has below it what the module of that path has.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from sphinx_fxgraph.record.arguments import Value, values_in
from sphinx_fxgraph.record.header import SCHEMA, RecordError

if TYPE_CHECKING:
    from sphinx_fxgraph.record.model import Body, Record


_MOST_OPERATORS = 10_000_000
"""More than any model has: a hostile file of nested bodies must not keep a reader busy for ever."""
_DEEPEST = 200
"""Likewise: readers go through the levels by recursion."""


def check_references(record: Record) -> None:
    """See that all values and bodies that are named are there, and that bodies do not nest for ever.

    Raises:
        ValueError: something leads nowhere, in a circle or on and on.
        RecursionError: the bodies nest deeper still.
    """
    if record.root and record.root not in record.bodies:
        raise ValueError(f"no body {record.root!r}")
    sizes: dict[str, tuple[int, int]] = {}
    for name in record.bodies:
        _size(name, record.bodies, sizes)


def check_calls(record: Record) -> None:
    """Check that each call gives a body as many values as it takes, and that nothing is to be given to the root.

    Every capture keeps this rule, and whoever goes through the calls of a record relies on it. It is checked where a
    file that anyone may have written is read.

    Raises:
        RecordError: a call does not fit.
    """
    if record.root and record.bodies[record.root].inputs:
        raise RecordError(f"{record.root!r} takes values, and nothing calls it")
    for name, body in record.bodies.items():
        for node in body.nodes:
            if node.body and len(node.inputs) != len(record.bodies[node.body].inputs):
                raise RecordError(f"{name}: {node.name!r} gives {node.body!r} more or fewer values than it takes")


def _size(name: str, bodies: Mapping[str, Body], sizes: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """How many operators one run of a body has, and how deep it nests; checks the body on the way."""
    if name in sizes:
        if not sizes[name][0]:
            raise ValueError(f"body {name!r} contains itself")
        return sizes[name]
    sizes[name] = 0, 0
    body = bodies[name]
    size, depth = 1, 1
    known = {"": len(body.inputs)}
    for node in body.nodes:
        _check_values(name, node.inputs, known)
        _check_values(name, values_in(node.args, node.kwargs.values()), known)
        if node.name in known:
            raise ValueError(f"{name}: two nodes are called {node.name!r}")
        if node.body and node.body not in bodies:
            raise ValueError(f"{name}: no body {node.body!r}")
        inner_size, inner_depth = _size(node.body, bodies, sizes) if node.body else (1, 0)
        size, depth = size + inner_size, max(depth, inner_depth + 1)
        known[node.name] = len(bodies[node.body].outputs) if node.body else 1
    _check_values(name, body.outputs, known)
    if size > _MOST_OPERATORS or depth > _DEEPEST:
        raise ValueError(f"body {name!r} runs more than {_MOST_OPERATORS:,} operators or {_DEEPEST} levels")
    sizes[name] = size, depth
    return size, depth


def _check_values(name: str, values: tuple[Value, ...], known: Mapping[str, int]) -> None:
    for value in values:
        if not 0 <= value.output < known.get(value.node, 0):
            raise ValueError(f"{name}: no such value {(value.node, value.output)!r}")


Plain = dict[str, Any]

_OPEN: Plain = {
    "bodies": {"*": {"nodes": {}, "inputs": {}}},
    "modules": {},
    "types": {},
    "sources": {},
    "distributions": {},
    "ties": {},
    "made_by": {},
    "notes": {},
    "remarks": {},
}
"""Containers that are written one entry a line, by depth; everything below them stands on the entry's line."""
_SORTED = ("spec", "bodies", "ties", "distributions", "made_by")
_MOST_MODULES = 500_000
"""More modules than any model has: a small hostile file must not stand for an endless list."""
_TENSOR = re.compile(r"(\w+)\[(.*?)\](?: (.*))?", re.DOTALL)


def text(record: msgspec.Struct) -> str:
    """Return a record as JSON."""
    plain: Plain = msgspec.to_builtins(record, enc_hook=_builtin)
    plain = {"schema": max(plain.pop("schema", 0), SCHEMA)} | plain
    plain |= {key: dict(sorted(plain[key].items())) for key in _SORTED if key in plain}
    lines = _lines(_shortened(plain), _OPEN)
    return ("\n".join(lines) + "\n").encode("utf-8", "replace").decode()  # a lone surrogate fits in no file


def _builtin(value: Any) -> Any:
    """Return what an object of a subclass is as one of str, int or float: a torch version is a str of its own kind."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__name__} in a record")


def lengthened(plain: Plain) -> Plain:
    """Return the fields of a record from what a file holds.

    Raises:
        TypeError, KeyError, AttributeError, IndexError, ValueError: it is no record.
    """
    classes = plain.pop("types", {})
    for body in plain.get("bodies", {}).values():
        _rename(body, classes)
        for given in body.get("inputs", ()):
            _each(given, "tensors", _long_tensor)
        for number, node in enumerate(body.get("nodes", ())):
            _rename(node, classes)
            for key in ("outputs", "parameters", "buffers"):
                _each(node, key, _long_tensor)
            body["nodes"][number] = _told(node) | node
    modules = plain.get("modules", [])
    for module in modules:
        _rename(module, classes)
    return plain | {"modules": _all_modules(modules)}


def _shortened(plain: Plain) -> Plain:
    """Apply the rules to the fields of a record."""
    modules = list(_listed(plain.get("modules", ())))
    parts = [part for body in plain.get("bodies", {}).values() for part in (body, *body.get("nodes", ()))]
    types_used = dict.fromkeys(part["type"] for part in (*parts, *modules) if part.get("type"))
    names = {full: full for full in types_used if "." not in full}
    for full in types_used:
        names.setdefault(full.rpartition(".")[2] or full, full)
    short = {full: name for name, full in names.items()}
    for body in plain.get("bodies", {}).values():
        for given in body.get("inputs", ()):
            _each(given, "tensors", _short_tensor)
        nodes = body.get("nodes", ())
        body |= {"nodes": [_short_node(node) for node in nodes]} if nodes else {}
        for part in (body, *body.get("nodes", ())):
            _rename(part, short)
    for module in modules:
        _rename(module, short)
    types = {name: full for full, name in short.items() if name != full}
    return plain | ({"modules": modules} if modules else {}) | ({"types": types} if types else {})


# -- nodes


def _told(node: Plain) -> Plain:
    """Return the fields of a node that its other fields tell where nothing else is said."""
    class_ = node.get("type", "")
    return {
        "op": "call_module" if class_ else "call_function",
        "target": node["name"].partition("@")[0],
        "kind": class_.rpartition(".")[2] or node["name"].rstrip("_0123456789"),
        "inputs": _values((*node.get("args", ()), *node.get("kwargs", {}).values())),
    }


def _short_node(node: Plain) -> Plain:
    told = _told(node)
    short = {key: value for key, value in node.items() if key not in told}
    said = {"op": node["op"], "target": node["target"], "kind": node["kind"], "inputs": list(node.get("inputs", ()))}
    short |= {key: value for key, value in said.items() if value != told[key]}
    for key in ("outputs", "parameters", "buffers"):
        _each(short, key, _short_tensor)
    return {key: short[key] for key in ("name", *short)}


def _values(arguments: Any) -> list[Any]:
    """Return the values that arguments refer to, each once, as `arguments.values_in` does."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    todo = list(arguments)[::-1]
    while todo:
        item = todo.pop()
        if isinstance(item, list | tuple):
            match item[0]:
                case "$":
                    found[tuple(item)] = list(item)
                case "slice":
                    todo += item[:0:-1]
                case "list" | "tuple":
                    todo += item[1][::-1]
                case "dict":
                    todo += [*itertools.chain.from_iterable(item[1])][::-1]
                case "object":
                    todo += [*item[2], *(pair[1] for pair in item[3])][::-1]
    return list(found.values())


# -- tensors and classes


def _short_tensor(meta: Plain) -> Any:
    path = f" {meta['path']}" if meta.get("path") else ""
    short = f"{meta['dtype']}[{', '.join(map(str, meta['shape']))}]{path}"
    same = _TENSOR.fullmatch(short) and _long_tensor(short) == meta | {"shape": list(meta["shape"])}
    return short if same else meta


def _long_tensor(short: Any) -> Any:
    return short if isinstance(short, dict) else _parsed(short)


@functools.lru_cache(4096)
def _parsed(short: str) -> Plain:
    found = _TENSOR.fullmatch(short)
    if not found:
        raise ValueError(f"no tensor {short!r}")
    dtype, dims, path = found.groups()
    shape = [int(dim) if re.fullmatch("[0-9]{1,18}", dim) else dim for dim in dims.split(", ") if dim]
    return {"dtype": dtype, "shape": shape} | ({"path": path} if path else {})


def _each(part: Plain, key: str, step: Callable[[Any], Any]) -> None:
    if key in part:
        part[key] = [step(item) for item in part[key]]


def _rename(part: Plain, names: Mapping[str, str]) -> None:
    if "type" in part:
        part["type"] = names.get(part["type"], part["type"])


# -- modules


def _listed(modules: Any) -> Iterator[Plain]:
    """Yield the modules without those below one that has the same below it as one before."""
    first: dict[str, str] = {}
    seen: set[str] = set()
    number = 0
    ends = _ends([module["path"] for module in modules])
    while number < len(modules):
        module, below = modules[number], modules[number + 1 : ends[number]]
        number += 1
        start = len(f"{module['path']}.") if module["path"] else 0
        inside = json.dumps([{**each, "path": each["path"][start:]} for each in below]) if below else ""
        if inside in first:
            yield module | {"same": first[inside]}
            number += len(below)
        else:
            if inside and module["path"] not in seen:
                first[inside] = module["path"]
            yield dict(module)
        seen.add(module["path"])


def _below(modules: list[Plain], start: str) -> list[Plain]:
    """Return the modules behind the first that stand below it."""
    return list(itertools.takewhile(lambda module: module["path"].startswith(start), modules[1:-1]))


def _ends(paths: list[str]) -> list[int]:
    """Return for each path the number of the first that does not stand below it."""
    ends = [len(paths)] * len(paths)
    open_: list[int] = []
    for number, path in enumerate(paths):
        while open_ and paths[open_[-1]] and not path.startswith(f"{paths[open_[-1]]}."):
            ends[open_.pop()] = number
        open_.append(number)
    return ends


def _all_modules(entries: list[Plain]) -> list[Plain]:
    """Return all modules from what `_listed` yields.

    Raises:
        ValueError: they are too many.
    """
    found: list[Plain] = []
    at: dict[str, int] = {}
    for entry in entries:
        module = dict(entry)
        same = module.pop("same", None)
        at.setdefault(module["path"], len(found))
        found.append(module)
        if same is not None:
            old, new = (f"{path}." if path else "" for path in (same, module["path"]))
            found += [each | {"path": new + each["path"].removeprefix(old)} for each in _below(found[at[same] :], old)]
        if len(found) > _MOST_MODULES:
            raise ValueError(f"more than {_MOST_MODULES:,} modules")
    return found


# -- lines


def _lines(value: Any, opened: Plain | None, indent: str = "") -> Iterator[str]:
    """Yield the lines of a JSON value whose containers named in ``opened`` have a line an entry."""
    if opened is None or not isinstance(value, dict | list) or not value:
        yield json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return
    entries = (
        [(json.dumps(key, ensure_ascii=False) + ":", opened.get(key, opened.get("*")), value[key]) for key in value]
        if isinstance(value, dict)
        else [("", None, item) for item in value]
    )
    start, end = "{}" if isinstance(value, dict) else "[]"
    yield start
    for number, (key, inner, item) in enumerate(entries, 1):
        lines = list(_lines(item, inner, indent))
        lines[0] = key + lines[0]
        lines[-1] += "," if number < len(entries) else ""
        yield from lines
    yield end
