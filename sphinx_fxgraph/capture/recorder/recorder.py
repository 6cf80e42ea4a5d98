"""Writes down what a model does while it runs, operator by operator, as a `torch.fx.Graph`.

Every function of torch that the model calls is a node, and every leaf module, at full depth; so is an operator of the
dispatcher that is called by no such function. The graph is for reading: it has all that flows from one to the other,
also by ways that no argument shows (something written in place, an attribute that a hook has set), and cannot always be
run.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import FrameType, GeneratorType
from typing import Any

import torch
from torch import fx, nn
from torch.overrides import TorchFunctionMode

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.dependencies import unseen
from sphinx_fxgraph.capture.errors import by_model
from sphinx_fxgraph.capture.formatting import is_torch_nn, tensors_in, text
from sphinx_fxgraph.capture.metrics import MacCounter
from sphinx_fxgraph.capture.recorder import graph_writer
from sphinx_fxgraph.capture.recorder import patches as control_flow
from sphinx_fxgraph.capture.recorder.dispatch_mode import DispatchMode, Effects
from sphinx_fxgraph.capture.recorder.frames import Frames
from sphinx_fxgraph.capture.recorder.generators import Generators
from sphinx_fxgraph.capture.recorder.graph_writer import GraphWriter
from sphinx_fxgraph.capture.recorder.patches import Patch, Regions, patched, patches
from sphinx_fxgraph.capture.recorder.provenance import Attributes, Origin
from sphinx_fxgraph.capture.source_location import borders, is_foreign, place
from sphinx_fxgraph.capture.state import Values, untouched
from sphinx_fxgraph.capture.torch_private import slow_attention
from sphinx_fxgraph.capture.trace import (
    SIZE_FROM_VALUES,
    WRITTEN_TO,
    Trace,
    has_hooks,
    is_leaf,
)


class Recorder(TorchFunctionMode):
    """Records what runs while it is `recording`.

    Args:
        model: the model.
        leaf: patterns of types or paths of modules that stay closed.
        opened: classes of autograd functions that are looked into.
        change: from the number of a read and what was read to what the model gets instead.
        most: stop the run after so many nodes; 0 for no limit.
        identity: leave a tensor that a module returns as it was given the same object. Then those who use the result
            cannot be told from those who use what was given.
    """

    def __init__(
        self,
        model: nn.Module,
        leaf: Sequence[str] = (),
        opened: Collection[type] = (),
        change: Callable[[int, Any], Any] | None = None,
        most: int = 0,
        identity: bool = False,
    ) -> None:
        super().__init__()
        self._change, self._most = change, most
        self._reads = 0
        self.regions = Regions()
        self.opened = opened
        self.entered: set[type] = set()
        """Classes of autograd functions that have called modules of the model, and are one node for all that."""
        self._function: Any = None
        self.opaque: dict[Callable[..., Any], Callable[..., Any]] = {}
        self._model = model
        self._patterns = tuple(leaf)
        self._attributes = Attributes(model)
        self._writer = GraphWriter(self._attributes, lambda: self._frames.stack)
        self._values = Values(model)
        self.generators = Generators(model)
        self._writer.identity = identity
        self.looks_up = False
        """Whether a tensor was looked up in a dict, a set or a list, which compares identity first."""
        self._dispatch = DispatchMode(self._writer.provenance, self._orphan, self._values)
        self._strangers = contextlib.ExitStack()
        """Gives modules that are not the model's own back what they have."""
        self._frames = Frames(model, self._attributes, self._writer, self._dispatch)
        self._failure: tuple[BaseException | None, Callable[[], Any]] = None, lambda: None

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """While this context is entered all that runs in this thread is written down."""
        self.generators.start()
        try:
            hashing = Patch(torch.Tensor, "__hash__", self._hash)
            replaced = patched([*patches(self, self._model), *self.generators.patches(), hashing])
            with self._strangers, slow_attention(), replaced, self._dispatch, self:
                yield
        finally:
            self.generators.stop()
            self._values.restore()

    @property
    def _hash(self) -> Callable[[torch.Tensor], int]:
        """In place of ``Tensor.__hash__``, which torch tells no function mode of."""

        def hashed(tensor: torch.Tensor) -> int:
            self.looks_up = self.looks_up or self._dispatch.effects is None
            return id(tensor)

        return hashed

    @property
    def counter(self) -> MacCounter:
        """Counts the MACs of all that runs."""
        return self._dispatch

    @property
    def count(self) -> int:
        """How many nodes were written as yet."""
        return len(self._writer.added)

    def since(self, count: int) -> list[fx.Node]:
        """The nodes that were written since there were so many."""
        return self._writer.added[count:]

    @property
    def aliased(self) -> bool:
        """Return whether a tensor that a module returned as it was given was made another object."""
        return self._writer.aliased

    @property
    def lookups(self) -> dict[int, fx.Node]:
        """The nodes of the tensors that nodes were given, by identity."""
        return self._writer.lookups

    def node_of(self, tensor: torch.Tensor) -> fx.Node:
        """Return the node of a tensor as it is now."""
        with self._dispatch.node():
            return self._writer.node_of(tensor)

    def trace(self, error: BaseException | None = None) -> Trace:
        """Return the recorded trace."""
        return Trace(
            self._writer.graph,
            self._frames.calls,
            [],
            error,
            probed=True,
            tracer="observed",
            unregistered=self._attributes.unregistered,
            draws=tuple(self.generators.draws.values()),
        )

    # -- the inputs and the output

    def run(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the model, or a method of it."""
        result = function(*args, **kwargs)  # a generator runs while it is consumed
        return list(result) if isinstance(result, Iterator) else result

    def receives(self, arguments: Iterable[tuple[str, Any]]) -> None:
        """Placeholders for the arguments that hold tensors."""
        with self._dispatch.node():
            for name, value in arguments:
                if pytree.tensors(value):
                    self._writer.gives(self._writer.add("placeholder", name, (), {}, stack=()), value)

    def returns(self, value: Any) -> None:
        """Add the output, the last node, and mark the nodes whose results attributes of the model have now."""
        with self._dispatch.node():
            rebound = [
                (path, self._writer.node_of(tensor), is_registered)
                for path, tensor, is_registered in self._attributes.rebound()
                if self._writer.is_known(tensor)
            ]
            node = self._writer.add("output", "output", (self._writer.nodes(value, deep=True),), {}, stack=())
            node.meta["outputs"] = tensors_in(value)
            node.meta["result"] = "" if isinstance(value, torch.Tensor) else text(self._writer.unread(value))
            for path, kept, is_registered in rebound:
                if is_registered or not kept.users:  # an attribute may be set for those who read it, as by a hook
                    self._mark_state(kept, path)

    def _mark_state(self, node: fx.Node, path: str) -> None:
        """Mark a node with the attribute that it is written to, named from the call that it stands in."""
        stack = node.meta["stack"]
        owner = f"{stack[-1].path}." if stack else ""
        mark = WRITTEN_TO + (path.removeprefix(owner) if path.startswith(owner) else f"/{path}")
        if node.op not in ("placeholder", "get_attr") and mark not in node.meta.get("marks", ()):
            node.meta["marks"] = (*node.meta.get("marks", ()), mark)

    # -- functions

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """A function of torch is called."""
        kwargs, written = kwargs or {}, graph_writer.written(func)
        if self._dispatch.effects is not None:
            return func(*args, **kwargs) if written is None else self._dispatch.call(func, *args, **kwargs)
        if written is None:
            result = func(*args, **kwargs)
            self._replaced_data(func, args)
            return result
        if func is torch.Tensor.__eq__:
            self.looks_up = self.looks_up or _is_containment(sys._getframe(1))
        flow = control_flow.plain(func)
        if flow is not None:
            with self:
                return flow(*args, **kwargs)
        own = graph_writer.is_torchs(func, args, kwargs)
        run = functools.partial(unseen, self._dispatch.call, func) if own else func
        return self._node(
            written.op,
            written.target,
            run,
            args,
            kwargs,
            shown=written.arguments(args),
            reads=written.reads,
            views=own and self._writer.provenance.has_writes,
        )

    def _replaced_data(self, func: Any, args: tuple[Any, ...]) -> None:
        """``x.data = y``: what ``x`` holds comes from where ``y`` does."""
        attribute = getattr(getattr(func, "__self__", None), "__name__", "")
        if (attribute, getattr(func, "__name__", "")) == ("data", "__set__"):
            self._writer.provenance.bind(args[0], Origin(self._writer.node_of(args[1])))

    def same(self, tensor: torch.Tensor, other: Any) -> None:
        """A parameter was made: it holds what another tensor does."""
        if self._dispatch.effects is None and isinstance(other, torch.Tensor):
            with self._dispatch.node():
                self._writer.provenance.bind(tensor, Origin(self._writer.node_of(other)))

    def call_opaque(
        self, target: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A function is called that is one node whatever it does inside."""
        if self._dispatch.effects is not None:
            return function(*args, **kwargs)
        shown = tuple(arg for arg in args if not isinstance(arg, torch.autograd.function.FunctionCtx))
        self._function = target
        try:
            return self._node("call_function", target, function, args, kwargs, shown=shown)
        finally:
            self._function = None

    def transform(
        self, transformed: Callable[..., Any], function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Call ``transformed`` with ``function``, which alone is looked into, and the arguments."""

        def watched(*args: Any, **kwargs: Any) -> Any:
            effects, self._dispatch.effects = self._dispatch.effects, None
            try:
                return function(*args, **kwargs)
            finally:
                self._dispatch.effects = effects

        with self._dispatch.node():
            return transformed(watched, *args, **kwargs)

    def _orphan(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, effects: Effects) -> None:
        """An operator of the dispatcher has run that no function of torch called."""
        packet = getattr(func, "overloadpacket", func)
        if getattr(packet, "__name__", "") in ("alias", "detach", "lift", "lift_fresh"):  # the same, in other clothes
            if isinstance(out, torch.Tensor) and self._writer.is_known(args[0]):
                with self._dispatch.node():
                    self._writer.provenance.bind(out, self._writer.origin_of(args[0]))
        elif pytree.tensors(out) or effects.written:
            with self._dispatch.node():
                given = self._writer.arguments(args, kwargs)
                self._gives(
                    self._writer.add("call_function", packet, *given, **self._here("call_function")), out, effects
                )

    # -- modules

    def call_module(
        self, original: Callable[..., Any], module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A module is called."""
        if self._dispatch.effects is not None:
            opens = isinstance(self._function, type) or self._function is torch.vmap
            if opens and self._attributes.has_module(module):
                self.entered.add(self._function)
            return original(module, *args, **kwargs)
        if not self._attributes.has_module(module):
            with self._dispatch.node():
                self._strangers.enter_context(untouched(module))
        path = self._frames.path(module)
        if is_leaf(module, path, self._patterns):
            return self._call_leaf(original, module, path, args, kwargs)
        if module is self._model:
            return original(module, *args, **kwargs)
        run = functools.partial(original, module, *args, **kwargs)
        where = place(sys._getframe(1), _BORDERS).get("where", "")
        result = self._frames.run(run, module, path, args, kwargs, where=where)
        return (
            self._frames.generate(result, module, path, args, kwargs) if isinstance(result, GeneratorType) else result
        )

    def call_method(
        self, original: Callable[..., Any], name: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A method of a module is called: a frame, unless it is called while the module runs."""
        run = functools.partial(original, module, *args, **kwargs)
        if self._dispatch.effects is not None or not self._attributes.has_module(module) or self._frames.has(module):
            return run()
        path = self._frames.path(module)
        if is_leaf(module, path, self._patterns):
            return run()
        where = place(sys._getframe(1), _BORDERS).get("where", "")
        return self._frames.run(run, module, path, args, kwargs, method=name, where=where)

    def _call_leaf(
        self, original: Callable[..., Any], module: nn.Module, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The node stands for ``forward`` alone: hooks are the model's code."""

        def node(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if is_torch_nn(type(module)):
                function = functools.partial(unseen, function)
            return self._node("call_module", path, function, args, kwargs, owner=module, marks=self._frames.marks(path))

        if not has_hooks(module):
            return node(functools.partial(original, module), *args, **kwargs)
        with patched([Patch(vars(module), "forward", functools.partial(node, module.forward))]):
            return original(module, *args, **kwargs)

    # -- nodes

    def _node(
        self,
        op: str,
        target: Any,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        shown: tuple[Any, ...] | None = None,
        reads: bool = False,
        owner: nn.Module | None = None,
        marks: tuple[str, ...] = (),
        views: bool = False,
    ) -> Any:
        """Run what is one node, and write it down if a tensor comes out of it or is written into.

        Args:
            op: its opcode.
            target: what it is called.
            function: runs it.
            args: what it is run with.
            kwargs: and by keyword.
            shown: the positional arguments as they are written down.
            reads: whether it makes plain values of what is in a tensor.
            owner: the module, if it is one.
            marks: what it is marked with.
            views: whether its results may be views of its arguments, which it leaves as they are.
        """
        arguments = functools.partial(self._writer.arguments, args if shown is None else shown, kwargs, deep=True)
        reachable = self._writer.provenance.is_reachable
        late = views and all(reachable(tensor) for _, tensor in pytree.tensors((args, kwargs)))
        given = None if late else arguments()
        if self._most and self.count > self._most:
            raise LimitError
        try:
            with self._dispatch.node() as effects:
                result = function(*args, **kwargs)
        except by_model() as error:
            here = self._here(op, (*marks, "failed"))
            self._failure = error, functools.partial(self._writer.add, op, target, *(given or arguments()), **here)
            raise
        if not (reads or effects.written or pytree.tensors(result)):
            return result
        with self._dispatch.node():
            if given is None:
                with self._writer.showing(() if effects.written else result):
                    given = arguments()
            node = self._writer.add(op, target, *given, **self._here(op, marks))
            if hidden := self._writer.hidden(node, effects.read, owner, pytree.tensors((args, kwargs))):
                node.kwargs = {**node.kwargs, **hidden}
                node.meta["hidden"] = tuple(hidden)
            if reads:
                kind = "test" if isinstance(result, bool) else "number"
                node.meta.update(outputs=(), result=type(result).__name__, macs=None, reads=kind)
                if kind == "number" and self._change is not None:
                    result = self._change(self._reads, result)
                self._reads += kind == "number"
                self._writer.reads(node, result)
                return result
            effects.inplace = effects.inplace if owner is not None else bool(effects.written)
            result = self._gives(node, result, effects)
            if effects.written and not node.meta["outputs"]:
                self._writer.gives_written(node, (args, kwargs))
        return result

    def _here(self, op: str, marks: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the metadata of a node that follows from where it runs."""
        spot = place(sys._getframe(2), _BORDERS, leaf=op == "call_module")
        return {"stack": self._frames.stack, "marks": (*self.regions.marks(), *marks), **spot}

    def _gives(self, node: fx.Node, result: Any, effects: Effects) -> Any:
        node.meta.update(**effects.count.to_meta(), random=effects.random)
        node.meta["inplace"] = effects.inplace
        if effects.data_dependent:
            node.meta["marks"] = (*node.meta.get("marks", ()), SIZE_FROM_VALUES)
        if effects.inplace:
            for path in dict.fromkeys(map(self._attributes.held_in, effects.written)):
                if path:
                    self._mark_state(node, path)
        result = self._writer.gives(node, result, effects.written)
        if self.regions.autocasts and any(tensor.is_meta for _, tensor in pytree.tensors(result)):
            raise NotOnMetaError("torch.autocast leaves tensors on the meta device as they are")
        return result

    def failed(self, error: BaseException) -> None:
        """The run ended with an error: the operator that raised it is the last node."""
        noted, write = self._failure
        cause: BaseException | None = error
        while cause is not None:
            if cause is noted:
                write()
                break
            cause = cause.__cause__ or cause.__context__


def _is_containment(frame: FrameType | None) -> bool:
    """Return whether the code that compares a tensor asks whether it is in a list."""
    while frame is not None and is_foreign(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == dis.opmap["CONTAINS_OP"]


class LimitError(BaseException):
    """More nodes were made than may be."""


class NotOnMetaError(Exception):
    """Raised where a model behaves differently on the meta device."""


_BORDERS = borders(call=[Recorder.call_module, Recorder.call_method], end=[Recorder.run])
