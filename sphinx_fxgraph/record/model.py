"""The record of a capture: plain frozen data that travels between the rooms and round-trips through JSON.

A record holds no torch object, no absolute path, no time, no memory id and no tensor value: the same model, spec and
torch give the same bytes on any machine, so that a git diff of two records is a diff of two architectures. What does
depend on the machine stands in ``made_by``, which digests and diffs leave out.

The traced graph is stored as *bodies*. A body is the inside of a module call, written like a function: inputs, nodes in
execution order, outputs. Equal bodies are stored once and named after their class.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from sphinx_fxgraph.record import codec
from sphinx_fxgraph.record.codec.references import check_references
from sphinx_fxgraph.record.header import SCHEMA, Failure, RecordError, Source, decoded

Dim = int | str
"""One dimension: a size, or the name of a symbolic size."""


@dataclass(frozen=True)
class TensorMeta:
    """What is known of one tensor: never its values."""

    shape: tuple[Dim, ...]
    dtype: str
    """torch's abbreviation: ``f32``, ``bf16``, ``i64``, ``b8``."""
    path: str = ""
    """Where it stands in a nested result: ``''`` the result itself, ``[0]``, ``['out']``, ``.logits``; the attribute
    name where this describes a parameter or a buffer."""
    device: str = ""
    """Only where it is not the device of the capture."""


class Value(NamedTuple):
    """What flows along an edge: output ``output`` of node ``node`` of the same body.

    The empty name is the body itself: ``Value("", k)`` is its input ``k``.
    """

    node: str
    output: int = 0


@dataclass(frozen=True)
class Node:
    """One call in a body: an operator, or a module call that has a body of its own."""

    name: str
    """Unique in its body; ``relu@2`` is the second call of ``relu`` there."""
    op: str
    """torch.fx's opcode: placeholder, get_attr, call_module, call_function, call_method or output."""
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
    args: str = ""
    kwargs: str = ""
    """The arguments as short text, tensors by node name, body inputs by the name of the input."""
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
        """Whether a tensor is in the result (an operator's; ask `Record.metas` for a node with a body)."""
        return bool(self.outputs)


@dataclass(frozen=True)
class BodyInput:
    """One input of a body: the parameter of ``forward`` it arrives by, and the tensors in it."""

    name: str
    tensors: tuple[TensorMeta, ...] = ()


@dataclass(frozen=True)
class Body:
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


@dataclass(frozen=True)
class Module:
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


@dataclass(frozen=True)
class Totals:
    """Of the whole model. Each tensor counts once, however often it is registered.

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
    dtypes: Mapping[str, int] = field(default_factory=dict)
    """Elements of the parameters by their dtype."""
    uncounted: Mapping[str, int] = field(default_factory=dict)
    """Operators that ``macs`` leaves out, since there is no formula for them: their MACs in another convention by name,
    0 where that is unknown. The nodes that run them have a mark, ``not counted: cholesky``."""


@dataclass(frozen=True)
class Verdict:
    """What is known about other input values: ``kind`` is ``same`` (graph for every value) or ``path`` (one path)."""

    kind: str
    reason: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Record:
    """All that is known of one captured model."""

    spec: Mapping[str, Any]
    tracer: str
    root: str = ""
    bodies: Mapping[str, Body] = field(default_factory=dict)
    modules: tuple[Module, ...] = ()
    ties: Mapping[str, str] = field(default_factory=dict)
    """A tensor that is registered again: its path -> the path it is counted at."""
    totals: Totals = Totals()
    output: str = ""
    """Structure of what the model returns, ``{'out': f32[1, 21, 8, 8]}``."""
    verdict: Verdict | None = None
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    distributions: Mapping[str, str] = field(default_factory=dict)
    """Installed distributions whose code the model is made of -> release version without its local part."""
    made_by: Mapping[str, str] = field(default_factory=dict)
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
        return codec.text(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Record:
        """Read what `to_json` wrote.

        Raises:
            RecordError: the text is torn, foreign or written by a later version.
        """
        record = decoded(text, _lengthened)
        try:
            check_references(record)
        except (ValueError, RecursionError) as error:
            raise RecordError(str(error)) from error
        return record

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of everything but ``made_by``: two records with one digest describe the same architecture."""
        return hashlib.sha256(dataclasses.replace(self, made_by={}).to_json().encode()).hexdigest()


def _lengthened(text: str | bytes) -> Record:
    return msgspec.convert(codec.lengthened(msgspec.json.decode(text)), Record)


def join(path: str, name: str) -> str:
    """The path of something called ``name`` inside the module at ``path``."""
    return f"{path}.{name}" if path else name
