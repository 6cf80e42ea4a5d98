"""The export tracer: what ``torch.export.export`` makes of a model, or one sentence on why it refuses.

The first dimension of every tensor input is left open (``torch.export.Dim.AUTO``) and shown as ``s0``, ``s1`` in order
of appearance; torch.export closes it where the model needs one size. All others have the size of the inputs: with every
dimension open a ResNet takes seven times as long, and its shapes read ``((s53 - 1)//32) + 1``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import operator
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from msgspec import structs
from torch import fx, nn

from sphinx_fxgraph.capture.errors import CaptureError, by_model
from sphinx_fxgraph.capture.formatting import dotted, short_dtype, short_name, tensors_in, text
from sphinx_fxgraph.capture.inputs import ArgumentError, bind
from sphinx_fxgraph.capture.metrics import ProbeError, probe
from sphinx_fxgraph.capture.source_location import traced_place
from sphinx_fxgraph.capture.state import followed_by_dynamo
from sphinx_fxgraph.capture.torch_private import open_sizes_of_one, pytree
from sphinx_fxgraph.capture.trace import Calls, Frame, Trace
from sphinx_fxgraph.capture.tracers.collapse import close
from sphinx_fxgraph.capture.tracers.refusals import Symbols, export_refusal

if TYPE_CHECKING:
    from torch.export import ExportedProgram


_CHECKS = frozenset(
    {"_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size"}
)
_MOVED = "_empty_nn_module_stack_from_metadata_hook"
"""What torch.export gives for the module stack of an operator that it has made itself."""


class Flat:
    """Builds the graph.

    Args:
        model: gets the constants of the graph as attributes.
        program: what was exported.
        given: the leaves of the inputs it was exported with.
    """

    def __init__(self, model: nn.Module, program: ExportedProgram, given: Sequence[Any]) -> None:
        self.graph = fx.Graph()
        self.inputs: list[Any] = []
        """What the placeholders stand for."""
        self._model, self._program = model, program
        self._paths = {path for path, _ in model.named_modules(remove_duplicate=False)}
        self._calls = Calls()
        self._frames: dict[tuple[str, ...], Frame] = {}
        self._counts: Counter[str] = Counter()
        self._around: tuple[Frame, ...] = ()
        """The frames of the branch of ``torch.cond`` that is being written."""
        self.branches: dict[str, nn.Module] = {}
        """What stands for a branch in the record's modules, by path."""
        self._values: dict[fx.Node, Any] = {}
        """What the exported program says that a node gives."""
        self._output(self._run(program.graph_module, self._placeholders(given), ()))
        self._drop_unused()

    def note_results(self) -> None:
        """Write into each node's ``meta`` what it gives, with open dimensions; a run has noted those of the inputs."""
        renamed = Symbols()
        for node in self.graph.nodes:
            node.meta["marks"] = tuple(mark for mark in node.meta.get("marks", ()) if mark != "failed")
            node.kwargs = {name: value for name, value in node.kwargs.items() if not _is_backend(name, value)}
            if any(isinstance(value, _Inner) for value in node.args):  # its inside is not looked into
                node.meta.update(macs=None, uncounted={short_name(node.target): 1})
            if node not in self._values:
                continue
            value = self._values[node]
            if "outputs" in node.meta:
                node.meta["sizes"] = node.meta["outputs"]
            node.meta["outputs"] = tuple(
                structs.replace(meta, shape=tuple(map(renamed.dim, meta.shape))) for meta in tensors_in(value)
            )
            node.meta["result"] = "" if isinstance(value, torch.Tensor) else renamed.text(text(value))

    # -- nodes

    def _placeholders(self, given: Sequence[Any]) -> Iterator[Any]:
        """Return the placeholder of each input of the exported graph."""
        nodes = [node for node in self._program.graph.nodes if node.op == "placeholder"]
        rest = iter(given)
        for node, spec in zip(nodes, self._program.graph_signature.input_specs, strict=True):
            if spec.kind.name != "USER_INPUT":
                yield self._node("get_attr", self._attribute(str(spec.target)), (), {}, node)
                continue
            value = next(rest)
            if isinstance(value, torch.Tensor):
                self.inputs.append(value)
                yield self._node("placeholder", node.name, (), {}, node)
            else:  # it is part of the graph as it is
                yield value

    def _attribute(self, target: str) -> str:
        """Where an attribute stands in the model; a constant of its code is put there."""
        owner, _, name = target.rpartition(".")
        try:
            getattr(self._model.get_submodule(owner), name)
        except AttributeError:
            taken = sum(each.startswith("_tensor_constant") for each in vars(self._model))
            setattr(self._model, f"_tensor_constant{taken}", self._program.constants[target])
            return f"_tensor_constant{taken}"
        return target

    def _run(self, module: fx.GraphModule, given: Iterator[Any], marks: tuple[str, ...]) -> Any:
        """Write the nodes of an exported graph; returns what it returns."""
        env: dict[fx.Node, Any] = {}
        for node in module.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "get_attr":
                env[node] = _Inner(str(node.target), operator.attrgetter(str(node.target))(module))
            elif node.op == "output":
                return fx.node.map_arg(node.args[0], env.__getitem__)
            elif short_name(node.target) not in _CHECKS:
                args, kwargs = (fx.node.map_arg(part, env.__getitem__) for part in (node.args, node.kwargs))
                env[node] = self._call(node, args, dict(kwargs), marks)
        raise AssertionError("an exported graph has an output")

    def _call(self, node: fx.Node, args: Any, kwargs: dict[str, Any], marks: tuple[str, ...]) -> Any:
        """Write an operator, or those of a region; returns what stands for its result."""
        name = short_name(node.target)
        if name == "getitem" and isinstance(args[0], tuple | list):  # of what a region returns
            return args[0][args[1]]
        if name == "wrap_with_set_grad_enabled":
            enabled, inner, *given = args
            mark = "enable_grad" if enabled else "no_grad"
            return self._run(inner.module, iter(given), (*_without(marks, "grad"), mark))
        if name == "wrap_with_autocast":
            _, dtype, enabled, _, inner, *given = args
            region = (f"autocast {short_dtype(dtype)}" if dtype else "autocast",) if enabled else ()
            return self._run(inner.module, iter(given), (*_without(marks, "autocast"), *region))
        if name == "cond" and isinstance(args[1], _Inner):
            return self._cond(node, *args, marks=marks)
        schema = getattr(node.target, "_schema", None)
        made = self._node("call_function", node.target, *_by_name(schema, args, kwargs), node)
        made.meta["stack"] = stack = self._stack(node.meta.get("nn_module_stack") or {})
        made.meta["marks"] = marks
        made.meta["inplace"] = schema is not None and schema.is_mutable
        made.meta.update(traced_place(node.meta.get("stack_trace") or "", stack))
        return made

    def _cond(
        self, node: fx.Node, condition: Any, yes: _Inner, no: _Inner, operands: Sequence[Any], *, marks: tuple[str, ...]
    ) -> Any:
        """Write both branches of ``torch.cond``, each in a frame, and what chooses between their results."""
        around = self._stack(node.meta.get("nn_module_stack") or {})
        outer, results = self._around, []
        for branch, body in (("true", yes), ("false", no)):
            path = ".".join(filter(None, (around[-1].path if around else "", f"cond_{branch}")))
            self.branches.setdefault(path, type(f"cond_{branch}", (nn.Module,), {"__module__": "torch"})())
            self._around = (*around, Frame(path, f"torch.cond_{branch}", self._counts[path]))
            self._counts[path] += 1
            results.append(self._run(body.module, iter(operands), marks))
            self._around = outer
        results_if_true, results_if_false = results
        if not isinstance(results_if_true, tuple | list):
            return self._choice(node, condition, results_if_true, results_if_false, around, marks)
        pairs = zip(results_if_true, results_if_false, strict=True)
        made = [self._choice(node, condition, one, other, around, marks) for one, other in pairs]
        self._values.update(zip(made, node.meta.get("val", ()), strict=False))
        return made

    def _choice(
        self, node: fx.Node, condition: Any, yes: Any, no: Any, around: tuple[Frame, ...], marks: tuple[str, ...]
    ) -> fx.Node:
        """Write the node that chooses between what two branches give."""
        made = self._node("call_function", chosen, (condition, yes, no), {}, node)
        made.meta.update(stack=self._calls.go(around), marks=marks, inplace=False)
        made.meta.update(traced_place(node.meta.get("stack_trace") or "", around))
        return made

    def _stack(self, noted: Mapping[str, tuple[str, Any]]) -> tuple[Frame, ...]:
        """The frames of an operator; one that torch.export has made itself stands in what is open at that place."""
        if not noted or _MOVED in noted:
            return self._calls.go(self._around) if self._around else self._calls.open
        keys: tuple[str, ...] = ()
        frames = []
        for key, (noted_path, kind) in noted.items():
            path = noted_path.removeprefix("_export_root").removeprefix(".")  # torch.export wraps the model
            if not path or path not in self._paths:
                continue
            keys = (*keys, key)  # other calls of a module, or of one around it, have other keys
            if keys not in self._frames:
                name = kind if isinstance(kind, str) else dotted(kind)
                self._frames[keys] = Frame(path, name, self._counts[path])
                self._counts[path] += 1
            frames.append(self._frames[keys])
        if self._around:  # a branch has the modules that its own operators stand in, if any
            depth = len(self._around) - 1
            frames = [*self._around, *(frame for frame in frames[depth:] if frame not in self._around)]
        return self._calls.go(tuple(frames))

    def _node(self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], source: fx.Node) -> fx.Node:
        node = self.graph.create_node(op, target, args, kwargs)
        node.meta["stack"] = ()
        if "val" in source.meta:
            self._values[node] = source.meta["val"]
        return node

    def _output(self, returned: Sequence[Any]) -> None:
        """The output, in the structure that the model returns."""
        specs = self._program.graph_signature.output_specs
        results = [item for item, spec in zip(returned, specs, strict=True) if spec.kind.name == "USER_OUTPUT"]
        structure = self._program.call_spec.out_spec
        assert structure is not None
        node = self.graph.create_node("output", "output", (_plain(pytree.tree_unflatten(results, structure)),))
        node.meta["stack"] = ()
        values = fx.node.map_arg(results, lambda result: self._values.get(result))
        self._values[node] = pytree.tree_unflatten(values, structure)

    def _drop_unused(self) -> None:
        """Leave out the shape arithmetic that only an assertion used."""
        for node in reversed(self.graph.nodes):
            is_loose = node.op == "call_function" and not node.users and not node.meta["inplace"]
            if is_loose and node in self._values and not tensors_in(self._values[node]):
                self.graph.erase_node(node)


def _without(marks: tuple[str, ...], word: str) -> tuple[str, ...]:
    """The marks of a region but for a kind: of two of a kind the inner one counts."""
    return tuple(mark for mark in marks if word not in mark)


def chosen(condition: Any, yes: Any, no: Any) -> Any:  # noqa: ARG001 - both have the same shapes
    """Stand in a flat graph for ``torch.cond``: what a branch gives."""
    return yes


chosen.__module__, chosen.__name__, chosen.__qualname__ = "torch", "cond", "cond"


class _Inner:
    """A graph that an operator such as ``cond`` is given; in texts its name."""

    def __init__(self, name: str, module: fx.GraphModule) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = None  # type: ignore[assignment]  # like a function without a home: its name stands alone
        self.module = module

    def __call__(self, *args: Any) -> Any:
        """Run it."""
        return self.module(*args)


def _by_name(schema: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of an operator as its callers write them: options by name, and only those that say something.

    An option is what comes after the first argument that may be left out, if it is no tensor.
    """
    if schema is None:
        return tuple(args), kwargs
    positional: list[Any] = []
    named: dict[str, Any] = {}
    optional = False
    for argument, value in zip(schema.arguments, args, strict=False):
        optional = optional or argument.has_default_value() or isinstance(argument.type, torch.OptionalType)
        if not named and (not optional or _holds_node(value)):
            positional.append(value)
        elif not named and all(value is None for value in args[len(positional) :]):
            break
        else:
            named[argument.name] = value
    named |= kwargs
    defaults = {each.name: each.default_value for each in schema.arguments if each.has_default_value()}
    kept = {
        name: value
        for name, value in named.items()
        if name not in defaults or _holds_node(value) or not _is_default(value, defaults[name])
    }
    return tuple(positional), kept


def _is_backend(name: str, value: Any) -> bool:
    """Return whether an option only says where and with which library an operator was run for the capture."""
    if name == "device":
        return torch.device(value).type in ("cpu", "meta")
    return name in ("cudnn_enable", "cudnn_enabled", "pin_memory") and value is False


def _holds_node(value: Any) -> bool:
    found: list[fx.Node] = []
    fx.node.map_arg(value, found.append)
    return bool(found)


def _is_default(value: Any, default: Any) -> bool:
    """Return whether a value is the default; ``[1, 1]`` is where a lone 1 stands for every dimension."""
    if isinstance(value, list | tuple) and not isinstance(default, list | tuple):
        return bool(value) and all(item == default for item in value)
    same_type = isinstance(value, bool) == isinstance(default, bool)
    return same_type and bool(value == default)


def _plain(value: Any) -> Any:
    """A result in containers that a graph can hold."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_plain, value))
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def trace(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], leaf: Sequence[str] = (), method: str = ""
) -> Trace:
    """Export a model and bring its operators back under the modules and names they come from.

    Args:
        model: it is left with constants of the graph and, for a method, another ``forward`` (see `untouched`).
        args: what ``forward`` is called with.
        kwargs: and its keyword arguments.
        leaf: patterns of types or paths of modules that stay closed; torch.export itself opens everything.
        method: a method to export instead of ``forward``.

    Returns:
        The graph, results noted, or none and the error.
    """
    notes: list[str] = []
    if method:
        model.forward = getattr(model, method)
    try:
        args, kwargs = tuple(args), _in_order(model, args, kwargs)
        with _quiet(), followed_by_dynamo():
            program = _export(model, args, kwargs, notes)
            flat = Flat(model, program, pytree.tree_leaves((args, kwargs)))
    except (ArgumentError, CaptureError) as error:
        return Trace(fx.Graph(), [], [], error, probed=True)
    except by_model() as error:
        scripted = (path for path, each in model.named_modules() if isinstance(each, torch.jit.ScriptModule))
        reason = (
            f"torch.export refuses: {path!r} is TorchScript" if (path := next(scripted, "")) else export_refusal(error)
        )
        return Trace(fx.Graph(), [], [], CaptureError("trace", reason, cause=error), probed=True, notes=tuple(notes))
    with contextlib.suppress(ProbeError), _quiet():  # what asks for values has none on meta: then MACs stay unknown
        probe(model, flat.graph, flat.inputs)
    flat.note_results()
    close(flat.graph, leaf)
    if flat.branches:
        notes.append("both branches of torch.cond are drawn, and their MACs counted")
    return Trace(flat.graph, [], flat.inputs, probed=True, notes=tuple(notes), unregistered=flat.branches)


def _in_order(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments in the order of the signature, so that equal calls give equal records.

    Raises:
        ArgumentError: the arguments do not fit.
    """
    names = list(bind(model.forward, args, kwargs).signature.parameters)
    return dict(sorted(kwargs.items(), key=lambda item: names.index(item[0]) if item[0] in names else len(names)))


def _export(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], notes: list[str]) -> ExportedProgram:
    """Export with open dimensions, or where that fails with the sizes of the inputs."""
    from torch import export  # it and what it imports cost a second: only where it is asked for

    # A size of one is a size like any other; torch takes it for a size that must be one.
    opened: Any = _copied((args, kwargs))  # torch.export marks the tensors whose dimensions are open
    shapes = cast("Any", export.ShapesCollection)()
    for leaf in pytree.tree_leaves(opened):
        if isinstance(leaf, torch.Tensor) and leaf.dim():
            shapes[leaf] = {0: export.Dim.AUTO}
    with torch.enable_grad():  # so that the graph shows the regions without gradients
        try:
            with open_sizes_of_one():
                return export.export(model, *opened, dynamic_shapes=shapes, strict=False)
        except Exception as error:  # noqa: BLE001 - the same again without what may be the reason
            program = export.export(model, *_copied((args, kwargs)), strict=False)
            notes.append(f"no dimension is open: {export_refusal(error)}")
            return program


def _copied(value: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, torch.clone, value)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep to ourselves what torch.export prints: the graph so far, in several ways."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
