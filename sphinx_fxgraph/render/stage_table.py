"""The stages of a model as papers print them: blocks and repeats, output size, parameters; several side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.metrics import module_path, uncounted
from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta, join
from sphinx_fxgraph.units import format_shapes

_NEARLY_ALL = 0.8
"""Of the parameters: a module with that share is a wrapper, ..."""
_FEWEST_SIZES = 3
"""... and a Sequential with results of so many shapes."""
_MOST_BLOCKS = 3


@dataclass(frozen=True)
class Stage:
    """One row of the table.

    Attributes:
        name: the path of the module, or of the first and the last of several.
        paths: of all modules in it.
        blocks: what it is made of, in order: each block's kind and how often it stands there in a row.
        output: the shape of what comes out.
        parameters: in elements; a module that is called again counts once.
        macs: multiply-accumulate operations of all its calls, where it has any.
        extra_macs: what the convention ``all`` adds.
        uncounted: the operators that ``macs`` leaves out.
    """

    name: str
    paths: tuple[str, ...]
    blocks: tuple[tuple[str, int], ...]
    output: str
    parameters: int
    macs: int | None = None
    extra_macs: int | None = None
    uncounted: tuple[str, ...] = ()

    @property
    def made_of(self) -> str:
        """Return the blocks as text: ``BasicBlock ×2``."""
        shown = [f"{kind} ×{count}" if count > 1 else kind for kind, count in self.blocks[:_MOST_BLOCKS]]
        return ", ".join([*shown, *(["…"] if len(self.blocks) > _MOST_BLOCKS else [])])


@dataclass(frozen=True)
class _Call:
    """A module call that is a stage by itself or a part of one."""

    path: str
    module: str
    """The path of what is called; the same for each call."""
    node: Node
    outputs: tuple[TensorMeta, ...]


def stages(record: Record) -> list[Stage]:
    """Return the rows, and a last one for parameters that are in no stage; empty where nothing ran."""
    if not record.root:
        return []
    counts = _Counts(record)
    calls = list(_calls(record, counts, record.root, ""))
    rows = [counts.stage(list(run)) for _, run in groupby(calls, key=_alike)]
    rest = record.totals.parameters - sum(row.parameters for row in rows)
    if rest > 0:
        rows.append(Stage("", (), (("other parameters", 1),), "", rest))
    return rows


def _calls(record: Record, counts: _Counts, name: str, path: str) -> Iterator[_Call]:
    body = record.bodies[name]
    for node in _modules(body):
        inside, module = join(path, node.name), module_path(re.sub(r"@\d+", "", path), node)
        if node.body and (counts.of(module) > _NEARLY_ALL * record.totals.parameters or _changes(record, node)):
            found = list(_calls(record, counts, node.body, inside))
            if len(found) == 1 or len({_alike(call) for call in found}) > 1:
                yield from found
                continue
        yield _Call(inside, module, node, _outputs(record, body, node))


def _modules(body: Body) -> list[Node]:
    return [node for node in body.nodes if node.op == "call_module"]


def _changes(record: Record, node: Node) -> bool:
    body = record.bodies[node.body]
    shapes = {format_shapes(_outputs(record, body, inner)) for inner in _modules(body)}
    return node.kind == "Sequential" and len(shapes) >= _FEWEST_SIZES


def _outputs(record: Record, body: Body, node: Node) -> tuple[TensorMeta, ...]:
    count = len(record.bodies[node.body].outputs) if node.body else 1
    return tuple(meta for k in range(count) for meta in record.metas(body, Value(node.name, k)))


def _alike(call: _Call) -> object:
    """Return the key that neighbouring calls of one stage share.

    Those are operators that do not change the shape, and the entries of a list of blocks.
    """
    shape = format_shapes(call.outputs)
    if not call.node.body:
        return (call.path.rpartition(".")[0], shape)
    return (re.sub(r"\d+", "#", call.path), call.node.type, shape)


class _Counts:
    """Counts parameters and MACs by module path, each parameter once."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.left = {module.path: module.parameters for module in record.modules}
        self.sums: dict[tuple[str, str], int | None] = {}
        self.left_out: dict[str, frozenset[str]] = {}

    def of(self, path: str) -> int:
        """Return the number of parameters of a module with all modules in it."""
        return sum(count for inner, count in self.left.items() if _is_in(inner, path))

    def stage(self, calls: Sequence[_Call]) -> Stage:
        """Return the stage of calls with one key."""
        first, last = calls[0].path, calls[-1].path
        parameters = 0
        for call in calls:
            inside = [inner for inner in self.left if _is_in(inner, call.module)]
            parameters += sum(self.left.pop(inner) for inner in inside)
        return Stage(
            name=_span(first, last),
            paths=tuple(call.path for call in calls),
            blocks=tuple(_blocks(self.record, calls)),
            output=format_shapes(calls[-1].outputs),
            parameters=parameters,
            macs=_sum(self._of(call.node, "macs") for call in calls),
            extra_macs=_sum(self._of(call.node, "extra_macs") for call in calls),
            uncounted=tuple(sorted(set().union(*(self._uncounted(call.node) for call in calls)))),
        )

    def _uncounted(self, node: Node) -> frozenset[str]:
        if not node.body:
            return frozenset(uncounted(node.marks))
        if node.body not in self.left_out:
            nodes = self.record.bodies[node.body].nodes
            self.left_out[node.body] = frozenset[str]().union(*map(self._uncounted, nodes))
        return self.left_out[node.body]

    def _of(self, node: Node, what: str) -> int | None:
        if not node.body:
            found: int | None = getattr(node, what)
            return found
        if (node.body, what) not in self.sums:
            nodes = self.record.bodies[node.body].nodes
            self.sums[node.body, what] = _sum(self._of(inner, what) for inner in nodes)
        return self.sums[node.body, what]


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number]
    return sum(known) if known else None


def _is_in(path: str, module: str) -> bool:
    return not module or path == module or path.startswith(f"{module}.")


def _span(first: str, last: str) -> str:
    """Return the name of a stage, ``layers.0 … 31``; of calls of one module its path."""
    if re.sub(r"@\d+", "", first) == re.sub(r"@\d+", "", last):
        return first
    common = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    start = "".join(letter for letter, _ in common).rstrip("0123456789")
    return f"{first} … {last.removeprefix(start)}"


def _blocks(record: Record, calls: Sequence[_Call]) -> list[tuple[str, int]]:
    """Return the blocks of calls in order; a call that repeats a block or only holds others is replaced by them."""
    if len(calls) == 1 and calls[0].node.body:
        inside = _runs(_modules(record.bodies[calls[0].node.body]))
        repeats = any(count > 1 and node.body and node.kind != "Sequential" for node, count in inside)
        if inside and (calls[0].node.kind == "Sequential" or (repeats and len(inside) <= _MOST_BLOCKS)):
            return [(_kind(node), count) for node, count in inside]
    return [(_kind(node), count) for node, count in _runs([call.node for call in calls])]


def _runs(nodes: Sequence[Node]) -> list[tuple[Node, int]]:
    runs = [list(run) for _, run in groupby(nodes, key=_kind)]
    return [(run[0], len(run)) for run in runs]


def _kind(node: Node) -> str:
    return node.kind if node.body else f"{node.kind} {node.detail}".rstrip()


def align_stages(models: Sequence[Sequence[Stage]]) -> list[tuple[str, list[Stage | None]]]:
    """Return a row for each named stage: that stage of each model, or None where a model has none.

    Stages are the same if they start at the same module: ``layers.0 … 11`` of one model is ``layers.0 … 23`` of a
    deeper one, and the row is called as in the first. The order is that of the first model; what only others have
    stands where it stands in them.
    """
    named = [{stage.paths[0]: stage for stage in stages if stage.paths} for stages in models]
    order: list[str] = []
    for stages in named:
        place = 0
        for start in stages:
            if start in order:
                place = max(place, order.index(start) + 1)
            else:
                order.insert(place, start)
                place += 1
    rows = [(start, [stages.get(start) for stages in named]) for start in order]
    return [(next(stage.name for stage in found if stage), found) for _, found in rows]
