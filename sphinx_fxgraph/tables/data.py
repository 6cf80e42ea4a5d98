"""The node table as data for the viewer: what its panel, its search and its tables show of each node.

Rows and modules are lists, since a large model has thousands; `viewer/src/data.js` names their entries.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sphinx_fxgraph.record.conventions import macs_of
from sphinx_fxgraph.record.metrics import Measures, by_call, module_path
from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta, Value, join
from sphinx_fxgraph.tables.rows import Row, body_paths, node_rows
from sphinx_fxgraph.text.shapes import format_shape
from sphinx_fxgraph.text.units import Units

Locate = Callable[[str, str], tuple[str, str]]
"""Takes the class of a module and the function and line within it, and returns file and line, and an address."""


def node_data(
    record: Record,
    units: Units,
    *,
    columns: Sequence[str] = (),
    links: Mapping[str, str] | None = None,
    locate: Locate = lambda _, where: (where, ""),
) -> dict[str, Any]:
    """Return the nodes and modules of a graph as plain data; empty without a graph.

    Args:
        record: the model.
        units: how numbers are written, and what counts as a MAC.
        columns: those of the node table; none if the page does not show it.
        links: by the dotted path of a class the address of its documentation.
        locate: finds the source of a node.
    """
    groups = node_rows(record)
    return _Collector(record, units, locate).data(columns, links or {}) if groups else {}


class _Collector:
    def __init__(self, record: Record, units: Units, locate: Locate) -> None:
        self.record, self.units, self.locate = record, units, locate
        self.measures = by_call(record, units.convention)
        self.types: dict[str, int] = {}
        self.sources: dict[str, str] = {}
        self.calls: defaultdict[str, list[str]] = defaultdict(list)
        """By module: the paths of its calls."""
        for path, _, node in record.walk():
            if node.op == "call_module":
                self.calls[_module(path, node)].append(join(path, node.name))

    def data(self, columns: Sequence[str], links: Mapping[str, str]) -> dict[str, Any]:
        """Return everything."""
        bodies = {paths[0]: name for name, paths in body_paths(self.record).items()}
        groups = []
        for group in node_rows(self.record):
            body = self.record.bodies[bodies[group.paths[0]]]
            rows = [self._row(row, body, group.paths[0]) for row in group.rows]
            groups.append({"t": self._type(group.type), "p": list(group.paths), "r": rows})
        modules = list(self._modules(self.record.root, ""))
        totals = self.measures[""]
        return {
            "format": self.units.format,
            "totals": [totals.parameters, totals.macs, totals.activation_bytes],
            "types": list(self.types),
            "links": {self.types[type_]: link for type_, link in links.items() if type_ in self.types},
            "sources": self.sources,
            "columns": list(columns),
            "groups": groups,
            "modules": modules,
        }

    def _type(self, type_: str) -> int:
        return self.types.setdefault(type_, len(self.types)) if type_ else -1

    def _row(self, row: Row, body: Body, place: str) -> list[Any]:
        node = body.by_name[row.name]
        inputs = [tensor for value in node.inputs for tensor in self._tensors(body, value)]
        users = [name if path == join(place, name) else f"/{path}" for path, name in row.connected]
        return [
            row.name,
            row.op,
            row.kind,
            row.detail,
            self._type(row.type),
            row.target,
            "" if row.arguments == ", ".join(tensor[0] for tensor in inputs) else row.arguments,
            row.config,
            inputs,
            [[meta.path, *_shape(meta)] for meta in node.outputs],
            row.parameters,
            ", ".join(f"{name} is {counted}" for name, counted in row.tied),
            macs_of(node, self.units.convention),
            self.measures.get(row.path, Measures()).activation_bytes,
            self._where(body.type, node.where),
            users,
            "\n".join(self._remarks(row.path, node, place)),
        ]

    def _tensors(self, body: Body, value: Value, name: str = "") -> Iterator[list[str]]:
        name = name or value.node or body.inputs[value.output].name
        for meta in self.record.metas(body, value):
            yield [name + (meta.path if len(self.record.metas(body, value)) > 1 else ""), *_shape(meta)]

    def _modules(self, name: str, path: str) -> Iterator[list[Any]]:
        """Yield the module calls in a body, each before those within it."""
        body = self.record.bodies[name]
        for node in body.nodes:
            if not node.body:
                continue
            place, inner = join(path, node.name), self.record.bodies[node.body]
            measures = self.measures[place]
            names = [given.name for given in inner.inputs]
            yield [
                place,
                self._type(node.type),
                measures.parameters,
                measures.macs,
                measures.activation_bytes,
                [tensor for k, value in enumerate(node.inputs) for tensor in self._tensors(body, value, names[k])],
                [
                    ["", *_shape(meta)]
                    for k in range(len(inner.outputs))
                    for meta in self.record.metas(body, Value(node.name, k))
                ],
                "\n".join(self._remarks(place, node, path)),
            ]
            self._where(node.type, "")
            yield from self._modules(node.body, place)

    def _where(self, type_: str, where: str) -> str:
        text, address = self.locate(type_, where)
        if address:
            self.sources[text if where else type_] = address
        return text

    def _remarks(self, path: str, node: Node, around: str) -> Iterator[str]:
        yield from node.marks
        calls = self.calls[_module(around, node)] if node.op == "call_module" else []
        if len(calls) > 1:
            others = [call for call in calls if call != path]
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            weights = self.measures[path].parameters or self.measures[path].buffers
            yield f"{'shares its weights with' if weights else 'the same module as'} {', '.join(others[:3])}{more}"


def _module(around: str, node: Node) -> str:
    return module_path(re.sub(r"@\d+", "", around), node)


def _shape(meta: TensorMeta) -> tuple[str, str]:
    return format_shape(meta), meta.dtype
