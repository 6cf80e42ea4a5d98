"""The verdict: whether a traced graph does what the model did when it was run.

The traced graph is run under the same recorder as the model. So both are lists of the same kind of steps, in torch's
own names, and are compared step by step: what is called, what it takes, the shapes and dtypes of what it gives.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.errors import said
from sphinx_fxgraph.capture.formatting import kind_of, short_meta, short_name
from sphinx_fxgraph.capture.metrics.shape_prop import Probe, ProbeError
from sphinx_fxgraph.capture.model.arguments import copied
from sphinx_fxgraph.capture.recorder.recorder import Recorder
from sphinx_fxgraph.capture.trace import Trace, passed_through
from sphinx_fxgraph.record.model import TensorMeta


@dataclass(frozen=True)
class Difference:
    """The first thing that a traced graph and a run have not in common."""

    reason: str
    node: fx.Node
    """Where."""


def compare(
    model: nn.Module, run: Trace, traced: Trace, leaf: Sequence[str] = (), opened: Collection[type] = ()
) -> Difference | None:
    """Run a traced graph and compare it with a run of the model.

    If they agree the nodes of the traced graph have what a run of them gave, and of the model's run what only that
    knows: what is written in place, the blocks of code they stand in, and, where something was written into a value
    under another name, where it comes from then.
    """
    recorder = Recorder(model, leaf, opened)
    replay = _Replay(model, traced, recorder)
    try:
        replay.perform()
    except ProbeError as error:
        cause = error.__cause__
        reason = f"the traced graph cannot be run: {type(cause).__name__}: {said(cause or error)}"
        return Difference(reason, error.node)
    known: dict[object, int] = {}
    expected, found = Steps(run.graph, known), Steps(recorder.trace().graph, known)
    difference = _first_difference(expected, found) or replay.hidden(found)
    if difference is None:
        replay.note(dict(zip(found.in_one_order(), expected.in_one_order(), strict=True)))
    return difference


# -- steps


@dataclass(frozen=True)
class _Step:
    """A node in a form that two recordings have in common."""

    name: str
    takes: tuple[object, ...]
    gives: tuple[TensorMeta, ...]


class Steps:
    """The steps of a recording.

    What follows from no input and no parameter is none: torch.fx computes it while it traces, and has it as a constant.

    Args:
        graph: what was recorded.
        known: numbers for steps that are the same with all that leads to them, shared by the recordings to compare.
    """

    def __init__(self, graph: fx.Graph, known: dict[object, int]) -> None:
        self.nodes: list[fx.Node] = []
        self.steps: list[_Step] = []
        self.numbers: list[int] = []
        self._known = known
        self._sources: dict[fx.Node, tuple[object, ...]] = {}
        for node in graph.nodes:
            self._add(node)

    def _add(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            self._sources[node] = "input", str(node.target)
        elif node.op == "get_attr":
            path = str(node.target)
            held = "parameter" if node.meta["kind"] == "parameter" else "constant"
            self._sources[node] = held, "" if path.startswith("_tensor_constant") else path
        elif node.meta.get("takes"):
            source = node.args[0]
            assert isinstance(source, fx.Node)
            self._sources[node] = *self._sources[source], str(pytree.Step(node.args[1], node.target is getattr))
        elif node.target is passed_through:
            self._sources[node] = self._sources[node.all_input_nodes[0]]
        elif node.op == "output" or node.meta["outputs"]:  # the others only read a value
            takes = tuple(self._sources[source] for source in node.all_input_nodes)
            if self._is_constant(node, takes):
                self._sources[node] = "constant", ""
            else:
                step = _Step(_name(node), takes, node.meta["outputs"])
                number = self._known.setdefault(step, len(self._known))
                self._sources[node] = "step", number
                self.nodes.append(node)
                self.steps.append(step)
                self.numbers.append(number)
        else:
            self._sources[node] = "read", *(self._sources[source] for source in node.all_input_nodes)

    def in_one_order(self) -> list[fx.Node]:
        """The nodes in an order that two recordings of the same steps have in common."""
        return [self.nodes[at] for at in sorted(range(len(self.nodes)), key=self.numbers.__getitem__)]

    @staticmethod
    def _is_constant(node: fx.Node, takes: Iterable[tuple[object, ...]]) -> bool:
        if node.op == "output" or node.op == "call_module" or node.meta.get("random"):
            return False
        writes_state = node.meta["inplace"] and any(each[0] == "constant" and each[1] for each in takes)
        return not writes_state and all(each[0] == "constant" for each in takes)


def _name(node: fx.Node) -> str:
    if node.op == "call_module":
        return f"module {node.target}"
    return kind_of(short_name(node.target))  # torch.fx has `x += y` as an add, that the run wrote in place is noted


def _first_difference(expected: Steps, found: Steps) -> Difference | None:
    """Nothing where both have the same steps, though torch.fx may write what is independent in another order."""
    if sorted(expected.numbers) == sorted(found.numbers):
        return None
    for number, (ours, theirs) in enumerate(itertools.zip_longest(expected.steps, found.steps)):
        if ours == theirs:
            continue
        node = expected.nodes[min(number, len(expected.nodes) - 1)]
        if ours is None or theirs is None or ours.name != theirs.name:
            return Difference(_missing(expected.steps[number:], found.steps[number:]), node)
        if ours.takes != theirs.takes:
            return Difference(f"{_told(ours)} takes other values in the run than in the traced graph", node)
        given, traced = (", ".join(map(_written, each.gives)) for each in (ours, theirs))
        verb = "gives" if node.op != "output" else "is"
        return Difference(f"{_told(ours)} {verb} {given} in the run and {traced} in the traced graph", node)
    return None


def _missing(expected: Sequence[_Step], found: Sequence[_Step]) -> str:
    """What one has at a place and the other has not."""
    if found and found[0].name == "output":
        return f"the traced graph has no {_told(expected[0])}"
    if expected and any(step.name == found[0].name for step in expected[1:3] if found):
        return f"the traced graph has no {_told(expected[0])}"
    if not expected or any(step.name == expected[0].name for step in found[1:3]):
        return f"the traced graph has {_told(found[0])}, which the run has not"
    return f"the run has {_told(expected[0])} where the traced graph has {_told(found[0])}"


def _told(step: _Step) -> str:
    return step.name.removeprefix("module ") or "the model"


def _written(meta: TensorMeta) -> str:
    return f"{meta.path} {short_meta(meta)}".lstrip()


# -- the traced graph, run


class _Replay(Probe):
    """Runs a traced graph under a recorder, and knows which steps each of its nodes made."""

    def __init__(self, model: nn.Module, traced: Trace, recorder: Recorder) -> None:
        super().__init__(model, traced.graph, recorder.counter)
        self._traced, self._recorder = traced, recorder
        self._made: dict[fx.Node, list[fx.Node]] = {}
        self._by: dict[fx.Node, fx.Node] = {}
        """Of the recording -> of the traced graph."""
        self._moved: list[tuple[fx.Node, fx.Node, fx.Node]] = []

    def perform(self) -> None:
        """Run it."""
        inputs = list(map(copied, self._traced.inputs))
        placeholders = [str(node.target) for node in self._traced.graph.nodes if node.op == "placeholder"]
        with self._recorder.recording():
            self._recorder.receives(zip(placeholders, inputs, strict=True))
            self._recorder.returns(self.run(*inputs))

    def run_node(self, n: fx.Node) -> Any:
        """Run a node and note the steps it makes, and what it takes that was written into since it was made."""
        for source in n.all_input_nodes:
            value = self.env.get(source)
            writer = self._recorder.writer_of(value) if isinstance(value, torch.Tensor) else None
            if writer in self._by and self._by[writer] is not source:
                self._moved.append((n, source, self._by[writer]))
        before = self._recorder.count
        result = super().run_node(n)
        self._made[n] = self._recorder.since(before)
        self._by.update(dict.fromkeys(self._made[n], n))
        return result

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function; one that torch.fx does not look into is one step."""
        function: Callable[..., Any] = self._recorder.opaque.get(target, target)
        return super().call_function(function, args, kwargs)

    def hidden(self, found: Steps) -> Difference | None:
        """A node that does more than one thing hides some of them."""
        steps = dict(zip(found.nodes, found.steps, strict=True))
        for node, made in self._made.items():
            names = [_told(steps[each]) for each in made if each in steps]
            if len(names) > 1:
                reason = f"{node.target} is {' and '.join(names)} in the run and one node in the traced graph"
                return Difference(reason, node)
        return None

    def note(self, same: Mapping[fx.Node, fx.Node]) -> None:
        """Write into the traced graph what the run knows.

        Args:
            same: from the recording of the traced graph to that of the run.
        """
        for node, made in self._made.items():
            for seen in (same[each].meta for each in made if each in same):
                node.meta.update(inplace=seen.get("inplace", False), marks=seen.get("marks", ()))
        for user, source, writer in self._moved:
            user.replace_input_with(source, writer)
