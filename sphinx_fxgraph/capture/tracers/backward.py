"""Read the backward graph of tensors after a forward pass."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.formatting import meta_of, short_dtype, short_meta, text
from sphinx_fxgraph.record.model import BackwardNode, Edge, Role, TensorMeta

Function = Any
"""A ``grad_fn``: `torch.autograd.graph.Node`, which says less of itself than its instances know."""


def variable(function: Function) -> torch.Tensor | None:
    """The tensor whose gradient a function accumulates; None for a function of any other kind."""
    found = getattr(function, "variable", None)
    return found if isinstance(found, torch.Tensor) else None


def sources(function: Function) -> list[Function]:
    """The functions that a function hands gradients to: those of the tensors that its operator was given."""
    return [source for source, _ in function.next_functions if source is not None]


def in_order(roots: Iterable[Function]) -> list[Function]:
    """Every function that is reached, sources before what they flow into, and otherwise as they were made.

    A loop and no recursion: a graph may be as deep as a sequence is long. As long as the list is kept, a function is
    one object; Python's wrapper of it is made anew each time it is asked for when nobody holds it.
    """
    found: dict[Function, list[Function]] = {}
    ahead = list(roots)
    while ahead:
        function = ahead.pop()
        if function not in found:
            found[function] = sources(function)
            ahead += found[function]
    users: dict[Function, list[Function]] = {function: [] for function in found}
    missing: Counter[Function] = Counter()
    for function, given in found.items():
        for source in given:
            users[source].append(function)
            missing[function] += 1
    number = {function: at for at, function in enumerate(found)}

    def made(function: Function) -> tuple[int, int, Function]:
        return (0 if variable(function) is not None else function._sequence_nr(), number[function], function)

    ready = [made(function) for function in found if not missing[function]]
    heapq.heapify(ready)
    order: list[Function] = []
    while ready:
        function = heapq.heappop(ready)[2]
        order.append(function)
        for user in users[function]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, made(user))
    return order


def results(function: Function) -> tuple[TensorMeta, ...]:
    """Shape and dtype of what the operator of a function gave."""
    metadata = getattr(function, "_input_metadata", ())  # of the gradients that come in; torch 2.1 and later
    found = []
    for number, each in enumerate(metadata):
        try:
            shape = tuple(int(size) for size in each.shape)
        except (RuntimeError, TypeError):  # a nested tensor has none
            shape = ()
        path = f"[{number}]" if len(metadata) > 1 else ""
        found.append(TensorMeta(shape, short_dtype(each.dtype), path))
    return tuple(found)


# -- what a function holds

_SAVED = "_saved_"
_RAW = "_raw_saved_"


def attributes(function: Function) -> dict[str, str]:
    """The options that a function has kept for the backward pass, and of tensors only that there are some."""
    found: dict[str, str] = {}
    names = dir(function)
    for name in names:
        key = name.removeprefix(_SAVED)
        if key == name:
            continue
        kept = _kept(function, _RAW + key if _RAW + key in names else name)
        if _RAW + key in names and not isinstance(kept, str):
            found[key] = "[saved tensors]" if isinstance(kept, tuple) else "[saved tensor]"
        else:
            found[key] = _text(kept)
    return found


def _kept(function: Function, name: str) -> Any:
    try:
        return getattr(function, name)
    except RuntimeError:  # backward has been here
        return _FREED


_FREED = "freed by backward"


def _text(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 63:
        return str(value - (1 << 64))  # a negative dimension, which C++ has kept in an unsigned integer
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_text, value))}{',' * (len(value) == 1)})"
    return value if isinstance(value, str) else text(value)


def saved(function: Function) -> list[tuple[str, torch.Tensor | str]]:
    """The tensors that a function has kept, by name; words where there is none to show.

    They are looked at as they are kept. To unpack them would run the hooks that have packed them, and those of
    ``torch.utils.checkpoint`` run the model, which then can not go back.
    """
    found: list[tuple[str, torch.Tensor | str]] = []
    for name in dir(function):
        key = name.removeprefix(_RAW)
        if key == name:
            continue
        kept = _kept(function, name)
        is_many = isinstance(kept, tuple)
        for number, each in enumerate(kept if is_many else [kept]):
            content = each if each is None or isinstance(each, str) else _content(each)
            if content is not None:
                found.append((f"{key}[{number}]" if is_many else key, content))
    return found


def _content(kept: Any) -> torch.Tensor | str | None:
    """Return a saved tensor, or a text that says what became of it; None where there was none to save."""
    if not hasattr(kept, "data"):  # torch 2.6 gives a saved tensor only to whoever runs its hooks
        return "not shown by this torch"
    if kept.unpack_hook is not None:
        return "packed by a hook"
    try:
        tensor: torch.Tensor | None = kept.data
        if tensor is None:
            kept.unpack()  # there is nothing to unpack, but it says whether there was
    except RuntimeError:
        return _FREED
    return tensor


# -- module frames, where nobody watched the modules


def frames(order: Sequence[Function], names: Mapping[int, str]) -> dict[Function, str]:
    """The module that each function stands in, as far as the names of parameters tell.

    A function that is given parameters stands in the module that owns them. Any other stands in the deepest module that
    has both the last such function before it and the first one after it; it may have been called further inside.

    Args:
        order: the functions as `in_order` gives them.
        names: the names of parameters by the ``id`` of the tensor.

    Returns:
        The dotted path of the module; empty where there is none.
    """
    owners: dict[Function, str] = {}
    made_of: set[Function] = set()
    """Functions of parameters alone, such as a weight transposed; an input without a gradient counts as one given."""
    for function in order:
        name = names.get(id(variable(function)))
        own = [owners[source] for source in sources(function) if source in made_of]
        if own or name:
            owners[function] = _common(own) if own else str(name).rpartition(".")[0]
        if name or (own and len(own) == len(function.next_functions)):
            made_of.add(function)
    run = [function for function in order if variable(function) is None]
    before = _nearest(owners, run)
    after = _nearest(owners, reversed(run))
    return owners | {function: _common([before[function], after[function]]) for function in run}


def _nearest(owners: Mapping[Function, str], run: Iterable[Function]) -> dict[Function, str]:
    """The module of each function, or of the last one before it that has any."""
    found, nearest = {}, ""
    for function in run:
        found[function] = nearest = owners.get(function, nearest)
    return found


def _common(paths: Iterable[str]) -> str:
    """The deepest module that has all of these in it."""
    split = [path.split(".") for path in paths]
    common: list[str] = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return ".".join(common)


def read(
    output: Any, params: Mapping[str, torch.Tensor], *, show_attrs: bool, show_saved: bool, most: int
) -> tuple[BackwardNode, ...]:
    """Read the backward graph of the tensors in ``output``, sources first. No tensor is kept alive.

    Args:
        output: a tensor, or anything that holds some.
        params: the names of tensors.
        show_attrs: read what functions have kept besides tensors.
        show_saved: look at the tensors that they have kept.
        most: characters of an attribute.

    Raises:
        TypeError: there is no tensor.
    """
    found = pytree.tensors(output)
    if not found:
        raise TypeError(f"there is no tensor in the output, which is of type {type(output).__qualname__}")
    graph = _Graph(params, show_attrs, show_saved, max(most, 3))
    graph.functions([tensor for _, tensor in found])
    for path, tensor in found:
        graph.output("output" + "".join(map(str, path)), tensor)
    return tuple(graph.nodes)


class _Graph:
    def __init__(self, params: Mapping[str, torch.Tensor], show_attrs: bool, show_saved: bool, most: int) -> None:
        self.nodes: list[BackwardNode] = []
        self._names: dict[int, str] = {}
        for name, tensor in params.items():
            self._names.setdefault(id(tensor), name)
        self._show_attrs, self._show_saved, self._most = show_attrs, show_saved, most
        self._functions: dict[Function, str] = {}
        self._tensors: dict[torch.Tensor, str] = {}

    def functions(self, outputs: Sequence[torch.Tensor]) -> None:
        """Every function behind some tensors, and behind those that they are views of."""
        around = [*outputs, *(tensor._base for tensor in outputs if tensor._base is not None)]
        order = in_order(tensor.grad_fn for tensor in around if tensor.grad_fn is not None)
        frame_of = frames(order, self._names)
        for function in order:
            frame = frame_of.get(function, "")
            tensor = variable(function)
            if tensor is not None:
                name = self._add(
                    "parameter", self._name(tensor, "leaf"), (_line(tensor), "AccumulateGrad"), frame=frame
                )
                self._tensors[tensor] = self._functions[function] = name
                continue
            edges = [Edge(self._functions[source]) for source in sources(function)]
            edges += [Edge(name, "saved") for name in self._saved(function, frame)]
            lines = tuple(map(_words, results(function)))
            kept = attributes(function) if self._show_attrs else {}
            pairs = tuple((key, self._cut(value)) for key, value in kept.items())
            name = self._add("function", type(function).__name__, lines, pairs, frame, edges)
            self._functions[function] = name

    def output(self, title: str, tensor: torch.Tensor) -> None:
        """One tensor of the output, with the base it is a view of."""
        edges = [*self._made(tensor), *(Edge(name, "view") for name in self._base(tensor))]
        lines = [_line(tensor)]
        if tensor.grad_fn is None and tensor not in self._tensors:
            lines.append("a leaf" if tensor.requires_grad else "requires no gradient")
        self._add("output", self._name(tensor, title), lines, edges=edges)

    def _made(self, tensor: torch.Tensor) -> Iterator[Edge]:
        """Where a tensor comes from."""
        if tensor.grad_fn is not None:
            yield Edge(self._functions[tensor.grad_fn])
        elif tensor in self._tensors:
            yield Edge(self._tensors[tensor])

    def _base(self, tensor: torch.Tensor) -> Iterator[str]:
        base = tensor._base
        if base is None:
            return
        if base not in self._tensors:
            edges = list(self._made(base))
            self._tensors[base] = self._add("base", self._name(base, "base"), (_line(base),), edges=edges)
        yield self._tensors[base]

    def _saved(self, function: Function, frame: str) -> Iterator[str]:
        for key, kept in saved(function) if self._show_saved else ():
            if isinstance(kept, str):
                yield self._add("saved", key, (kept,), frame=frame)
            else:
                name = self._name(kept, "")
                yield self._add("saved", f"{key} = {name}" if name else key, (_line(kept),), frame=frame)

    def _name(self, tensor: torch.Tensor, otherwise: str) -> str:
        return self._names.get(id(tensor), otherwise)

    def _cut(self, text: str) -> str:
        return text if len(text) <= self._most else text[: self._most - 1] + "…"

    def _add(
        self,
        role: Role,
        title: str,
        lines: Sequence[str],
        pairs: tuple[tuple[str, str], ...] = (),
        frame: str = "",
        edges: Iterable[Edge] = (),
    ) -> str:
        name = f"n{len(self.nodes) + 1}"
        once = tuple(dict.fromkeys(edges))
        self.nodes.append(BackwardNode(name, role, title, tuple(lines), pairs, frame, once))
        return name


def _line(tensor: torch.Tensor) -> str:
    return _words(meta_of(tensor))


def _words(meta: TensorMeta) -> str:
    """``f32[1, 64]``; a shape that is empty says so."""
    return short_meta(meta) if meta.shape else f"scalar {meta.dtype}"
