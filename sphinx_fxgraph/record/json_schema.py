"""The JSON Schema of a record's file, made from the types of the record and the rules of `codec`.

``python -m sphinx_fxgraph.record.json_schema`` prints it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from sphinx_fxgraph.record.arguments import Argument
from sphinx_fxgraph.record.header import SCHEMA
from sphinx_fxgraph.record.model import Record

_DEPENDENT = {
    "Node": ("op", "target", "kind", "type", "args", "inputs"),
    "Module": ("type", "trainable"),
}
"""Fields whose default depends on the rest of the file: none is required, and none has a constant default."""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a file of the current version."""
    (_, types) = msgspec.json.schema_components([Record], ref_template="#/$defs/{name}")
    string = {"type": "array", "prefixItems": [{"const": "str"}, {"type": "string"}], "minItems": 2}
    (argument, _) = msgspec.json.schema_components([Argument], ref_template="#/$defs/{name}")
    types = _replaced(types, argument[0], {"$ref": "#/$defs/Argument"})
    types["Argument"] = {"title": "Argument", "anyOf": [*argument[0]["anyOf"], string]}
    record, node, module = types["Record"], types["Node"], types["Module"]
    for name, fields in _DEPENDENT.items():
        types[name]["required"] = [field for field in types[name]["required"] if field not in fields]
        for field in fields:
            types[name]["properties"][field].pop("default", None)
    record["properties"] |= {
        "schema": {"const": SCHEMA},
        "leaves": _table({"$ref": "#/$defs/Leaf"}, "What several nodes have in common, by the name in their ``leaf``."),
        "types": _table({"type": "string"}, "The full name of each class that is written by its last name."),
    }
    record["required"] = ["schema", *record["required"]]
    node["properties"] |= {
        "leaf": {"type": "string", "description": "An entry of ``leaves``, whose fields the node has."},
        "where": {"anyOf": [node["properties"]["where"], {"type": "integer", "minimum": 1}]},
    }
    module["properties"]["same"] = {
        "type": "string",
        "description": "The path of a module with the same modules below.",
    }
    types["Leaf"] = {
        "title": "Leaf",
        "description": "Fields that several nodes have in common.",
        "type": "object",
        "properties": {key: field for key, field in node["properties"].items() if key not in ("name", "leaf")},
    }
    types["Value"] = {
        "title": "Value",
        "description": types["Value"]["description"],
        "anyOf": [{"type": "string", "pattern": r"^\$[^:]*(:[0-9]+)?$"}, types["Value"]],
    }
    types["TensorMeta"] = _or_text(types["TensorMeta"])
    types["BodyInput"] = _or_text(types["BodyInput"])
    start = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/Record"}
    return start | {"$defs": {name: types[name] for name in sorted(types)}}


def _replaced(schema: Any, part: Any, new: Any) -> Any:
    """Return a schema with ``new`` in every place where it has the union ``part``."""
    if isinstance(schema, dict):
        if schema.get("anyOf") == part["anyOf"]:
            return new | {key: value for key, value in schema.items() if key != "anyOf"}
        return {key: _replaced(value, part, new) for key, value in schema.items()}
    return [_replaced(value, part, new) for value in schema] if isinstance(schema, list | tuple) else schema


def _table(entry: dict[str, Any], description: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": entry, "description": description}


def _or_text(struct: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tensor or an input, which may be written as a text."""
    text = {"type": "string", "pattern": r"^\w+\[[^\]]*\]( .*)?$"}
    return {"title": struct["title"], "description": struct["description"], "anyOf": [text, struct]}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n")
