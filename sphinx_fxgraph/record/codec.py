"""The file format of a record: JSON, one node, module or source a line; see ``docs/design/record.rst``.

A file holds the fields of the record, made short by these rules:

1. A field that has its default value is left out. Some defaults depend on the rest of the record: see `_node_defaults`
   and `_module_defaults`.
2. A tensor is written ``"f32[1, 64, 56, 56] weight"``, and so is an input that is one tensor.
3. A value is written ``"$conv1"``, and ``"$lstm:1"`` where it is not the first output.
4. A class is written by its last name; ``types`` has the full names.
5. A line of the ``forward`` of the body's own class is written as a number.
6. A node with ``leaf`` has the fields of that entry of ``leaves``: several modules of one configuration share it.
7. A module with ``same`` has below it what the module of that path has.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from sphinx_fxgraph.record.header import SCHEMA

Plain = dict[str, Any]

_OPEN: Plain = {
    "bodies": {"*": {"nodes": {}, "inputs": {}}},
    "leaves": {},
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
_TENSORS = ("outputs", "parameters", "buffers")
"""The fields of a node that hold tensors."""
_LEAF = ("type", "base", "detail", "config", "parameters", "buffers", "inplace")
"""The fields of a node that an entry of ``leaves`` holds."""


def encode(record: msgspec.Struct) -> str:
    """Return a record as JSON."""
    plain: Plain = msgspec.to_builtins(record, enc_hook=_builtin)
    plain = {"schema": max(plain.pop("schema", 0), SCHEMA)} | plain
    plain |= {key: dict(sorted(plain[key].items())) for key in _SORTED if key in plain}
    lines = _lines(_shorten(plain), _OPEN)
    return ("\n".join(lines) + "\n").encode("utf-8", "replace").decode()  # a lone surrogate fits in no file


def _builtin(value: Any) -> Any:
    """Return what an object of a subclass is as one of str, int or float: a torch version is a str of its own kind."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__name__} in a record")


def lengthen(plain: Plain) -> Plain:
    """Return all fields of a record from the short form that a file holds.

    Raises:
        TypeError, KeyError, AttributeError, IndexError, ValueError: it is no record.
    """
    classes = plain.pop("types", {})
    leaves = plain.pop("leaves", {})
    bodies = plain.get("bodies", {})
    for part in (*leaves.values(), *bodies.values()):
        _rename(part, classes)
    for body in bodies.values():
        _each(body, "inputs", _long_input)
        _each(body, "outputs", _long_argument)
        before = "" if body.get("inputs") else None
        for number, short in enumerate(body.get("nodes", ())):
            _rename(short, classes)
            node = leaves[short.pop("leaf")] | short if "leaf" in short else short
            body["nodes"][number] = _long_node(node, before, body, bodies)
            before = node["name"]
    modules = plain.get("modules", [])
    for module in modules:
        _rename(module, classes)
    return plain | {"modules": [_module_defaults(each, bodies) | each for each in _all_modules(modules)]}


def _shorten(plain: Plain) -> Plain:
    """Apply the rules to the fields of a record."""
    bodies = plain.get("bodies", {})
    modules = list(_without_repeats([_short_module(module, bodies) for module in plain.get("modules", ())]))
    parts = [part for body in bodies.values() for part in (body, *body.get("nodes", ()))]
    names = _short_names(part["type"] for part in (*parts, *modules) if part.get("type"))
    for body in bodies.values():
        before = "" if body.get("inputs") else None
        nodes = []
        for node in body.get("nodes", ()):
            nodes.append(_short_node(node, before, body, bodies))
            before = node["name"]
        body |= {"nodes": nodes} if nodes else {}
    for body in bodies.values():
        _each(body, "inputs", _short_input)
        _each(body, "outputs", _short_argument)
    leaves = _share_leaves([node for body in bodies.values() for node in body.get("nodes", ())])
    parts = [part for body in bodies.values() for part in (body, *body.get("nodes", ()))]
    for part in (*parts, *leaves.values(), *modules):
        _rename(part, names)
    types = {name: full for full, name in names.items() if name != full}
    tables = {"modules": modules, "leaves": leaves, "types": types}
    return plain | {key: table for key, table in tables.items() if table}


# -- nodes


def _node_defaults(node: Plain, before: str | None, bodies: Plain) -> Plain:
    """Return what a field of a node is where the file leaves it out.

    Args:
        node: the node, in the long form as far as it is known.
        before: the name of the node before; the empty name for the first input of the body.
        bodies: all bodies.
    """
    body = bodies.get(node.get("body", ""))
    told: Plain = {"type": body["type"] if body else ""}
    class_ = str(node.get("type", told["type"]))
    told["op"] = "call_module" if class_ else "call_function"
    told["target"] = node["name"].partition("@")[0]
    told["kind"] = class_.rpartition(".")[2] or node["name"].rstrip("_0123456789")
    takes_none = before is None or node.get("op", told["op"]) in ("placeholder", "get_attr")
    told["args"] = [] if takes_none else [["$", before, 0]]
    told["inputs"] = _values((*(told | node)["args"], *node.get("kwargs", {}).values()))
    return told


_EMPTY: Plain = {"type": "", "args": [], "inputs": []}
"""The fields of a node that `msgspec` leaves out if they are empty, and whose default is another in a file."""


def _long_node(node: Plain, before: str | None, body: Plain, bodies: Plain) -> Plain:
    for key in _TENSORS:
        _each(node, key, _long_tensor)
    for key in ("args", "inputs"):
        _each(node, key, _long_argument)
    if "kwargs" in node:
        node["kwargs"] = {key: _long_argument(value) for key, value in node["kwargs"].items()}
    if isinstance(node.get("where"), int):
        node["where"] = f"{_forward(body)}:{node['where']}"
    return _node_defaults(node, before, bodies) | node


def _short_node(node: Plain, before: str | None, body: Plain, bodies: Plain) -> Plain:
    node = node | {key: empty for key, empty in _EMPTY.items() if key not in node}
    told = _node_defaults(node, before, bodies)
    short = {key: value for key, value in node.items() if key not in told or _lists(value) != told[key]}
    for key in _TENSORS:
        _each(short, key, _short_tensor)
    for key in ("args", "inputs"):
        _each(short, key, _short_argument)
    if "kwargs" in short:
        short["kwargs"] = {key: _short_argument(value) for key, value in short["kwargs"].items()}
    function, _, line = short.get("where", "").rpartition(":")
    if function == _forward(body) and re.fullmatch("[1-9][0-9]{0,8}", line):
        short["where"] = int(line)
    return {key: short[key] for key in ("name", *(key for key in node if key in short), *short)}


def _lists(value: Any) -> Any:
    """Return a value with lists in place of tuples."""
    return [*map(_lists, value)] if isinstance(value, list | tuple) else value


def _forward(body: Plain) -> str:
    """Return the name of the function that a body is the inside of."""
    return f"{body['type'].rpartition('.')[2]}.forward"


def _share_leaves(nodes: list[Plain]) -> Plain:
    """Return the entries that several leaf modules share, and put their names in place of the fields.

    The name of an entry is the class and a digest of the fields, so that it does not depend on other entries.
    """
    users: dict[str, list[Plain]] = {}
    for node in nodes:
        if node.get("type") and not node.get("body"):
            fields = {key: node[key] for key in _LEAF if key in node}
            users.setdefault(json.dumps(fields), []).append(node)
    shared = {
        text: hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() for text in users if len(users[text]) > 1
    }
    size = next(
        (size for size in range(3, 64) if len({digest[:size] for digest in shared.values()}) == len(shared)), 64
    )
    leaves: Plain = {}
    for text, digest in shared.items():
        fields = json.loads(text)
        name = f"{fields['type'].rpartition('.')[2]}.{digest[:size]}"
        leaves[name] = fields
        for node in users[text]:
            rest = {key: node.pop(key) for key in tuple(node) if key != "name"}
            node |= {"leaf": name} | {key: value for key, value in rest.items() if key not in _LEAF}
    return dict(sorted(leaves.items()))


def _values(arguments: Iterable[Any]) -> list[Any]:
    """Return the values that arguments refer to, each once, as `arguments.values_in` does."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    todo = list(arguments)[::-1]
    while todo:
        item = todo.pop()
        if isinstance(item, list | tuple):
            if item[0] == "$":
                found[tuple(item)] = list(item)
            else:
                todo += _inside(item)[::-1]
    return list(found.values())


def _inside(container: list[Any] | tuple[Any, ...]) -> list[Any]:
    """Return the arguments in an argument that is an array."""
    match container[0]:
        case "slice":
            return list(container[1:])
        case "list" | "tuple":
            return list(container[1])
        case "dict":
            return [*itertools.chain.from_iterable(container[1])]
        case "object":
            return [*container[2], *(pair[1] for pair in container[3])]
    return []


def map_array(container: list[Any] | tuple[Any, ...], change: Callable[[Any], Any]) -> list[Any]:
    """Return an argument that is an array with the arguments in it changed."""
    match container[0]:
        case "slice":
            return ["slice", *map(change, container[1:])]
        case "list" | "tuple":
            return [container[0], [*map(change, container[1])]]
        case "dict":
            return ["dict", [[*map(change, pair)] for pair in container[1]]]
        case "object":
            pairs = [[key, change(item)] for key, item in container[3]]
            return ["object", container[1], [*map(change, container[2])], pairs]
    return list(container)


def _short_argument(argument: Any) -> Any:
    if isinstance(argument, str):
        return ["str", argument] if argument.startswith("$") else argument
    if isinstance(argument, list | tuple):
        if argument[0] == "$" and ":" not in argument[1]:
            return f"${argument[1]}:{argument[2]}" if argument[2] else f"${argument[1]}"
        return map_array(argument, _short_argument)
    return argument


def _long_argument(short: Any) -> Any:
    if isinstance(short, str):
        if not short.startswith("$"):
            return short
        name, _, output = short[1:].partition(":")
        return ["$", name, int(output or 0)]
    if isinstance(short, list):
        return short[1] if short[0] == "str" else map_array(short, _long_argument)
    return short


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


def _short_input(given: Plain) -> Any:
    tensors = given.get("tensors", ())
    if len(tensors) == 1 and not tensors[0].get("path"):
        short = _short_tensor(tensors[0] | ({"path": given["name"]} if given["name"] else {}))
        if isinstance(short, str):
            return short
    _each(given, "tensors", _short_tensor)
    return given


def _long_input(short: Any) -> Plain:
    if isinstance(short, dict):
        _each(short, "tensors", _long_tensor)
        return short
    tensor = dict(_parsed(short))
    return {"name": tensor.pop("path", ""), "tensors": [tensor]}


def _each(part: Plain, key: str, step: Callable[[Any], Any]) -> None:
    if key in part:
        part[key] = [step(item) for item in part[key]]


def _short_names(classes: Iterable[str]) -> dict[str, str]:
    """Return the last name of each class, where no other class has it."""
    used = dict.fromkeys(classes)
    names = {full: full for full in used if "." not in full}
    for full in used:
        names.setdefault(full.rpartition(".")[2] or full, full)
    return {full: name for name, full in names.items()}


def _rename(part: Plain, names: Mapping[str, str]) -> None:
    if "type" in part:
        part["type"] = names.get(part["type"], part["type"])


# -- modules


def _module_defaults(module: Plain, bodies: Plain) -> Plain:
    """Return what a field of a module is where the file leaves it out."""
    told = {"trainable": module.get("parameters", 0)}
    return told | ({"type": bodies[module["body"]]["type"]} if module.get("body") in bodies else {})


def _short_module(module: Plain, bodies: Plain) -> Plain:
    module = {"trainable": 0} | module
    told = _module_defaults(module, bodies)
    return {key: value for key, value in module.items() if key not in told or value != told[key]}


def _without_repeats(modules: list[Plain]) -> Iterator[Plain]:
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
    """Return all modules from what `_without_repeats` yields.

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
