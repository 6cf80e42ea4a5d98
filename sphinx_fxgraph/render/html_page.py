"""Write a self-contained HTML page: drawing, facts, stages, node table, and the viewer's script, style and data."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from sphinx_fxgraph.escape import ids, json_block, nearest, xml
from sphinx_fxgraph.options import COLUMNS
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.metrics import Measures, by_call, macs_of, macs_text, module_path
from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta, join
from sphinx_fxgraph.render import colors, document, summary
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.render.colors import DARK, LIGHT
from sphinx_fxgraph.render.node_table import Row, Rows, body_paths, html_table, node_rows, node_table
from sphinx_fxgraph.render.stage_table import stages
from sphinx_fxgraph.units import PLAIN, Units, format_shape

Locate = Callable[[str, str], tuple[str, str]]
"""Takes the class of a module and the function and line within it, and returns file and line, and an address."""


def node_data(
    record: Record,
    units: Units,
    *,
    columns: Sequence[str] = (),
    links: Mapping[str, str] | None = None,
    locate: Locate = lambda _, where: (where, ""),
    measures: Mapping[str, Measures] | None = None,
) -> dict[str, Any]:
    """Return the nodes and modules of a graph as plain data; empty without a graph.

    Args:
        record: the model.
        units: how numbers are written, and what counts as a MAC.
        columns: those of the node table; none if the page does not show it.
        links: by the dotted path of a class or function the address of its documentation.
        locate: finds the source of a node.
        measures: those of `by_call`, if they are known already.
    """
    groups = node_rows(record)
    if not groups:
        return {}
    measures = by_call(record, units.convention) if measures is None else measures
    return _Collector(record, units, locate, measures).data(groups, columns, links or {})


class _Collector:
    def __init__(self, record: Record, units: Units, locate: Locate, measures: Mapping[str, Measures]) -> None:
        self.record, self.units, self.locate, self.measures = record, units, locate, measures
        self.types: dict[str, int] = {}
        self.sources: dict[str, str] = {}
        self.calls: defaultdict[str, list[str]] = defaultdict(list)
        """By module: the paths of its calls."""
        for path, _, node in record.walk():
            if node.op == "call_module":
                self.calls[_module(path, node)].append(join(path, node.name))

    def data(self, rows: Sequence[Rows], columns: Sequence[str], links: Mapping[str, str]) -> dict[str, Any]:
        """Return everything."""
        bodies = {paths[0]: name for name, paths in body_paths(self.record).items()}
        groups = []
        for group in rows:
            body = self.record.bodies[bodies[group.paths[0]]]
            data = [self._row(row, body, group.paths[0]) for row in group.rows]
            groups.append({"t": self._type(group.type), "p": list(group.paths), "r": data})
        modules = list(self._modules(self.record.root, ""))
        totals = self.measures[""]
        return {
            "format": self.units.format,
            "totals": [totals.parameters, totals.macs, totals.activation_bytes],
            "types": list(self.types),
            "links": {self.types[type_]: link for type_, link in links.items() if type_ in self.types},
            "functions": {
                f"{row.op} {row.target}": links[row.documented]
                for group in rows
                for row in group.rows
                if not row.type and row.documented in links
            },
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


_STATIC = Path(__file__).parents[1] / "static"
_FIGURE = "fx"


def page(job: compose.Job, title: str) -> str:
    """Return the page of a picture that is laid out.

    Args:
        job: with the insides of closed modules, if they should open.
        title: of the page.

    Raises:
        ValueError: the job is not laid out yet.
    """
    record = job.record
    picture = compose.scene(job)
    drawing = document.page_svg(picture, figure=_FIGURE, title=title, description=summary.describe(record), rows=True)
    insides = compose.insides(job)
    found = {name: document.inside_svg(inside, figure=_FIGURE, rows=True) for name, inside in insides.items()}
    groups = node_rows(record)
    near = functools.partial(nearest, prefix=_FIGURE, drawn=ids(drawing), figure=_FIGURE)
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=xml(title),
        paper=LIGHT.paper,
        ink=LIGHT.ink,
        dark_paper=DARK.paper,
        dark_ink=DARK.ink,
        style=(_STATIC / "fxgraph.css").read_text(encoding="utf-8"),
        figure=_FIGURE,
        tracer=xml(record.tracer),
        verdict=xml(record.verdict.kind if record.verdict else ""),
        drawing=drawing,
        data=_block("insides", found) + _block("nodes", node_data(record, PLAIN, columns=COLUMNS)),
        legend=colors.html_list(picture, (inside.picture for inside in insides.values())),
        facts=xml(" · ".join([*summary.facts(record, left_out=job.left_out), *filter(None, [compose.remark(job)])])),
        stages=_stages(record),
        rows=sum(len(group.rows) for group in groups),
        nodes=node_table(groups, COLUMNS, PLAIN, prefix=_FIGURE, drawn=near),
        nodes_script=(_STATIC / "fxgraph-nodes.js").read_text(encoding="utf-8"),
        script=(_STATIC / "fxgraph.js").read_text(encoding="utf-8"),
    )


def _block(name: str, value: object) -> str:
    return f'<script type="application/json" class="fxg-{name}">{json_block(value)}</script>' if value else ""


def _stages(record: Record) -> str:
    rows = [
        (
            stage.name,
            stage.made_of,
            stage.output,
            f"{stage.parameters:,}",
            macs_text(f"{stage.macs:,}" if stage.macs else None, stage.uncounted),
        )
        for stage in stages(record)
    ]
    cells = (("", "", [f"<td>{xml(text)}</td>" for text in row]) for row in rows)
    return "".join(html_table("fxg-stages", ("stage", "blocks", "output shape", "parameters", "MACs"), cells))
