"""Records as earlier versions wrote them: every field spelled out, arguments as text before schema 4."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from sphinx_fxgraph.record.model import Record

TOLD: dict[str, Any] = dict.fromkeys(("type", "args", "where", "base", "detail"), "")
TOLD |= {"inputs": [], "parameters": [], "buffers": [], "inplace": False}
"""Fields of a node that schema 3 takes from elsewhere where they are not there."""
COUNTS = dict.fromkeys(("parameters", "trainable", "buffers", "bytes"), 0)


def older_json(record: Record, schema: int) -> str:
    """Return a record in the format of schema 1, 2, 3 or 4."""
    plain = msgspec.to_builtins(record) | {"schema": schema}
    if schema == 4:
        for node in (node for body in plain.get("bodies", {}).values() for node in body.get("nodes", ())):
            node.setdefault("inputs", [])
        return json.dumps(plain)
    for name, body in plain.get("bodies", {}).items():
        body["outputs"] = [value[1:] for value in body.get("outputs", [])]
        for node, written in zip(record.bodies[name].nodes, body.get("nodes", []), strict=True):
            written |= TOLD | written
            written["inputs"] = [value[1:] for value in written["inputs"]]
            written["args"] = record.arguments(record.bodies[name], node)
            written.pop("kwargs", None)
    for module in plain.get("modules", []):
        module |= COUNTS | {"body": ""} | module
        module["path"] = [module["path"]] if schema == 3 else module["path"]
    return json.dumps(plain)
