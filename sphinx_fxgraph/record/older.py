"""Records of schemas 1 to 4, converted to the current form.

In schema 4 a value was an array, and fewer fields had a default that depends on the rest of the record. In schemas 1 to
3 arguments were text: they become data where their meaning is certain, else an argument of type ``Text``. In schema 3
a node left out what the node before it told, a leaf module what the first of its class and configuration told, and
``modules`` was an outline; schemas 1 and 2 wrote every field.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sphinx_fxgraph.record import codec

Plain = dict[str, Any]

_TENSOR = re.compile(r"(\w+)\[(.*?)\](?: (.*))?", re.DOTALL)
_LEAF: Plain = {"base": "", "detail": "", "inplace": False, "parameters": [], "buffers": []}
"""What class and configuration of a leaf module tell of it."""
_MOST = 500_000
"""Modules that a file may stand for."""


def convert(plain: Plain) -> Plain:
    """Return all fields of a record of schema 1 to 4.

    Raises:
        TypeError, KeyError, AttributeError, IndexError, ValueError: it is no record.
    """
    if plain["schema"] == 4:
        return codec.lengthen(_from_schema4(plain))
    if plain["schema"] == 3:
        plain = _lengthened(plain)
    bodies = plain.get("bodies", {})
    for body in bodies.values():
        body["outputs"] = [["$", *value] for value in body.get("outputs", [])]
        inside = {node["name"]: bodies[node["body"]] for node in body.get("nodes", []) if node.get("body")}
        for node in body.get("nodes", []):
            names = {_name(value, body, inside): ["$", *value] for value in node.get("inputs", [])}
            node["inputs"] = [["$", *value] for value in node.get("inputs", [])]
            node["args"], more = _arguments(node.get("args", ""), names)
            node["kwargs"] = more | _arguments(node.get("kwargs", ""), names)[1]
    return plain


def _from_schema4(plain: Plain) -> Plain:
    """Return a record of schema 4 in the short form of today."""
    for body in plain.get("bodies", {}).values():
        for node in body.get("nodes", ()):
            node |= {"args": [], "type": ""} | node
            node["args"] = [_escaped(argument) for argument in node["args"]]
            node["kwargs"] = {key: _escaped(argument) for key, argument in node.get("kwargs", {}).items()}
    for module in plain.get("modules", ()):
        module |= {"trainable": 0} | module
    return plain


def _escaped(argument: Any) -> Any:
    """Return an argument with the mark of a text where it looks like a value."""
    if isinstance(argument, str):
        return ["str", argument] if argument.startswith("$") else argument
    return codec.map_array(argument, _escaped) if isinstance(argument, list) else argument


# -- arguments


def _name(value: list[Any], body: Plain, inside: Mapping[str, Plain]) -> str:
    """Return what a value is called in argument texts."""
    node, output = (*value, 0)[:2]
    if not node:
        return str(body["inputs"][output]["name"])
    return f"{node}[{output}]" if len(inside.get(node, {}).get("outputs", [])) > 1 else str(node)


def _arguments(text: str, names: Mapping[str, Any]) -> tuple[list[Any], Plain]:
    """Return positional and keyword arguments from a text."""
    args: list[Any] = []
    kwargs: Plain = {}
    if text == ", ".join(names):
        return list(names.values()), {}
    for part in _split(text):
        key, equals, value = part.partition("=")
        if equals and key.isidentifier():
            kwargs[key] = _argument(value, names)
        else:
            args.append(_argument(part, names))
    return args, kwargs


def _argument(text: str, names: Mapping[str, Any]) -> Any:
    if text in names and not text.isdecimal():  # "0" may be a module of a Sequential or a number
        return names[text]
    for kind, start, end in (("list", "[", "]"), ("tuple", "(", ")")):
        if text.startswith(start) and text.endswith(end):
            return [kind, [_argument(part, names) for part in _split(text[1:-1].removesuffix(","))]]
    if re.fullmatch(r"torch(\.\w+)+", text):
        return ["name", text]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ["text", text]
    plain = value is None or isinstance(value, bool | int | float | str)
    return value if plain and text not in names else ["text", text]


def _split(text: str) -> list[str]:
    """Return the parts between the commas that stand in no bracket and no quotes."""
    parts = [""]
    depth, quote = 0, ""
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[place - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        depth += (char in "([{") - (char in ")]}") if not quote else 0
        if char == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts] if text else []


# -- what schema 3 left out


def _lengthened(plain: Plain) -> Plain:
    classes = plain.pop("types", {})
    bodies = _long_bodies(plain.get("bodies", {}), classes)
    entries = [_named(entry, classes) if isinstance(entry, dict) else entry for entry in plain.get("modules", [])]
    return plain | {"bodies": bodies, "modules": _all_modules(entries, bodies, plain.get("root", ""))}


def _long_bodies(short: Mapping[str, Plain], classes: Mapping[str, str]) -> Plain:
    leaves: dict[tuple[str, str], Plain] = {}
    bodies = {name: _each(_named(body, classes), "outputs", _long_value) for name, body in sorted(short.items())}
    for body in bodies.values():
        body["inputs"] = [_long_input(item) for item in body.get("inputs", [])]
        body["nodes"] = list(
            _long_nodes([_named(node, classes) for node in body.get("nodes", [])], body, bodies, leaves)
        )
    return bodies


def _long_nodes(
    nodes: list[Plain], body: Plain, bodies: Mapping[str, Plain], leaves: dict[tuple[str, str], Plain]
) -> Iterator[Plain]:
    before = None
    for short in nodes:
        node = _each(short, "inputs", _long_value)
        for key in ("outputs", "parameters", "buffers"):
            node = _each(node, key, _long_tensor)
        told = _told(node, before, body, bodies, leaves)
        marks = [("args", "⋯", told["args"])] if ", " in told["args"] else []
        marks.append(("where", ":", f"{body['type'].rpartition('.')[2]}.forward:"))
        for key, mark, meant in marks:
            if isinstance(node.get(key), list):  # a text that only looks abbreviated
                (node[key],) = node[key]
            elif key != "where" or node.get(key, "").startswith(mark):
                node |= {key: node[key].replace(mark, meant, 1)} if key in node else {}
        before = told | node
        leaf = _leaf(before)
        if leaf[0]:
            leaves.setdefault(leaf, {key: before.get(key, nothing) for key, nothing in _LEAF.items()})
        yield before


def _told(
    node: Plain,
    before: Plain | None,
    body: Plain,
    bodies: Mapping[str, Plain],
    leaves: Mapping[tuple[str, str], Plain],
) -> Plain:
    """Return what the rest of the record told of a node."""
    arguments = body.get("inputs", [])
    inputs = [[before["name"] if before else ""]] if before or arguments else []
    told: Plain = {"inputs": inputs, "type": bodies[node["body"]]["type"] if node.get("body") in bodies else ""}
    type_ = (told | node)["type"]
    names = [value[0] or _input(arguments, *value[1:]) for value in node.get("inputs", inputs)]
    told["op"] = "call_module" if type_ else "call_function"
    told["target"] = node["name"].partition("@")[0]
    told["kind"] = type_.rpartition(".")[2]
    told["args"] = ", ".join(names)
    told["where"] = before.get("where", "") if before else ""
    return told | leaves.get(_leaf(node), {})


def _leaf(node: Plain) -> tuple[str, str]:
    return ("" if node.get("body") else node.get("type", ""), node.get("config", ""))


def _input(inputs: list[Plain], number: int = 0) -> str:
    return str(inputs[number]["name"]) if 0 <= number < len(inputs) else ""


def _long_input(short: Any) -> Plain:
    if isinstance(short, dict):
        return _each(short, "tensors", _long_tensor)
    tensor = dict(_long_tensor(short))
    return {"name": tensor.pop("path"), "tensors": [tensor]}


def _long_value(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _long_tensor(short: Any) -> Plain:
    return short if isinstance(short, dict) else _parsed(short)


@functools.lru_cache(1024)
def _parsed(short: str) -> Plain:
    found = _TENSOR.fullmatch(short)
    if not found:
        raise ValueError(f"no tensor {short!r}")
    dtype, dims, path = found.groups()
    shape = [int(dim) if re.fullmatch("[0-9]{1,18}", dim) else dim for dim in dims.split(", ") if dim]
    return {"dtype": dtype, "shape": shape} | ({"path": path} if path else {})


def _each(plain: Plain, key: str, step: Any) -> Plain:
    return plain | {key: [step(item) for item in plain[key]]} if key in plain else plain


def _named(part: Plain, names: Mapping[str, str]) -> Plain:
    return part | {"type": names.get(part["type"], part["type"])} if "type" in part else part


# -- the outline of modules


def _all_modules(entries: list[Any], bodies: Mapping[str, Plain], root: str) -> list[Plain]:
    modules = _Modules(bodies, root)
    for short in entries:
        entry = dict(short) if isinstance(short, dict) else {"path": short}
        entry["path"] = _path(entry["path"], modules.found[-1]["path"] if modules.found else "")
        module = modules.told(entry) | entry
        same = [] if "body" in entry else modules.below_same(module)
        start = f"{module['path']}." if module["path"] else ""
        if len(modules.found) + len(same) > _MOST:
            raise ValueError(f"more than {_MOST:,} modules")
        modules.add(module, *({**each, "path": start + each["path"]} for each in same))
    return modules.found


class _Modules:
    """The modules up to one of them, and what they and the bodies tell of the next."""

    def __init__(self, bodies: Mapping[str, Plain], root: str) -> None:
        self.found: list[Plain] = []
        self.bodies = bodies
        self.root = root
        self.owners: dict[str, str] = {}
        self.first: dict[str, int] = {}
        self.calls = functools.cache(self._calls)

    def add(self, *modules: Plain) -> None:
        for number, module in enumerate(modules, len(self.found)):
            if module.get("body"):
                self.owners[module["path"]] = module["body"]
                self.first.setdefault(module["body"], number)
        self.found += modules

    def below_same(self, module: Plain) -> list[Plain]:
        """Return the modules below the first one that has the body of this one, by their paths below it."""
        first = self.first.get(module.get("body", ""))
        if first is None:
            return []
        start = f"{self.found[first]['path']}." if self.found[first]["path"] else ""
        after = itertools.islice(self.found, first + 1, None)
        below = itertools.takewhile(lambda each: each["path"].startswith(start), after)
        return [{**each, "path": each["path"].removeprefix(start)} for each in below]

    def told(self, module: Plain) -> Plain:
        """Return what the node that calls a module tells of it."""
        node = self._call(module["path"])
        told: Plain = {key: sum(map(_elements, node.get(key, []))) for key in ("parameters", "buffers")}
        tensors = [*node.get("parameters", []), *node.get("buffers", [])]
        told["bytes"] = sum(_elements(meta) * _item_size(meta) for meta in tensors)
        told["trainable"] = module.get("parameters", told["parameters"])
        return told | {key: node[key] for key in ("type", "body") if node.get(key)}

    def _call(self, path: str) -> Plain:
        """Return the node that calls a module from the nearest one around it that has a body."""
        owner, below = path, ""
        while owner:
            owner, _, name = owner.rpartition(".")
            below = f"{name}.{below}" if below else name
            if owner in self.owners:
                return self.calls(self.owners[owner]).get(below, {})
        return {"type": self.bodies[self.root]["type"], "body": self.root} if self.root in self.bodies else {}

    def _calls(self, body: str) -> dict[str, Plain]:
        nodes = self.bodies[body].get("nodes", []) if body in self.bodies else []
        return {node["target"]: node for node in reversed(nodes) if node.get("type")}


def _path(short: Any, last: str) -> Any:
    if isinstance(short, list):
        return short[0]
    name = short.lstrip(".")
    return ".".join([*last.split(".")[: len(short) - len(name)], name])


def _elements(meta: Plain) -> int:
    return math.prod(meta["shape"]) if all(isinstance(size, int) for size in meta["shape"]) else 0


def _item_size(meta: Plain) -> int:
    """Return the bytes of one element, by the bits in the name of the dtype."""
    bits = re.search(r"\d+", meta["dtype"])
    return int(bits[0]) // 8 if bits else 0
