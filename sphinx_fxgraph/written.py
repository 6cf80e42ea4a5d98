"""How a record is written: as its dataclasses, without what a reader can tell from the rest, one entry a line.

A tensor is ``["f32", [1, 64, 56, 56], "weight"]``, a value the name of its node. A node leaves out its kind where that
is the name of its class, its target where that is its own name, its arguments where they are its inputs in their order;
within other arguments ``⋯`` stands for these. Classes are written by name, and once in full. Versions before `SHORT`
wrote all of it; both can be read.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

SHORT = 3
"""The version of the format from which on records are written like this."""

_Plain = dict[str, Any]

# Containers that are written one entry a line, by depth; everything below them stands on the entry's line.
_OPEN: _Plain = {
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


# -- short


def shortened(plain: _Plain) -> _Plain:
    """A record as plain data, without what `lengthened` adds."""
    types = {each.get("type", ""): None for each in _typed(plain)}
    names = {full: full for full in types if "." not in full}
    for full in types:
        names.setdefault(full.rpartition(".")[2], full)
    called = {full: name for name, full in names.items()}
    bodies = {name: _body(body, called, _shorter) for name, body in plain.get("bodies", {}).items()}
    modules = [_module(module, called, _dropped) for module in plain.get("modules", [])]
    table = {name: full for name, full in names.items() if name != full}
    return _filled(plain, bodies=bodies, modules=modules, types=table)


def lengthened(plain: Any) -> Any:
    """The same with all that was left out. What is no record comes back as something that is none.

    Raises:
        TypeError, KeyError, AttributeError, IndexError, ValueError: it is none.
    """
    if not isinstance(plain, dict) or plain.get("schema", 0) < SHORT:
        return plain
    types = plain.pop("types", {})
    bodies = {name: _body(body, types, _longer) for name, body in plain.get("bodies", {}).items()}
    modules = [_module(module, types, _added) for module in plain.get("modules", [])]
    return _filled(plain, bodies=bodies, modules=modules)


def _typed(plain: _Plain) -> Iterator[_Plain]:
    for body in plain.get("bodies", {}).values():
        yield body
        yield from body.get("nodes", [])
    yield from plain.get("modules", [])


def _filled(plain: _Plain, **parts: Any) -> _Plain:
    return plain | {name: part for name, part in parts.items() if part}


_Step = Callable[[_Plain, _Plain], _Plain]
"""Takes a part and what can be told of it."""


def _dropped(part: _Plain, told: _Plain) -> _Plain:
    """What can be told is left out; where something else is the case it is said, be it that there is nothing."""
    other = {key: part.get(key, type(value)()) for key, value in told.items()}
    rest = {key: value for key, value in part.items() if key not in told}
    return rest | {key: value for key, value in other.items() if value != told[key]}


def _added(part: _Plain, told: _Plain) -> _Plain:
    return told | part


def _module(module: _Plain, types: Mapping[str, str], step: _Step) -> _Plain:
    found = step(module, {"trainable": module.get("parameters", 0)})
    return found | ({"type": types.get(module["type"], module["type"])} if "type" in module else {})


def _body(
    body: _Plain, types: Mapping[str, str], step: Callable[[_Plain, _Plain, Mapping[str, str]], _Plain]
) -> _Plain:
    tensor = _short_tensor if step is _shorter else _long_tensor
    value = _short_value if step is _shorter else _long_value
    named = types.get(body["type"], body["type"])
    return _filled(
        body,
        type=named,
        inputs=[
            _filled(each, tensors=[tensor(meta) for meta in each.get("tensors", [])]) for each in body.get("inputs", [])
        ],
        nodes=[step(node, body | {"type": max(named, body["type"], key=len)}, types) for node in body.get("nodes", [])],
        outputs=[value(each) for each in body.get("outputs", [])],
    )


def _shorter(node: _Plain, body: _Plain, types: Mapping[str, str]) -> _Plain:
    short = _dropped(node, _told(node, body))
    function = _forward(body)
    if node.get("where", "").startswith(f"{function}:"):
        short["where"] = node["where"].removeprefix(function)
    names = _told(node, body)["args"]
    if ", " in names and "args" in short:
        short["args"] = short["args"].replace(names, _INPUTS, 1)
    if node.get("type"):
        short["type"] = types.get(node["type"], node["type"])
    return _filled(
        short,
        inputs=[_short_value(value) for value in node.get("inputs", [])],
        **{key: [_short_tensor(meta) for meta in node.get(key, [])] for key in _TENSORS},
    )


def _longer(node: _Plain, body: _Plain, types: Mapping[str, str]) -> _Plain:
    long = _filled(
        node,
        inputs=[_long_value(value) for value in node.get("inputs", [])],
        **{key: [_long_tensor(meta) for meta in node.get(key, [])] for key in _TENSORS},
    )
    if long.get("type"):
        long["type"] = types.get(long["type"], long["type"])
    if long.get("where", "").startswith(":"):
        long["where"] = _forward(body) + long["where"]
    told = _told(long, body)
    if _INPUTS in long.get("args", ""):
        long["args"] = long["args"].replace(_INPUTS, told["args"], 1)
    return told | long


_INPUTS = "⋯"
_TENSORS = ("outputs", "parameters", "buffers")
_FIELDS = ("dtype", "shape", "path", "device")
"""Of a tensor, in their order."""


def _told(node: _Plain, body: _Plain) -> _Plain:
    """What the rest of a node tells, both at length."""
    type_ = node.get("type", "")
    inputs = body.get("inputs", [])
    names = [value[0] or _input(inputs, *value[1:]) for value in node.get("inputs", [])]
    return {
        "op": "call_module" if type_ else "call_function",
        "target": node["name"].partition("@")[0],
        "kind": type_.rpartition(".")[2],
        "args": ", ".join(names),
    }


def _input(inputs: list[_Plain], number: int = 0) -> str:
    return inputs[number]["name"] if 0 <= number < len(inputs) else ""


def _forward(body: _Plain) -> str:
    return f"{body['type'].rpartition('.')[2]}.forward"


def _short_tensor(meta: _Plain) -> list[Any]:
    fields = [meta.get(key, "") for key in _FIELDS]
    while not fields[-1] and len(fields) > 2:
        del fields[-1]
    return fields


def _long_tensor(fields: list[Any]) -> _Plain:
    return dict(zip(_FIELDS, fields, strict=False))


def _short_value(value: list[Any]) -> Any:
    return value if len(value) > 1 else value[0]


def _long_value(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


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


def _lines(value: Any, opened: _Plain | None, indent: str = "") -> Iterator[str]:
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
