"""Write a `torch.fx.Graph` from tensors: the node that made a tensor stands for it."""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from msgspec.structs import replace
from torch import fx, nn

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.formatting import meta_of, short_meta, tensors_in, text
from sphinx_fxgraph.capture.pytree import Path, Step
from sphinx_fxgraph.capture.recorder.copies import alias, snapshot, wrapped_tensors
from sphinx_fxgraph.capture.recorder.provenance import Attributes, Origin, Provenance, held
from sphinx_fxgraph.capture.torch_private import OpOverload
from sphinx_fxgraph.capture.torch_private import pytree as torch_pytree
from sphinx_fxgraph.capture.trace import Frame, after_writes
from sphinx_fxgraph.record.model import TensorMeta


class Written(NamedTuple):
    """A function as torch.fx would write it."""

    op: str
    target: Any
    arguments: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple
    """Of the call -> of the node."""
    reads: bool = False
    """It makes a plain Python value of what is in a tensor: a path may depend on it."""


_PROPERTIES = frozenset({"T", "mT", "H", "mH", "data", "grad", "imag", "real"})
"""Those of a tensor that are tensors."""

_QUIET = frozenset(
    """
    __delete__ __dir__ __format__ __hash__ __len__ __reduce_ex__ __repr__ __set__ data_ptr dense_dim dim element_size
    get_device has_names is_coalesced is_complex is_contiguous is_conj is_floating_point is_inference is_neg is_pinned
    is_same_size is_set_to is_shared is_signed ndimension nelement numel q_scale q_zero_point qscheme register_hook
    requires_grad_ retain_grad size sparse_dim storage storage_offset storage_type stride untyped_storage
    """.split()  # noqa: SIM905 - words read better than a list of strings
)
"""Functions that say something of a tensor but its values; most are asked all the time."""

_READS: dict[str, Any] = {
    **dict.fromkeys(("allclose", "equal", "is_nonzero", "item", "numpy", "tolist")),
    "__array__": "numpy",
    "__bool__": bool,
    "__complex__": complex,
    "__contains__": operator.contains,
    "__float__": float,
    "__index__": operator.index,
    "__int__": int,
}


@functools.lru_cache(maxsize=4096)
def is_own(function: Any) -> bool:
    """Return whether a function is torch's.

    No operator of another library, nor a function that such a one tells torch of.
    """
    if isinstance(function, OpOverload):
        return function.namespace in ("aten", "prim", "prims")
    return (getattr(function, "__module__", None) or "torch").partition(".")[0] == "torch"


def is_torchs(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a call runs torch's own code alone, and no function that it is given."""
    return is_own(function) and not any(map(callable, args)) and not any(map(callable, kwargs.values()))


@functools.lru_cache(maxsize=4096)
def written(function: Any) -> Written | None:
    """The node of a function that `torch.overrides` hands over; nothing for one that is no operator."""
    name = getattr(function, "__name__", "")
    if name == "__get__":
        attribute = getattr(getattr(function, "__self__", None), "__name__", "")
        if attribute not in _PROPERTIES:
            return None
        return Written("call_function", getattr, lambda args: (*args[:1], attribute))
    if name in _QUIET:
        return None
    if isinstance(function, OpOverload):
        return Written("call_function", function.overloadpacket)
    if not getattr(function, "__qualname__", "").startswith(("TensorBase.", "Tensor.")):
        return Written("call_function", function, reads=name in _READS)
    if name in _READS:
        target = _READS[name] or name
        return Written("call_method" if isinstance(target, str) else "call_function", target, reads=True)
    return _operator(name) or Written("call_method", name)


def _operator(name: str) -> Written | None:
    """Return the operator that Python writes with a sign."""
    if not (name.startswith("__") and name.endswith("__")):
        return None
    plain = {"__rdiv__": "rtruediv", "__div__": "truediv", "__idiv__": "itruediv"}.get(name, name.strip("_"))
    for swapped, spelled in ((False, plain), (True, plain.removeprefix("r"))):
        function = getattr(operator, spelled, None) or getattr(operator, f"{spelled}_", None)
        if function is not None:
            return Written("call_function", function, _swapped if swapped else tuple)
    return None


def _swapped(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return args[1], args[0], *args[2:]


class GraphWriter:
    """A graph, and the node that every live tensor comes from.

    Args:
        attributes: the names of the model's tensors.
        stack: returns the module calls that are running.
    """

    def __init__(self, attributes: Attributes, stack: Callable[[], tuple[Frame, ...]]) -> None:
        self.graph = fx.Graph()
        self.identity = False
        """Whether a tensor that a node returns as it was given stays the same object."""
        self.aliased = False
        """Whether one was made another object."""
        self.added: list[fx.Node] = []
        """The nodes that `add` has made."""
        self.provenance = Provenance(attributes.tensors())
        self._attributes = attributes
        self._stack = stack
        self._read: dict[str, fx.Node] = {}
        self._taken: dict[tuple[fx.Node, Path], fx.Node] = {}
        self._last: dict[fx.Node, fx.Node] = {}
        """The last node that was put behind one."""
        self._returns_written: set[fx.Node] = set()
        """The nodes whose result is the tensor that they wrote, after what was written before."""
        self._shown: Sequence[torch.Tensor] = ()
        """The views that a node gives, while its arguments are looked up: it takes only the writes that they show."""
        self.lookups: dict[int, fx.Node] = {}
        """By identity of a tensor, what `node_of` has returned; whoever reads it clears it before."""
        self._constants = 0
        self._plain: dict[int, tuple[Any, fx.Node]] = {}
        """By identity: what was read out of a tensor as a plain value, kept so that the identity stays its own."""

    # -- from tensors to nodes

    def node_of(self, tensor: torch.Tensor) -> fx.Node:
        """Return the node of a tensor as it is now, with everything that was written into it."""
        origin = self.origin_of(tensor)
        node = self._taken_from(origin.node, origin.path) if origin.path else origin.node
        self.lookups[id(tensor)] = node
        return node

    def origin_of(self, tensor: torch.Tensor) -> Origin:
        """Return the origin of a tensor as it is now; it is bound to that."""
        origin = self.provenance.of(tensor)
        if origin is None:
            origin = self._first_origin(tensor)
        writes = self.provenance.writes(tensor)
        if not writes.nodes or (self._shown and not self.provenance.touch(tensor, writes.nodes, self._shown)):
            return origin
        nodes = list(writes.nodes)
        last = nodes[-1]
        if writes.exact and last in self._returns_written and last.meta["outputs"] == (meta_of(tensor),):
            origin = Origin(nodes[-1])
        else:
            if not writes.whole:
                nodes.insert(0, self._taken_from(origin.node, origin.path))
            origin = Origin(self._joined(tensor, nodes, has_base=not writes.whole))
        self.provenance.bind(tensor, origin)
        return origin

    def _first_origin(self, tensor: torch.Tensor) -> Origin:
        """Bind a tensor that nothing was seen to make, and return its origin."""
        held, _ = self._attributes.tensor(tensor)
        if not held and type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            wrapped = [each for each in wrapped_tensors(tensor) if self.provenance.is_bound(each)]
            if wrapped:
                node = self.add("call_function", type(tensor), tuple(map(self.node_of, wrapped)), {}, macs=None)
                node.meta.update(stack=self._stack(), outputs=(meta_of(tensor),), result="", inplace=False)
                self.provenance.bind(tensor, Origin(node))
                return Origin(node)
        if not held:
            origins = self.provenance.adopt(tensor)
            if len(origins) == 1 and self.provenance.of(tensor) is not None:
                return origins[0]
            if origins:
                origin = Origin(self._joined(tensor, [self._taken_from(*each) for each in origins]))
                self.provenance.bind(tensor, origin)
                return origin
        origin = Origin(self._attribute(tensor))
        self.provenance.bind(tensor, origin, first=bool(held))
        return origin

    def _joined(self, tensor: torch.Tensor, nodes: Sequence[fx.Node], *, has_base: bool = False) -> fx.Node:
        """Add the node of a tensor whose parts come from several nodes.

        Args:
            tensor: the tensor.
            nodes: the nodes, the oldest first.
            has_base: whether the first of them is the tensor before the others wrote into it.
        """
        node = self.add("call_function", after_writes, tuple(dict.fromkeys(nodes)), {}, stack=self._stack(), macs=None)
        node.meta.update(outputs=(meta_of(tensor),), result="", inplace=False, has_base=has_base)
        return node

    def arguments(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], *, deep: bool = False
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with nodes in place of tensors (see `nodes`)."""
        given = {key: self.nodes(value, deep=deep) for key, value in kwargs.items()}
        return tuple(self.nodes(value, deep=deep) for value in args), given

    @contextlib.contextmanager
    def showing(self, result: Any) -> Iterator[None]:
        """While this context is entered, look up the arguments of a node whose results may be views of them."""
        self._shown = [tensor for _, tensor in pytree.tensors(result)] if self.provenance.has_writes else ()
        try:
            yield
        finally:
            self._shown = ()

    def nodes(self, value: Any, *, deep: bool = False, around: tuple[int, ...] = ()) -> Any:
        """A value with nodes in place of tensors, its lists and dicts copied.

        Args:
            value: anything.
            deep: look into plain objects and dataclasses too, which become dicts of what they hold; and write the
                whole result of a node as that node.
            around: the identities of the containers that it stands in; one that is in itself is cut there.
        """
        if isinstance(value, torch.Tensor):
            return self.node_of(value)
        if id(value) in self._plain:
            return self._plain[id(value)][1]
        if isinstance(value, pytree.PLAIN):
            return value
        if id(value) in around:
            return ...
        around = (*around, id(value))
        whole = self._whole(value) if deep else None
        if whole is not None:
            return whole
        if isinstance(value, slice):
            return slice(*(self.nodes(end) for end in (value.start, value.stop, value.step)))
        if isinstance(value, tuple) and type(value) is not torch.Size:
            entries = [self.nodes(item, deep=deep, around=around) for item in value]
            return type(value)._make(entries) if hasattr(value, "_make") and not deep else tuple(entries)
        if isinstance(value, list):
            return [self.nodes(item, deep=deep, around=around) for item in value]
        if isinstance(value, Mapping):
            return {key: self.nodes(item, deep=deep, around=around) for key, item in value.items()}
        held = pytree.tensors(value) if deep else []
        return {"".join(map(str, path)).lstrip("."): self.node_of(tensor) for path, tensor in held} or value

    def _whole(self, value: Any) -> fx.Node | None:
        """The node whose whole result a value is, as that of an LSTM that is handed on."""
        if not isinstance(value, tuple | list | Mapping) or not value:
            return None
        found = pytree.tensors(value)
        origin = self.provenance.of(found[0][1]) if found else None
        if origin is None or not origin.path or len(origin.node.meta["outputs"]) != len(found):
            return None
        same = all(self.provenance.is_now(tensor, Origin(origin.node, path)) for path, tensor in found)
        return origin.node if same and origin.node.op != "placeholder" else None

    def hidden(
        self,
        node: fx.Node,
        read: Mapping[int, torch.Tensor],
        owner: nn.Module | None,
        arguments: list[tuple[pytree.Path, torch.Tensor]],
    ) -> dict[str, fx.Node]:
        """Return the tensors that a node used without receiving them.

        An attribute set by a hook, a variable of enclosing code.
        """
        known, given = {*node.all_input_nodes}, {id(tensor) for _, tensor in arguments}
        hidden: dict[str, fx.Node] = {}
        for number, tensor in read.items():
            if number in given:
                continue
            origin = self.origin_of(tensor)
            if origin.node in known or origin.node.op == "get_attr":
                continue
            source = self.node_of(tensor)
            if source not in known:
                known.add(source)
                name = next((name for name, value in held(owner) if value is tensor), "captured")
                free = (f"{name}_{number}" if number else name for number in itertools.count())
                hidden[next(key for key in free if key not in hidden and key not in node.kwargs)] = source
        return hidden

    def _attribute(self, tensor: torch.Tensor) -> fx.Node:
        """The node of a tensor that nothing made while the model ran."""
        path, kind = self._attributes.tensor(tensor)
        if not path:  # of the model's code, or made where torch tells nobody
            path, kind = f"_tensor_constant{self._constants}", "constant"
            self._constants += 1
        if path not in self._read:
            node = self.graph.create_node("get_attr", path)
            node.meta.update(stack=(), outputs=(meta_of(tensor),), result="", kind=kind)
            if path.startswith("_tensor_constant"):
                node.meta["constant"] = snapshot(tensor)
            self._read[path] = node
        return self._read[path]

    def _taken_from(self, node: fx.Node, path: Path) -> fx.Node:
        """The node of what stands in a result: one for each step, as torch.fx has them; one alone into an object."""
        steps = [Step("".join(map(str, path)).lstrip("."), True)] if any(step.attribute for step in path) else path
        at: Path = ()
        taken = node
        for step in steps:
            at = (*at, step)
            if (node, at) not in self._taken:
                with self.graph.inserting_after(self._last.get(node, node)):
                    function = getattr if step.attribute else operator.getitem
                    inner = self.graph.call_function(function, (taken, step.key))
                whole = path if step.attribute else at
                outputs = _within(node.meta["outputs"], "".join(map(str, whole)))
                single = len(outputs) == 1 and not outputs[0].path
                result = "" if single else f"({', '.join(map(short_meta, outputs))})"
                kept: dict[str, Any] = {
                    key: node.meta[key] for key in ("stack", "where", "source", "marks") if key in node.meta
                }
                inner.meta.update(kept, outputs=outputs, result=result, macs=None, takes=True)
                self._taken[node, at] = self._last[node] = inner
            taken = self._taken[node, at]
        return taken

    # -- from nodes to tensors

    def add(self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], **meta: Any) -> fx.Node:
        """A node at the end of the graph."""
        node = self.graph.create_node(op, target, name=_node_name(target))
        node.args = args  # of what it makes itself torch.fx looks through all arguments
        if kwargs:
            node.kwargs = kwargs
        node.meta.update(meta)
        self.added.append(node)
        return node

    def gives(self, node: fx.Node, result: Any, written: Iterable[torch.Tensor] = ()) -> Any:
        """Note what a node gives and what it wrote into.

        Returns:
            The result. A tensor in it that was there before and was not written into is another object of the same
            storage, so that those who use it can be told from those who use what it was.
        """
        single = isinstance(result, torch.Tensor)
        node.meta["outputs"] = tensors_in(result)
        node.meta["result"] = "" if single else text(result)
        for tensor in written:
            self.provenance.wrote(tensor, node)
        if single and not self.is_known(result):  # as most are
            self.provenance.bind(result, Origin(node))
            self._bind_wrapped(result, Origin(node))
            return result
        fresh: dict[int, torch.Tensor] = {}
        changed = {id(tensor) for _, tensor in pytree.tensors(result) if self._is_written_by(tensor, node)}
        if changed:
            self._returns_written.add(node)

        def own(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) in changed or not self.is_known(tensor):
                return tensor
            return fresh.setdefault(id(tensor), self.alias(tensor))

        result = pytree.replaced(result, own)
        for path, tensor in pytree.tensors(result):
            if id(tensor) in changed or not self.is_known(tensor) or (self.identity and node.op != "placeholder"):
                self.provenance.bind(tensor, Origin(node, path))
                self._bind_wrapped(tensor, Origin(node, path))
        return result

    def _bind_wrapped(self, tensor: torch.Tensor, origin: Origin) -> None:
        """Let the tensors that a tensor of a class of its own is made of come from where it does."""
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            for each in wrapped_tensors(tensor):
                if not self.provenance.is_bound(each) and not self._attributes.tensor(each)[0]:
                    self.provenance.bind(each, origin)

    def alias(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the same tensor as another object that has the same attributes; the tensor itself if it may not be."""
        if self.identity:
            return tensor
        other = alias(tensor)
        self.aliased = self.aliased or other is not tensor
        return other

    def gives_written(self, node: fx.Node, arguments: Any) -> None:
        """Let a node without a result give the arguments that it wrote into, such as ``x[0] = y``."""
        changed = {id(t): t for _, t in pytree.tensors(arguments) if self._is_written_by(t, node)}
        tensors = list(changed.values())
        if not tensors:
            return
        single = len(tensors) == 1
        value = tensors[0] if single else tensors
        node.meta.update(outputs=tensors_in(value), result="" if single else text(value))
        self._returns_written.add(node)
        for number, tensor in enumerate(tensors):
            self.provenance.bind(tensor, Origin(node, () if single else (Step(number),)))

    def _is_written_by(self, tensor: torch.Tensor, node: fx.Node) -> bool:
        """Return whether a tensor that was there before was written by the node that is being added."""
        if self.provenance.of(tensor) is None:
            return self._attributes.tensor(tensor)[0] != "" and self.provenance.is_logged(tensor, node)
        return node in self.provenance.writes(tensor).nodes

    def reads(self, node: fx.Node, value: Any) -> None:
        """Note the plain value that a node has read out of a tensor, unless there is but one object of such a value."""
        if not (value is None or isinstance(value, bool) or (isinstance(value, int) and -5 <= value <= 256)):
            self._plain[id(value)] = value, node

    def unread(self, value: Any) -> Any:
        """A value with types in place of what was read out of tensors."""
        if not self._plain:
            return value
        try:
            return torch_pytree.tree_map(
                lambda item: type(item) if id(item) in self._plain else item,
                value,
                is_leaf=lambda x: id(x) in self._plain,
            )
        except RecursionError:  # a container that is in itself
            return value

    def is_known(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor was there before: made by a node, or the model's."""
        return self.provenance.of(tensor) is not None or bool(self._attributes.tensor(tensor)[0])


@functools.lru_cache(maxsize=4096)
def _node_name(target: Any) -> str:
    """Return the name that torch.fx would give to a node."""
    return fx.Graph()._target_to_str(target)


def _within(outputs: tuple[TensorMeta, ...], path: str) -> tuple[TensorMeta, ...]:
    """The tensors that stand at a path of a result or below it."""
    return tuple(replace(each, path=each.path[len(path) :]) for each in outputs if each.path.startswith(path))
