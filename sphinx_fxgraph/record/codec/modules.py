"""The modules of a model, short and at length, in the order in which they are registered.

A module is its name, with a dot for each name of the line before that still holds; what the node that calls it tells
is left out, and so is all that stands below a body below which the same has been listed before.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sphinx_fxgraph.record.codec.parts import Plain, dropped

_MOST = 500_000
"""More modules than any model has: a small hostile file must not stand for an endless list."""


def listed(modules: list[Plain], bodies: Mapping[str, Plain], root: str) -> Iterator[Any]:
    """The entries of the modules: a name, or a dict with what is not told."""
    seen = _Seen(bodies, root)
    while len(seen.modules) < len(modules):
        number, last = len(seen.modules), seen.last
        module = modules[number]
        entry = dropped(module, seen.told({"parameters": 0} | module))
        entry["path"] = _indented(module["path"], last)
        same = seen.below_same(module)
        seen.add(module)
        if same and "body" not in entry:
            if same == list(_below(modules, number)):
                seen.add(*modules[number + 1 : number + 1 + len(same)])
            else:
                entry["body"] = module["body"]
        yield entry if len(entry) > 1 or isinstance(entry["path"], list) else entry["path"]


def all_modules(entries: list[Any], bodies: Mapping[str, Plain], root: str) -> list[Plain]:
    """What `listed` was given.

    Raises:
        ValueError: they are too many.
    """
    seen = _Seen(bodies, root)
    for short in entries:
        entry = dict(short) if isinstance(short, dict) else {"path": short}
        entry["path"] = _path(entry["path"], seen.last)
        module = seen.told(entry) | entry
        same = [] if "body" in entry else seen.below_same(module)
        start = f"{module['path']}." if module["path"] else ""
        if len(seen.modules) + len(same) > _MOST:
            raise ValueError(f"more than {_MOST:,} modules")
        seen.add(module, *({**each, "path": start + each["path"]} for each in same))
    return seen.modules


class _Seen:
    """The modules up to one of them, and what they and the bodies tell of the next."""

    def __init__(self, bodies: Mapping[str, Plain], root: str) -> None:
        self.modules: list[Plain] = []
        self.bodies = bodies
        self.root = root
        self.owners: dict[str, str] = {}
        self.first: dict[str, int] = {}
        self.calls = functools.cache(self._calls)

    @property
    def last(self) -> str:
        """The path of the module before."""
        return self.modules[-1]["path"] if self.modules else ""

    def add(self, *modules: Plain) -> None:
        for number, module in enumerate(modules, len(self.modules)):
            if module.get("body"):
                self.owners[module["path"]] = module["body"]
                self.first.setdefault(module["body"], number)
        self.modules += modules

    def below_same(self, module: Plain) -> list[Plain]:
        """The modules below the first one that has the body of this one, by their paths below it."""
        first = self.first.get(module.get("body", ""))
        return [] if first is None else list(_below(self.modules, first))

    def told(self, module: Plain) -> Plain:
        """What the node that calls a module tells of it."""
        node = self._call(module["path"])
        told: Plain = {key: sum(map(_elements, node.get(key, []))) for key in ("parameters", "buffers")}
        tensors = [*node.get("parameters", []), *node.get("buffers", [])]
        told["bytes"] = sum(_elements(meta) * _item_size(meta) for meta in tensors)
        told["trainable"] = module.get("parameters", told["parameters"])
        return told | {key: node[key] for key in ("type", "body") if node.get(key)}

    def _call(self, path: str) -> Plain:
        """The node that calls a module from the nearest one around it that has a body; an empty one if none does."""
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


def _below(modules: list[Plain], number: int) -> Iterator[Plain]:
    start = f"{modules[number]['path']}." if modules[number]["path"] else ""
    for module in itertools.islice(modules, number + 1, None):
        if not module["path"].startswith(start):
            break
        yield {**module, "path": module["path"].removeprefix(start)}


def _indented(path: str, last: str) -> Any:
    names = path.split(".")
    pairs = enumerate(zip(names[:-1], last.split("."), strict=False))
    depth = next((number for number, (name, other) in pairs if name != other), min(len(names) - 1, last.count(".") + 1))
    short = "." * depth + ".".join(names[depth:])
    return short if _path(short, last) == path else [path]


def _path(short: Any, last: str) -> Any:
    if isinstance(short, list):
        return short[0]
    name = short.lstrip(".")
    return ".".join([*last.split(".")[: len(short) - len(name)], name])


def _elements(meta: Plain) -> int:
    return math.prod(meta["shape"]) if all(isinstance(size, int) for size in meta["shape"]) else 0


def _item_size(meta: Plain) -> int:
    """Bytes of one element, by the bits in the name of the dtype."""
    bits = re.search(r"\d+", meta["dtype"])
    return int(bits[0]) // 8 if bits else 0
