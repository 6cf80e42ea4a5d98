"""The nodes of the bodies, short and at length.

A tensor is ``"f32[1, 64, 56, 56] weight"``, an input of a body likewise where it is one tensor, a value the name of its
node. A node leaves out its inputs where they are the node before it, its class where that is its body's, its kind where
that is the name of its class, its target where that is its own name, its place where it is that of the node before, its
arguments where they are its inputs in their order; within other arguments ``⋯`` stands for these. A leaf module leaves
out what the first of the same class and config says of itself and its own tensors.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sphinx_fxgraph.record.codec.parts import Plain, dropped, each, filled, named

_TENSOR = re.compile(r"(\w+)\[(.*?)\](?: (.*))?", re.DOTALL)
_TENSORS = ("outputs", "parameters", "buffers")
_LEAF: Plain = {"base": "", "detail": "", "inplace": False, "parameters": [], "buffers": []}
"""What class and config of a leaf module tell of it."""
_Leaves = dict[tuple[str, str], Plain]


def short_bodies(bodies: Mapping[str, Plain], names: Mapping[str, str]) -> Plain:
    """Bodies by name without what the rest of them tells, their classes by ``names``."""
    leaves: _Leaves = {}
    short = {}
    for name, body in sorted(bodies.items()):
        nodes = [named(node, names) for node in _shorter(body, bodies, leaves)]
        inputs = [_short_input(item) for item in body.get("inputs", [])]
        short[name] = each(filled(named(body, names), nodes=nodes, inputs=inputs), "outputs", _short_value)
    return short


def long_bodies(short: Mapping[str, Plain], classes: Mapping[str, str]) -> Plain:
    """What `short_bodies` was given."""
    leaves: _Leaves = {}
    bodies = {name: each(named(body, classes), "outputs", _long_value) for name, body in sorted(short.items())}
    for body in bodies.values():
        body["inputs"] = [_long_input(item) for item in body.get("inputs", [])]
        body["nodes"] = list(_longer([named(node, classes) for node in body.get("nodes", [])], body, bodies, leaves))
    return bodies


def _shorter(body: Plain, bodies: Mapping[str, Plain], leaves: _Leaves) -> Iterator[Plain]:
    before = None
    for node in body.get("nodes", []):
        told = _told({"inputs": [], "type": ""} | node, before, body, bodies, leaves)
        short = dropped(node, told)
        for key, mark, meant in _marks(told, body):
            if _has(short, key, mark):
                short[key] = [short[key]]
            elif _has(short, key, meant):
                short[key] = short[key].replace(meant, mark, 1)
        for key in _TENSORS:
            short = each(short, key, _short_tensor)
        yield each(short, "inputs", _short_value)
        before = _remembered(node, leaves)


def _longer(nodes: list[Plain], body: Plain, bodies: Mapping[str, Plain], leaves: _Leaves) -> Iterator[Plain]:
    before = None
    for short in nodes:
        node = each(short, "inputs", _long_value)
        for key in _TENSORS:
            node = each(node, key, _long_tensor)
        told = _told(node, before, body, bodies, leaves)
        for key, mark, meant in _marks(told, body):
            if isinstance(node.get(key), list):
                (node[key],) = node[key]
            elif _has(node, key, mark):
                node[key] = node[key].replace(mark, meant, 1)
        before = _remembered(told | node, leaves)
        yield before


def _told(node: Plain, before: Plain | None, body: Plain, bodies: Mapping[str, Plain], leaves: _Leaves) -> Plain:
    """What the rest tells of a node, all at length."""
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


def _remembered(node: Plain, leaves: _Leaves) -> Plain:
    if _leaf(node)[0]:
        leaves.setdefault(_leaf(node), {key: node.get(key, nothing) for key, nothing in _LEAF.items()})
    return node


def _marks(told: Plain, body: Plain) -> Iterator[tuple[str, str, str]]:
    """Which mark stands for what, and in which text."""
    if ", " in told["args"]:
        yield "args", "⋯", told["args"]
    yield "where", ":", f"{body['type'].rpartition('.')[2]}.forward:"


def _has(node: Plain, key: str, part: str) -> bool:
    return node.get(key, "").startswith(part) if key == "where" else part in node.get(key, "")


def _input(inputs: list[Plain], number: int = 0) -> str:
    return inputs[number]["name"] if 0 <= number < len(inputs) else ""


def _short_input(item: Plain) -> Any:
    tensors = item.get("tensors", [])
    if len(tensors) == 1 and "path" not in tensors[0]:
        short = _short_tensor(tensors[0] | {"path": item["name"]})
        if isinstance(short, str):
            return short
    return each(item, "tensors", _short_tensor)


def _long_input(short: Any) -> Plain:
    if isinstance(short, dict):
        return each(short, "tensors", _long_tensor)
    tensor = dict(_long_tensor(short))
    return {"name": tensor.pop("path"), "tensors": [tensor]}


def _short_value(value: list[Any]) -> Any:
    return value if len(value) > 1 else value[0]


def _long_value(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _short_tensor(meta: Plain) -> Any:
    path = f" {meta['path']}" if meta.get("path") else ""
    short = f"{meta['dtype']}[{', '.join(map(str, meta['shape']))}]{path}"
    return short if _TENSOR.fullmatch(short) and _long_tensor(short) == meta else meta


def _long_tensor(short: Any) -> Plain:
    return short if isinstance(short, dict) else _parsed(short)


@functools.lru_cache(1024)
def _parsed(short: str) -> Plain:
    found = _TENSOR.fullmatch(short)
    if not found:
        raise ValueError(f"no tensor {short!r}")
    dtype, dims, path = found.groups()
    shape = [int(dim) if re.fullmatch("[0-9]{1,18}", dim) else dim for dim in dims.split(", ") if dim]
    return filled({"dtype": dtype, "shape": shape}, path=path)
