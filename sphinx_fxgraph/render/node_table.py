"""The node table: one row for each operator of each distinct subgraph, as plain text and as HTML.

A large model has thousands of cells; as text they are written in milliseconds.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sphinx_fxgraph.escape import anchor, xml
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.metrics import macs_of, macs_text, module_path, uncounted
from sphinx_fxgraph.record.model import Node, Record, TensorMeta, join
from sphinx_fxgraph.units import Units, format_shapes
from sphinx_fxgraph.words import _


@dataclass(frozen=True)
class Row:
    """One operator, at the first place where its body is called."""

    path: str
    name: str
    op: str
    """torch.fx's opcode."""
    kind: str
    detail: str
    target: str
    """As torch prints it: of a module or an attribute the path within the whole model."""
    type: str
    """Dotted path of a module's class."""
    arguments: str
    config: str
    """A module's ``extra_repr``."""
    input_shape: str
    output_shape: str
    """Empty where no tensor comes out."""
    dtype: str
    parameters: int | None
    """In elements; None for an operator that is no module or whose parameters have no known size."""
    tied: tuple[tuple[str, str], ...]
    """Parameters that are not in this count, since they are counted elsewhere: name, and the path it is counted at."""
    macs: int | None
    extra_macs: int | None
    """What the convention ``all`` adds."""
    uncounted: tuple[str, ...]
    """Operators that ``macs`` leaves out."""
    connected: tuple[tuple[str, str], ...]
    """Path and name of each operator that takes the result; of one in another body the path stands for the name."""

    @property
    def documented(self) -> str:
        """The dotted path that the documentation of its class or function has; empty where there can be none."""
        if self.op == "call_function":
            return re.sub(r"^torch\._C\._(\w+)\.\1_", r"torch.\1.", self.target)  # as torch names what it binds
        return f"torch.Tensor.{self.target}" if self.op == "call_method" else self.type


@dataclass(frozen=True)
class Rows:
    """The operators of one body in execution order."""

    type: str
    """Dotted path of the class of the module that is called."""
    paths: tuple[str, ...]
    """Every place where the body is called, in execution order; the rows are those of the first."""
    rows: tuple[Row, ...]

    @property
    def parts(self) -> tuple[str, str, str]:
        """Return the heading in three parts: before the name of the class, the name, and after it."""
        places = f" ×{len(self.paths)}" if len(self.paths) > 1 else ""
        return f"{self.paths[0]} ".lstrip(), self.type.rpartition(".")[2], places

    @property
    def heading(self) -> str:
        """Return the heading, ``layer1.0 BasicBlock ×2``."""
        return "".join(self.parts)


def node_rows(record: Record) -> list[Rows]:
    """Return the node table, grouped by body; empty without a graph. Operators have rows, module calls do not."""
    if not record.root:
        return []
    finder = _Finder(record)
    groups = []
    for name, paths in finder.paths.items():
        rows = tuple(finder.row(name, paths[0], node) for node in record.bodies[name].nodes if not node.body)
        if rows:
            groups.append(Rows(record.bodies[name].type, tuple(paths), rows))
    return groups


def body_paths(record: Record) -> Mapping[str, Sequence[str]]:
    """Return the paths where each body is called, in execution order, outer bodies first."""
    paths: defaultdict[str, list[str]] = defaultdict(list, {record.root: [""]} if record.root else {})
    for path, _body, node in record.walk() if record.root else ():
        if node.body:
            paths[node.body].append(join(path, node.name))
    return paths


class _Finder:
    """Makes the rows of a record; finds users across the borders of bodies."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.paths = body_paths(record)
        self.users: dict[str, dict[Value, list[tuple[Node, int]]]] = {}
        """By body: who takes a value, and as which of its inputs."""
        self.calls: dict[str, tuple[str, str, str]] = {}
        """By body: body, path and call node of its first caller. That one is at its own first place too."""
        for name, body in record.bodies.items():
            users = self.users.setdefault(name, defaultdict(list))
            for node in body.nodes:
                for number, value in enumerate(node.inputs):
                    users[value].append((node, number))
        for name in self.paths:
            for node in record.bodies[name].nodes:
                if node.body and self.paths[node.body][0] == join(self.paths[name][0], node.name):
                    self.calls[node.body] = (name, self.paths[name][0], node.name)

    def row(self, body: str, path: str, node: Node) -> Row:
        """Return the row of one operator."""
        given = [self.record.metas(self.record.bodies[body], value) for value in node.inputs]
        target = _target(path, node)
        owned = [meta for meta in node.parameters if join(target, meta.path) not in self.record.ties]
        ties = ((meta.path, self.record.ties.get(join(target, meta.path), "")) for meta in node.parameters)
        return Row(
            path=join(path, node.name),
            name=node.name,
            op=node.op,
            kind=node.kind,
            detail=node.detail,
            target=target,
            type=node.type,
            arguments=self.record.arguments(self.record.bodies[body], node),
            config=node.config,
            input_shape=", ".join(map(format_shapes, filter(None, given))),
            output_shape=format_shapes(node.outputs),
            dtype=", ".join(dict.fromkeys(meta.dtype for meta in node.outputs)),
            parameters=_elements(owned) if node.op == "call_module" else None,
            tied=tuple((name, counted) for name, counted in ties if counted),
            macs=node.macs,
            extra_macs=node.extra_macs,
            uncounted=uncounted(node.marks),
            connected=tuple(dict.fromkeys(self._users_of(body, path, Value(node.name)))),
        )

    def _users_of(self, body: str, path: str, value: Value) -> Iterator[tuple[str, str]]:
        """Yield path and name of each operator that a value reaches, also through the outputs of the body."""
        for user in self._inside(body, path, value):
            name = user.removeprefix(f"{path}.")
            yield user, name if name in self.record.bodies[body].by_name else user
        if body in self.calls:
            outer, outer_path, call = self.calls[body]
            for number, output in enumerate(self.record.bodies[body].outputs):
                if output == value:
                    yield from ((user, user) for user, _ in self._users_of(outer, outer_path, Value(call, number)))

    def _inside(self, body: str, path: str, value: Value) -> Iterator[str]:
        """Yield the paths of the operators that a value reaches in a body and in the bodies that it calls."""
        for node, number in self.users[body].get(value, ()):
            if not node.body:
                yield join(path, node.name)
                continue
            yield from self._inside(node.body, join(path, node.name), Value("", number))
            for output, passed in enumerate(self.record.bodies[node.body].outputs):
                if passed == Value("", number):
                    yield from self._inside(body, path, Value(node.name, output))


def _target(path: str, node: Node) -> str:
    if node.op not in ("call_module", "get_attr"):
        return node.target
    return module_path(re.sub(r"@\d+", "", path), node)


def _elements(tensors: Sequence[TensorMeta]) -> int | None:
    sizes = [size for meta in tensors for size in meta.shape]
    if not all(isinstance(size, int) for size in sizes):
        return None
    return sum(math.prod(size for size in meta.shape if isinstance(size, int)) for meta in tensors)


def _parameters(row: Row, units: Units) -> str:
    """Return the cell of parameters: the count, and the ties that it leaves out."""
    count = "" if row.parameters is None else units.count(row.parameters)
    tied = ", ".join(f"{name} is {counted}" for name, counted in row.tied)
    return f"{count} ({tied})" if tied else count


def _macs(row: Row, units: Units) -> str:
    macs = macs_of(row, units.convention)
    return macs_text(None if macs is None else units.count(macs), row.uncounted)


TEXTS: dict[str, Callable[[Row, Units], str]] = {
    "name": lambda row, _: row.name,
    "op": lambda row, _: f"{row.op} {row.kind}" if row.type else row.op,
    "target": lambda row, _: row.target,
    "arguments": lambda row, _: row.arguments,
    "input shape": lambda row, _: row.input_shape,
    "output shape": lambda row, _: row.output_shape,
    "dtype": lambda row, _: row.dtype,
    "parameters": _parameters,
    "MACs": _macs,
    "connected to": lambda row, _: ", ".join(name for _, name in row.connected),
}
"""By column the text of a cell; the columns are declared in `sphinx_fxgraph.options.COLUMNS`."""


Written = Callable[[str, str], str]
"""Takes the dotted path of a class or function and its name, and gives HTML, such as a link to its documentation."""


def node_table(
    groups: Sequence[Rows],
    columns: Sequence[str],
    units: Units,
    *,
    prefix: str,
    drawn: Callable[[str], str],
    written: Written = lambda _, name: xml(name),
) -> str:
    """Return the table as HTML with the classes of docutils, so that themes know it.

    Args:
        groups: the rows of each body.
        columns: names, see `columns.COLUMNS`.
        units: how numbers are written, and what counts as a MAC.
        prefix: what all ids start with.
        drawn: the id in the drawing that the row of a path leads to.
        written: how a class or function is written.
    """
    cells = _Cells(prefix, units, drawn, written)
    rows = []
    for group in groups:
        if len(groups) > 1:
            rows.append(("fxg-body ", "", [f'<td colspan="{len(columns)}">{cells.heading(group)}</td>']))
        for row in group.rows:
            texts = [cells.text(column, row) for column in columns]
            texts[0] += cells.others(row, group)
            rows.append(("", f' id="{anchor(cells.rows, row.path)}"', [f"<td>{text}</td>" for text in texts]))
    return "".join(html_table("fxg-nodes", columns, rows))


def html_table(kind: str, heads: Sequence[str], rows: Iterable[tuple[str, str, Iterable[str]]]) -> Iterator[str]:
    """Yield the HTML of a table.

    Args:
        kind: the class.
        heads: names of the columns.
        rows: of each the classes of its own, other attributes, and cells.
    """
    yield f'<table class="{kind} docutils align-default">\n<thead>\n<tr class="row-odd">'
    yield "".join(f'<th class="head">{xml(_(head))}</th>' for head in heads) + "</tr>\n</thead>\n<tbody>\n"
    for number, (classes, attributes, cells) in enumerate(rows):
        parity = "odd" if number % 2 else "even"
        yield f'<tr class="{classes}row-{parity}"{attributes}>{"".join(cells)}</tr>\n'
    yield "</tbody>\n</table>\n"


class _Cells:
    """Writes the cells of one table."""

    def __init__(self, prefix: str, units: Units, drawn: Callable[[str], str], written: Written) -> None:
        self.rows = f"{prefix}-row"
        self._units = units
        self._drawn = drawn
        self._written = written

    def text(self, column: str, row: Row) -> str:
        """Return the content of a cell."""
        if column == "name":
            return _link(self._drawn(row.path), row.name)
        if column == "op" and row.type:
            return f"{row.op} {self._written(row.type, row.kind)}"
        if column == "target" and row.documented and not row.type:
            return self._written(row.documented, row.target)
        if column == "connected to":
            return ", ".join(_link(anchor(self.rows, path), name) for path, name in row.connected)
        return xml(TEXTS[column](row, self._units))

    def heading(self, group: Rows) -> str:
        """Return the heading of a group, the name of the class as a link."""
        before, kind, after = group.parts
        return xml(before) + (self._written(group.type, kind) if kind else "") + xml(after)

    def others(self, row: Row, group: Rows) -> str:
        """Return ids of the row for all other places where its body is called."""
        inside = row.path.removeprefix(group.paths[0]).lstrip(".")
        return "".join(f'<span id="{anchor(self.rows, join(path, inside))}"></span>' for path in group.paths[1:])


def _link(name: str, text: str) -> str:
    return f'<a class="reference internal" href="#{name}">{xml(text)}</a>'
