"""Where a plain number that a model reads from a tensor goes: found by running the model with other numbers.

``scale = float(x.abs().max()) / 127`` is a Python number of which torch knows nothing. The model is run again, and each
read gives a slightly different number; an argument that is then another one depends on the read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from sphinx_fxgraph.capture import formatting
from sphinx_fxgraph.capture.trace import SIZE_FROM_VALUES, Trace

Change = Callable[[int, Any], Any]
"""From the number of a read and its value to the value that the model gets."""

_MOST_READS = 12
"""So many reads are told apart; of more, a number depends on all that were before it."""


def numeric_reads(graph: fx.Graph) -> list[fx.Node]:
    """Return the nodes that made plain numbers of a tensor's values, in order; tests for true and false are none."""
    return [node for node in graph.nodes if node.meta.get("reads") == "number"]


def link(run: Trace, again: Callable[[Change], Trace]) -> bool:
    """Let the arguments of a run that depend on numbers read from tensors take the nodes that read them.

    Args:
        run: a run of the model.
        again: runs the model again with other values.

    Returns:
        Whether another run took the same way to the end, so that no use of the numbers is unknown.
    """
    reads = numeric_reads(run.graph)
    if not reads:
        return True
    alone = reads if len(reads) <= _MOST_READS else []
    complete = False
    found: dict[_Place, dict[fx.Node, None]] = {}
    for change in (_more, _less):
        differences = _Differences(run, again(lambda _, value, change=change: change(value)))  # type: ignore[misc] # a lambda with a default has no type
        complete = complete or differences.complete
        if not differences.places:
            continue
        for place in differences.places:
            found.setdefault(place, {})
        for number, read in enumerate(alone if len(reads) > 1 else ()):
            single = _Differences(run, again(_only(number, change)))
            for place in single.places:
                found.setdefault(place, {})[read] = None
    order = {node: number for number, node in enumerate(run.graph.nodes)}
    for place, sources in found.items():
        earlier = [read for read in reads if place.node is None or order[read] < order[place.node]]
        place.put(list(sources) or earlier or reads)
    return complete


def _only(number: int, change: Callable[[Any], Any]) -> Change:
    return lambda each, value: change(value) if each == number else value


def _more(value: Any) -> Any:
    return _changed(value, 1.25, 0.1875, 1)


def _less(value: Any) -> Any:
    return _changed(value, 0.984375, -0.0078125, -1)


def _changed(value: Any, factor: float, offset: float, step: int) -> Any:
    """Return another value of the same type, close to the first."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value + step if value + step >= 0 or value < 0 else value + 1
    if isinstance(value, float | complex):
        return value * factor + offset if not isinstance(value, float) or math.isfinite(value) else value
    if isinstance(value, list):
        return [_changed(item, factor, offset, step) for item in value]
    if type(value).__name__ == "ndarray":
        if value.dtype.kind in "fc":
            return (value * factor + offset).astype(value.dtype)
        return (value + 1).astype(value.dtype) if value.dtype.kind in "iu" else value
    return value


class _Place:
    """An argument of a node or of a module call, by where it stands; equal for the same argument in two comparisons."""

    def __init__(self, owner: Any, name: str, path: tuple[Any, ...]) -> None:
        self._owner, self._name, self._path = owner, name, path
        self.node: fx.Node | None = owner if isinstance(owner, fx.Node) else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, str, tuple[Any, ...]]:
        return id(self._owner), self._name, self._path

    def put(self, reads: Sequence[fx.Node]) -> None:
        """Put the node of a read in place of the number, and the other reads beside the arguments."""
        setattr(self._owner, self._name, _replaced(getattr(self._owner, self._name), self._path, reads[0]))
        if self.node is None:
            return
        if self.node.op == "output":
            self.node.meta["result"] = formatting.text(self.node.args[0])
        known = self.node.all_input_nodes
        more = [read for read in reads[1:] if read not in known]
        names = (f"read_{number}" for number in range(1, 1 + len(more)))
        self.node.kwargs = {**self.node.kwargs, **dict(zip(names, more, strict=True))}


def _replaced(value: Any, path: tuple[Any, ...], node: fx.Node) -> Any:
    if not path:
        return node
    step, rest = path[0], path[1:]
    if isinstance(value, slice):
        ends = {name: getattr(value, name) for name in ("start", "stop", "step")}
        ends[step] = _replaced(ends[step], rest, node)
        return slice(*ends.values())
    if isinstance(value, Mapping):
        return {key: _replaced(item, rest, node) if key == step else item for key, item in value.items()}
    items = [_replaced(item, rest, node) if number == step else item for number, item in enumerate(value)]
    return items if isinstance(value, list) else tuple(items)


class _Differences:
    """The arguments in which two runs differ, up to where they take different ways."""

    def __init__(self, run: Trace, other: Trace) -> None:
        self.places: dict[_Place, None] = {}
        self.complete = other.error is None
        self._same: dict[fx.Node, fx.Node] = {}
        for one, two in zip(_steps(run), _steps(other), strict=False):
            if (one.op, one.target) != (two.op, two.target) and str(one.target) != str(two.target):
                self.complete = False
                break
            self._same[one] = two
            self._compare(one, "args", (), one.args, two.args)
            self._compare(one, "kwargs", (), one.kwargs, two.kwargs)
            if _is_other(one.meta.get("constant"), two.meta.get("constant")):
                self._note_constant(one)
            if (
                one.op != "output"
                and "failed" not in two.meta.get("marks", ())
                and _shapes(one) != _shapes(two)
                and SIZE_FROM_VALUES not in one.meta.get("marks", ())
            ):
                one.meta["marks"] = (*one.meta.get("marks", ()), SIZE_FROM_VALUES)
        else:
            self.complete = self.complete and len(_steps(run)) == len(_steps(other))
        for first, second in zip(run.calls, other.calls, strict=False):
            if first.stack != second.stack:
                break
            for name in ("args", "kwargs", "returned"):
                self._compare(first, name, (), getattr(first, name), getattr(second, name))

    def _note_constant(self, node: fx.Node) -> None:
        for user in node.users:
            for name in ("args", "kwargs"):
                for path, item in _leaves(getattr(user, name), ()):
                    if item is node:
                        self.places[_Place(user, name, path)] = None

    def _compare(self, owner: Any, name: str, path: tuple[Any, ...], one: Any, two: Any) -> None:
        if isinstance(one, fx.Node) or isinstance(two, fx.Node):
            return
        parts, others = _parts(one), _parts(two)
        if parts is None or others is None:
            if _is_other(one, two):
                self.places[_Place(owner, name, path)] = None
            return
        for key, item in parts.items():
            if key in others:
                self._compare(owner, name, (*path, key), item, others[key])


def _steps(run: Trace) -> list[fx.Node]:
    """Return the nodes of a run in order, but those that take a part out of a result: they are made when it is used."""
    return [node for node in run.graph.nodes if not node.meta.get("takes")]


def _parts(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, slice):
        return {name: getattr(value, name) for name in ("start", "stop", "step")}
    if isinstance(value, Mapping):
        return value
    return dict(enumerate(value)) if isinstance(value, list | tuple) else None


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    parts = _parts(value)
    if parts is None:
        yield path, value
        return
    for key, item in parts.items():
        yield from _leaves(item, (*path, key))


def _shapes(node: fx.Node) -> list[tuple[Any, ...]]:
    return [meta.shape for meta in node.meta.get("outputs", ())]


def _is_other(one: Any, two: Any) -> bool:
    """Return whether two plain values, arrays or tensors differ."""
    if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
        if one.is_meta or two.is_meta or one.layout != torch.strided:
            return False
        return one.shape != two.shape or not torch.equal(torch.nan_to_num(one), torch.nan_to_num(two))
    if type(one) is not type(two):
        return one is None or two is None or isinstance(one, int | float) != isinstance(two, int | float)
    if type(one).__name__ == "ndarray":
        return bool(one.shape != two.shape or (one != two).any())
    if isinstance(one, bool | int | float | complex | str):
        return one != two and not (one != one and two != two)
    return False
