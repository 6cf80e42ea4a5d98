"""The verdict: whether a traced graph does what the model did when it was run.

The traced graph is run under the same recorder as the model. So both are lists of the same kind of steps, in torch's
own names, and are compared step by step: what is called, what it takes, the shapes and dtypes of what it gives.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.errors import said
from sphinx_fxgraph.capture.formatting import kind_of, short_meta, short_name
from sphinx_fxgraph.capture.inputs import copied
from sphinx_fxgraph.capture.metrics import Probe, ProbeError
from sphinx_fxgraph.capture.recorder.recorder import Recorder
from sphinx_fxgraph.capture.trace import Call, Trace, after_writes, passed_through
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
            if self._sources[source] == ("constant", ""):
                self._sources[node] = "constant", ""
                return
            self._sources[node] = *self._sources[source], str(pytree.Step(node.args[1], node.target is getattr))
        elif node.target is passed_through:
            self._sources[node] = self._sources[node.all_input_nodes[0]]
        elif node.target is after_writes:  # joined when it is read, which may be earlier in one of two recordings
            self._sources[node] = "after writes", *dict.fromkeys(self._parts(node))
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

    def _parts(self, node: fx.Node) -> Iterator[object]:
        for source in node.all_input_nodes:
            if source.target is after_writes:
                yield from self._sources[source][1:]
            else:
                yield self._sources[source]

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
    """Return the first value that one graph has and the other lacks."""
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
        self._taken: dict[fx.Node, dict[fx.Node, fx.Node]] = {}
        """For each node of the traced graph, what it takes -> the node of the recording that it was then."""
        self._places: dict[fx.Node, int] = {}
        """The position of each node of the traced graph."""
        self._last: dict[fx.Node, Any] = {}
        """The values that the output takes."""
        self._redirected: dict[tuple[fx.Node, fx.Node], fx.Node] = {}
        """A node and what it took -> what it takes."""
        self._joined: dict[fx.Node, fx.Node] = {}
        """`after_writes` of the recording -> of the traced graph."""

    def perform(self) -> None:
        """Run the graph."""
        inputs = list(map(copied, self._traced.inputs))
        placeholders = [str(node.target) for node in self._traced.graph.nodes if node.op == "placeholder"]
        with self._recorder.recording():
            self._recorder.receives(zip(placeholders, inputs, strict=True))
            result = self.run(*inputs)
            self._recorder.lookups.clear()
            self._recorder.returns(result)
            self._note_taken(next(iter(reversed(self._traced.graph.nodes))), self._last)

    def _note_taken(self, node: fx.Node, values: Mapping[fx.Node, Any]) -> None:
        """Note what the values of a node's arguments were in the recording."""
        found = {source: self._recorder.lookups.get(id(each)) for source, each in values.items()}
        self._taken[node] = {source: each for source, each in found.items() if each is not None}

    def run_node(self, n: fx.Node) -> Any:
        """Run a node; note the steps it makes, and what its arguments are after the writes so far."""
        before = self._recorder.count
        self._recorder.lookups.clear()
        values = {source: self.env.get(source) for source in n.all_input_nodes}
        result = super().run_node(n)
        self._note_taken(n, values)
        self._made[n] = self._recorder.since(before)
        self._by.update(dict.fromkeys(self._made[n], n))
        if n.op in ("placeholder", "get_attr") and isinstance(result, torch.Tensor):
            recorded = self._recorder.node_of(result)
            while recorded.target is after_writes:
                recorded = recorded.all_input_nodes[0]
            if recorded.op == n.op:
                self._by.setdefault(recorded, n)
        if n.op == "output":
            self._last = values
        return result

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function; one that torch.fx does not look into is one step."""
        function: Callable[..., Any] = self._recorder.opaque.get(target, target)
        return super().call_function(function, args, kwargs)

    def hidden(self, found: Steps) -> Difference | None:
        """Return a node that does more than one thing, and so hides some of them."""
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
            for meta in (same[each].meta for each in made if each in same):
                node.meta.update(inplace=meta.get("inplace", False), marks=meta.get("marks", ()))
        self._places = {node: place for place, node in enumerate(self._traced.graph.nodes)}
        for node in self._taken:
            self._redirect(node)
        if self._redirected:
            for call in self._traced.calls:
                self._redirect_call(call)

    def _redirect(self, node: fx.Node) -> None:
        """Let a node take its arguments after the writes so far, and what it takes by no argument."""
        for source, recorded in self._taken[node].items():
            current = self._taken_node(recorded, source) or self._traced_node(recorded, node)
            if current is not None and current not in (source, _passed_value(source)):
                node.replace_input_with(source, current)
                self._redirected[node, source] = current
        for recorded in self._made.get(node, ()):
            for key, value in recorded.kwargs.items():
                if key not in recorded.meta.get("hidden", ()) or not isinstance(value, fx.Node):
                    continue
                current = self._traced_node(value, node)
                if current is not None and current not in node.all_input_nodes:
                    node.kwargs = {**node.kwargs, key: current}

    def _redirect_call(self, call: Call) -> None:
        """Let a module call take what the nodes in it take now, where that comes from outside."""
        depth = len(call.stack)
        other = {
            source: current
            for (user, source), current in self._redirected.items()
            if user.meta["stack"][:depth] == call.stack and current.meta["stack"][:depth] != call.stack
        }
        if other:
            call.args = fx.node.map_arg(call.args, lambda node: other.get(node, node))
            call.kwargs = fx.node.map_arg(call.kwargs, lambda node: other.get(node, node))
            call.names = {other.get(node, node): name for node, name in call.names.items()}

    def _taken_node(self, recorded: fx.Node, source: fx.Node) -> fx.Node | None:
        """Return the part of a result that an argument is now, where a node without a result of its own wrote it."""
        if not recorded.meta.get("takes") or recorded.args[0] not in self._by:
            return None
        base: Any = self._by[recorded.args[0]]  # type: ignore[index]  # it is a node
        at: Any = source
        while isinstance(at, fx.Node) and at is not base and at.target in (operator.getitem, getattr):
            at = at.args[0]
        return None if at is base else self._part(recorded, base)

    def _part(self, recorded: fx.Node, base: fx.Node) -> fx.Node:
        """Return the node of the traced graph that takes a part out of a result, as one of the recording does."""
        if recorded not in self._joined:
            with self._traced.graph.inserting_after(base):
                taken = self._traced.graph.call_function(recorded.target, (base, *recorded.args[1:]))  # type: ignore[arg-type] # a target that was recorded can be called
            replayed = {key: value for key, value in recorded.meta.items() if key not in ("where", "source", "marks")}
            taken.meta.update(base.meta | replayed, stack=base.meta["stack"], inplace=False, marks=())
            self._joined[recorded] = taken
            self._places[taken] = self._places.get(base, 0)
        return self._joined[recorded]

    def _traced_node(self, recorded: fx.Node, user: fx.Node) -> fx.Node | None:
        """Return the node of the traced graph for one of the recording; None where there is none."""
        if recorded in self._by and recorded.target is not after_writes:
            return self._by[recorded]
        if recorded.target is not after_writes:
            return None
        if recorded not in self._joined:
            found = [self._joined_source(each, user) for each in recorded.all_input_nodes]
            sources = dict.fromkeys(each for each in found if each is not None)
            if None in found:
                return None
            self._joined[recorded] = self._join(list(sources), recorded, user)
        return self._joined[recorded]

    def _joined_source(self, recorded: fx.Node, user: fx.Node) -> fx.Node | None:
        """Return the node of the traced graph for one that writes are joined with, which may be a part of a result."""
        if not recorded.meta.get("takes") or recorded in self._by:
            return self._traced_node(recorded, user)
        base = self._joined_source(recorded.args[0], user)  # type: ignore[arg-type]  # it is a node
        if base is None:
            return None
        same = (each for each in base.users if (each.target, each.args[1:]) == (recorded.target, recorded.args[1:]))
        return next(same, None) or self._part(recorded, base)

    def _join(self, sources: Sequence[fx.Node], recorded: fx.Node, user: fx.Node) -> fx.Node:
        """Add the node of a tensor after writes, in the innermost call that holds the writers and the user."""
        last = max(sources, key=self._places.__getitem__)
        writers = sources[1:] if recorded.meta["has_base"] else sources
        stacks = [node.meta["stack"] for node in (*writers, user)]
        stack = tuple(level[0] for level in itertools.takewhile(_is_one, zip(*stacks, strict=False)))
        with self._traced.graph.inserting_after(last):
            joined = self._traced.graph.call_function(after_writes, tuple(sources))
        joined.meta.update(recorded.meta, stack=stack)
        self._places[joined] = self._places[last]
        return joined


def _is_one(level: Sequence[object]) -> bool:
    return len(set(level)) == 1


def _passed_value(node: fx.Node) -> fx.Node:
    """Return the value that a module call hands on as it was given; any other node as it is."""
    while node.target is passed_through:
        node = node.all_input_nodes[0]
    return node
