"""The record of a capture: plain frozen data that travels between the rooms and round-trips through JSON.

A record holds no torch object, no absolute path, no time, no memory id and no tensor value: the same model, spec and
torch give the same bytes on any machine, so that a git diff of two records is a diff of two architectures. What does
depend on the machine stands in ``made_by``, which digests and diffs leave out.

The traced graph is stored as *bodies*. A body is the inside of a module call, written like a function: inputs, nodes in
execution order, outputs. Equal bodies are stored once and named after their class.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from sphinx_fxgraph.record import codec, older
from sphinx_fxgraph.record.arguments import (
    Argument,
    Value,  # it is found here too
    format_call,
    map_argument,
)
from sphinx_fxgraph.record.checks import check_references
from sphinx_fxgraph.record.header import SCHEMA, Failure, RecordError, Source, decoded

Dim = int | str
"""One dimension: a size, or the name of a symbolic size."""
Op = Literal["placeholder", "get_attr", "call_module", "call_function", "call_method", "output", "group", "rows"]
"""torch.fx's opcodes; ``group`` and ``rows`` are stretches of a body that are drawn as one box."""
VerdictKind = Literal["same", "sizes", "path"]
"""What holds for other input values: the same graph; the same operators, sizes depend on values; only this one path."""


class TensorMeta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The metadata of a tensor: shape, dtype, flags; never its values."""

    shape: tuple[Dim, ...]
    dtype: str
    """torch's abbreviation: ``f32``, ``bf16``, ``i64``, ``b8``."""
    path: str = ""
    """Where it stands in a nested result: ``''`` the result itself, ``[0]``, ``['out']``, ``.logits``; the attribute
    name where this describes a parameter or a buffer."""
    device: str = ""
    """Only where it is not the device of the capture."""


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call in a body: an operator, or a module call that has a body of its own."""

    name: str
    """Unique in its body; ``relu@2`` is the second call of ``relu`` there."""
    op: Op
    """torch.fx's opcode."""
    target: str
    """As torch prints it; for a module or an attribute the dotted path below the owner of the body (a leading ``/``
    means below the root model)."""
    kind: str
    """The short name that a box shows: ``Conv2d``, ``add``, ``parameter``, ``input``."""
    type: str = ""
    """Dotted path of a module's class, ``torch.nn.modules.conv.Conv2d``."""
    base: str = ""
    """Name of the nearest torch.nn base class where the class is not torch's own."""
    detail: str = ""
    """What a box adds to the kind: ``7×7 s2``, ``512→1000``."""
    body: str = ""
    """The body of a module call whose inside was traced; empty for an operator."""
    args: tuple[Argument, ...] = ()
    kwargs: Mapping[str, Argument] = {}
    """The arguments, as data: see `arguments`."""
    config: str = ""
    """A leaf module's ``extra_repr``."""
    inputs: tuple[Value, ...] = ()
    """The values that go in, in order of first use, each once."""
    outputs: tuple[TensorMeta, ...] = ()
    """The tensors in the result; empty where it holds none, and for a node with a body (see `Record.metas`)."""
    result: str = ""
    """The result as short text where it is not one tensor: ``Size([16, 16])``, ``(f32[1, 2], f32[1, 2])``."""
    parameters: tuple[TensorMeta, ...] = ()
    buffers: tuple[TensorMeta, ...] = ()
    """A leaf module's own, by name."""
    inplace: bool = False
    macs: int | None = None
    """Multiply-accumulate operations, where the operator has any."""
    extra_macs: int | None = None
    """What the convention ``all`` counts beside: norms, pooling, resizing."""
    where: str = ""
    """Function that called it and the line within that function, ``BasicBlock.forward:12``."""
    marks: tuple[str, ...] = ()
    """Regions and remarks: ``no_grad``, ``autocast bf16``, ``not registered``, ``dead``, ``failed``,
    ``not counted: cholesky``."""

    @property
    def has_tensor(self) -> bool:
        """Return whether a tensor is in the result (an operator's; ask `Record.metas` for a node with a body)."""
        return bool(self.outputs)

    def rewired(self, new: Mapping[Value, Value]) -> Node:
        """Return this node with other values: those that ``new`` has a new one for, also in the arguments."""

        def change(argument: Argument) -> Argument:
            return new.get(argument, argument) if isinstance(argument, Value) else argument

        inputs = tuple(new.get(value, value) for value in self.inputs)
        return replace(
            self,
            # A module call has one input for each of its body's; an operator takes each value once.
            inputs=inputs if self.body else tuple(dict.fromkeys(inputs)),
            args=tuple(map_argument(argument, change) for argument in self.args),
            kwargs={key: map_argument(argument, change) for key, argument in self.kwargs.items()},
        )


class BodyInput(msgspec.Struct, frozen=True, omit_defaults=True):
    """One input of a body: the parameter of ``forward`` it arrives by, and the tensors in it."""

    name: str
    tensors: tuple[TensorMeta, ...] = ()


class Body(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """The inside of a module call. The root body has no inputs: its placeholders are nodes."""

    type: str
    inputs: tuple[BodyInput, ...] = ()
    nodes: tuple[Node, ...] = ()
    outputs: tuple[Value, ...] = ()
    """The values used outside; a ``Value("", k)`` is an input passed straight through."""

    @functools.cached_property
    def by_name(self) -> Mapping[str, Node]:
        """The nodes by their names."""
        return {node.name: node for node in self.nodes}


class Module(msgspec.Struct, frozen=True, omit_defaults=True):
    """One module of the model, by path. Counts are of its own tensors, without its children's, in elements.

    A tensor that is registered again counts where it is registered first.
    """

    path: str
    type: str
    body: str = ""
    parameters: int = 0
    trainable: int = 0
    buffers: int = 0
    bytes: int = 0
    """Of parameters and buffers."""


class Totals(msgspec.Struct, frozen=True, omit_defaults=True):
    """The totals of a model. Each tensor counts once, however often it is registered.

    parameters, trainable and buffers in elements; bytes of parameters and buffers; macs in multiply-accumulate
    operations of convolutions, matrix products and attention; activation_bytes the sum of all operators' outputs;
    extra_macs what the convention ``all`` counts beside.
    """

    parameters: int = 0
    trainable: int = 0
    buffers: int = 0
    bytes: int = 0
    macs: int | None = None
    activation_bytes: int | None = None
    extra_macs: int | None = None
    dtypes: Mapping[str, int] = {}
    """Elements of the parameters by their dtype."""
    uncounted: Mapping[str, int] = {}
    """Operators that ``macs`` leaves out, since there is no formula for them: their MACs in another convention by name,
    0 where that is unknown. The nodes that run them have a mark, ``not counted: cholesky``."""


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """For which input values the graph holds, with the reason and its place in the source.

    ``kind`` is ``same`` (graph for every value), ``sizes`` (same operators, sizes depend on values) or ``path`` (one
    path, as run).
    """

    kind: VerdictKind
    reason: str = ""
    file: str = ""
    line: int = 0


class Remark(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that a reader should know of a graph, found by a check of every capture."""

    kind: str
    """What a check found.

    ``random`` (a generator other than torch's), ``sizes`` (that depend on values), ``reads`` (of values), ``numbers``
    (read, and used where no edge shows), ``unread`` (written and never read) or ``unreached`` (by no input).
    """
    text: str
    """What it is about: a function, an operator, an output."""
    file: str = ""
    """Package-relative, as in `Source`."""
    line: int = 0


class Record(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """All that is known of one captured model."""

    spec: Mapping[str, Any]
    tracer: str
    root: str = ""
    bodies: Mapping[str, Body] = {}
    modules: tuple[Module, ...] = ()
    ties: Mapping[str, str] = {}
    """A tensor that is registered again: its path -> the path it is counted at."""
    totals: Totals = Totals()
    output: str = ""
    """Structure of what the model returns, ``{'out': f32[1, 21, 8, 8]}``."""
    verdict: Verdict | None = None
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()
    sources: tuple[Source, ...] = ()
    distributions: Mapping[str, str] = {}
    """Installed distributions whose code the model is made of -> release version without its local part."""
    made_by: Mapping[str, str] = {}
    schema: int = SCHEMA

    # -- reading

    def metas(self, body: Body, value: Value) -> tuple[TensorMeta, ...]:
        """The tensors in a value of ``body``; empty where no tensor flows."""
        while True:
            if not value.node:
                return body.inputs[value.output].tensors
            node = body.by_name[value.node]
            if not node.body:
                return node.outputs
            inner = self.bodies[node.body]
            following = inner.outputs[value.output]
            if not following.node:  # passed straight through: go on outside, with what the call was given
                value = node.inputs[following.output]
            else:
                body, value = inner, following

    def name(self, body: Body, value: Value) -> str:
        """Return what a value is called in the arguments of a body: the node's name, ``lstm[1]`` for one of several."""
        if not value.node:
            return body.inputs[value.output].name if value.output < len(body.inputs) else "input"
        node = body.by_name.get(value.node)
        inner = self.bodies.get(node.body) if node and node.body else None
        return f"{value.node}[{value.output}]" if inner and len(inner.outputs) > 1 else value.node

    def arguments(self, body: Body, node: Node) -> str:
        """Return the arguments of a node of ``body`` as text, ``conv, 1, dim=2``."""
        return format_call(node.args, node.kwargs, functools.partial(self.name, body))

    def walk(self, name: str | None = None, path: str = "") -> Iterator[tuple[str, Body, Node]]:
        """Every node of every module call in execution order as (path of the body, body, node)."""
        body = self.bodies[self.root if name is None else name]
        for node in body.nodes:
            yield path, body, node
            if node.body:
                yield from self.walk(node.body, join(path, node.name))

    def paths(self) -> Iterator[str]:
        """The path of every node of every module call, in execution order."""
        return (join(path, node.name) for path, _, node in self.walk()) if self.root else iter(())

    @functools.cached_property
    def operators(self) -> int:
        """How many operators run, inputs and outputs included, repeated bodies counted each time."""
        return sum(1 for _, _, node in self.walk() if not node.body) if self.root else 0

    # -- JSON

    def to_json(self) -> str:
        """The record as text: sorted keys, one node, module or source a line."""
        return codec.encode(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Record:
        """Read what `to_json` wrote.

        Raises:
            RecordError: the text is torn, foreign or written by a later version.
        """
        record = decoded(text, _read)
        try:
            check_references(record)
        except (ValueError, RecursionError) as error:
            raise RecordError(str(error)) from error
        return record

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of everything but ``made_by``: two records with one digest describe the same architecture."""
        told = f"{self.schema}\n{replace(self, made_by={}).to_json()}"
        return hashlib.sha256(told.encode()).hexdigest()


def _read(text: str | bytes) -> Record:
    plain = msgspec.json.decode(text)
    if isinstance(plain, dict) and plain.get("schema", SCHEMA) in range(1, SCHEMA):
        plain = older.convert(plain)
    elif isinstance(plain, dict):
        plain = codec.lengthen(plain)
    return msgspec.convert(plain, Record)


def join(path: str, name: str) -> str:
    """The path of something called ``name`` inside the module at ``path``."""
    return f"{path}.{name}" if path else name


Role = Literal["function", "parameter", "saved", "base", "output"]


@dataclass(frozen=True)
class Edge:
    """From where something comes: ``flow`` along which gradients go back, a tensor that is ``saved``, a ``view``."""

    source: str
    kind: Literal["flow", "saved", "view"] = "flow"


@dataclass(frozen=True)
class BackwardNode:
    """One box."""

    name: str
    """``n1``, ``n2``, ...: it says nothing of the model."""
    role: Role
    title: str
    """``AddmmBackward0``, ``layer1.0.weight``, ``output['loss']``."""
    lines: tuple[str, ...] = ()
    """``f32[1, 64]``, ``scalar f32``, a remark."""
    attributes: tuple[tuple[str, str], ...] = ()
    frame: str = ""
    """Dotted path of the module it stands in."""
    edges: tuple[Edge, ...] = ()
