"""Capture a model: build it, trace it, propagate shapes, find subgraphs, count, and return the record."""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import importlib.util
import platform
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import torch
from msgspec import structs
from torch import fx, nn
from torch.nn.parameter import UninitializedBuffer, is_lazy

import sphinx_fxgraph
from sphinx_fxgraph.cache.fingerprints import class_files, depends_on
from sphinx_fxgraph.capture.build import LADDER, Built, build, faked
from sphinx_fxgraph.capture.dependencies import unwatched
from sphinx_fxgraph.capture.errors import CaptureError, by_model, place, said
from sphinx_fxgraph.capture.formatting import short_meta
from sphinx_fxgraph.capture.inputs import ArgumentError, cast_copies, copied
from sphinx_fxgraph.capture.mac_formulas import pooled
from sphinx_fxgraph.capture.metrics import ProbeError, measure, probe, run_totals
from sphinx_fxgraph.capture.source_location import placed
from sphinx_fxgraph.capture.state import alone, eagerly, seed, set_mode, untouched, unwrapped
from sphinx_fxgraph.capture.subgraphs import find_bodies
from sphinx_fxgraph.capture.torch_private import missing
from sphinx_fxgraph.capture.torch_private import pytree as torch_pytree
from sphinx_fxgraph.capture.trace import Trace
from sphinx_fxgraph.capture.tracers.auto import remarks
from sphinx_fxgraph.options import CaptureOptions
from sphinx_fxgraph.record.cleaning import cleaned
from sphinx_fxgraph.record.header import Failure, Stage
from sphinx_fxgraph.record.model import Record, join
from sphinx_fxgraph.spec.parser import parse_target
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.spec.syntax import Call

_MOST_REAL_BYTES = 4 << 30
"""A model with more parameters is not built for real when it fails on meta: that could end the process."""

_NEW_OBJECTS = 10_000
"""So many make the garbage collector look for what can go."""

_FEW = 8_000_000
"""Parameters and buffers of a small model: 32 MB of them."""
_LITTLE_WORK = 10**11


def record_spec(spec: GraphSpec) -> Record:
    """The record of a spec, of the first device that the model works on. What its code does wrong is a `Failure` in it.

    A model that was built on meta and cannot run there is built and run once more for real, and one for which memory
    does not last then with fake tensors. If they fail too the record tells what failed before.
    """
    told: Record | None = None
    left: Sequence[str] = LADDER[spec.device]
    while left:
        try:
            built = _built(spec, left)
            device, record = built.device, _record_built(built, spec)
        except CaptureError as error:
            device, record = ("cpu" if "cpu" in left else left[-1]), _failed(spec, error)
        if told is None or not (record.failure and device == "fake"):
            told = record
        left = _left(left, device, record)
    assert told is not None
    return told


def _built(spec: GraphSpec, devices: Sequence[str]) -> Built:
    """The model; a small one for real, since the first operator on meta may cost seconds of imports."""
    built = build(spec, devices)
    once = spec.network  # what is downloaded is downloaded once
    if built.device == "meta" and "cpu" in devices and not once and _is_small(built):
        with contextlib.suppress(CaptureError):  # it cannot be built for real
            return build(spec, ("cpu",))
    return built


def _left(devices: Sequence[str], device: str, record: Record) -> Sequence[str]:
    """The devices that are worth a try after a model has run, or has failed, on one of them."""
    left = devices[devices.index(device) + 1 :]
    if record.failure is None:
        return ()
    if device == "cpu":
        return left if record.failure.lacks_memory else ()
    if not _is_about_meta(record.failure):
        return ()
    return left if record.totals.bytes <= _most_real_bytes() else tuple(each for each in left if each != "cpu")


def _most_real_bytes() -> int:
    """Return how many bytes of parameters and buffers may be real.

    More where the process has a limit of memory, which raises an error.
    """
    if sys.platform == "linux":
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
        if limit != resource.RLIM_INFINITY:
            return limit
    return _MOST_REAL_BYTES


def _is_small(built: Built) -> bool:
    """Return whether the model and inputs are so small that a real run takes less time than torch's meta imports.

    Numbers of the one times numbers of the other are more multiply-adds than nearly every model makes.
    """
    tensors = (*built.model.parameters(), *built.model.buffers())
    parameters = sum(0 if is_lazy(tensor) else tensor.numel() for tensor in tensors)
    leaves = torch_pytree.tree_leaves(built.inputs())
    inputs = sum(leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor))
    return parameters <= _FEW and parameters * inputs <= _LITTLE_WORK


def _record_built(built: Built, spec: GraphSpec) -> Record:
    args, kwargs = built.inputs()
    with built.place.running():
        return record_model(built.model, args, kwargs, spec=spec, tracer=spec.tracer)


def _is_about_meta(failure: Failure) -> bool:
    return failure.stage == "probe" or "meta" in failure.message


class Captured(NamedTuple):
    """A record, and the exception of the model's code where the capture failed."""

    record: Record
    error: BaseException | None = None


def record_model(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    spec: GraphSpec | None = None,
    tracer: str = "auto",
) -> Record:
    """Return the record of a model without the exception that a failure was made of; see `capture_model`.

    Args:
        model: on the meta device or a real one.
        args: the positional arguments of ``forward``.
        kwargs: the keyword arguments.
        spec: what the record is made from; its mode, method, leaf patterns and seed are followed.
        tracer: takes the place of the spec's.
    """
    return capture_model(model, args, kwargs, replace(spec or CaptureOptions(), tracer=tracer), spec).record


def capture_model(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    options: CaptureOptions,
    spec: GraphSpec | None = None,
) -> Captured:
    """Capture a model that is called with ``args`` and ``kwargs``; the model is left as it was.

    Args:
        model: on the meta device or a real one.
        args: tensors on the same device, and anything else that ``forward`` takes.
        kwargs: the same by name.
        options: tracer, mode, method, leaf patterns and seed; a dtype is what a copy of the model is cast to.
        spec: what the record says it was made from. Without one, a model that fails on the meta device is tried with
            fake tensors; with one, `record_spec` tries the next device.

    Returns:
        The record; where tracing or running fails, with a `Failure` and the graph as far as it is known.
    """
    asked, tracer = options, options.tracer
    if spec is None and asked.dtype:
        model, args, kwargs = cast_copies(asked.dtype, model, args, kwargs)
    if any(map(is_lazy, (*model.parameters(), *model.buffers()))):
        with torch.random.fork_rng([]):
            model = _initialized(model, args, kwargs, asked)
    with alone(), _collected(), _deep_calls(), untouched(model), eagerly(), torch.no_grad():
        model, notes = unwrapped(model)
        notes = (*notes, *set_mode(model, asked.mode == "train"))
        seed(asked.seed)
        trace = _tracer(tracer)(model, args, kwargs, asked.leaf, asked.method)
        if (
            trace.error
            and spec is None
            and any(map(_is_meta, (*model.parameters(), *torch_pytree.tree_leaves((args, kwargs)))))
        ):
            trace = _tried_with_fakes(trace, asked, model, args, kwargs)
        failure = _trace_failure(trace) if trace.error else None
        raised = trace.error.__cause__ or trace.error if trace.error else None
        try:
            if not trace.probed:
                probe(model, trace.graph, trace.inputs)
        except ProbeError as error:
            raised = raised or error.__cause__
            failure = failure or _probe_failure(error)
        with unwatched():
            pooled(trace.graph, model)
            found = find_bodies(model, trace)
            modules, ties, totals = measure(model, found.used)
    if failure is None:
        totals = run_totals(trace.graph, totals)
    callers = {node.meta["source"][0] for node in trace.graph.nodes if "source" in node.meta}
    sources, distributions = depends_on(callers | class_files({type(module) for module in model.modules()}))
    record = Record(
        spec=spec.to_dict() if spec else {},
        tracer=trace.tracer or tracer,
        root=found.root,
        bodies=found.bodies,
        modules=modules,
        ties=ties,
        totals=totals,
        output=_output(trace.graph),
        verdict=trace.verdict,
        failure=failure,
        notes=(*notes, *trace.notes, *missing()),
        remarks=remarks(trace) if trace.remarks is None else trace.remarks,
        sources=sources,
        distributions=distributions,
        made_by=_made_by(),
    )
    with unwatched():
        record = cleaned(record)
    if record.failure:
        failure = structs.replace(record.failure, node=_failed_node(record))
        return Captured(structs.replace(record, failure=failure), raised)
    return Captured(record)


@contextlib.contextmanager
def _deep_calls() -> Iterator[None]:
    """Let calls nest deeper: each call of a module has frames of the recorder's beside its own."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before * 5)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextlib.contextmanager
def _collected() -> Iterator[None]:
    """Let the garbage collector pass over what is there already, which with a library of models is a million objects.

    They would be looked through again and again, since a capture makes so many new ones.
    """
    before = gc.get_threshold()
    frozen = gc.get_freeze_count()  # somebody else's
    if not frozen:
        gc.freeze()
    gc.set_threshold(max(before[0], _NEW_OBJECTS) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not frozen:
            gc.unfreeze()


def _tried_with_fakes(
    failed: Trace, asked: CaptureOptions, model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Trace:
    """Trace the model with fake tensors; raise the failure on the meta device if that fails too."""
    place, args, kwargs = faked(model, args, kwargs)
    with place.running():
        trace = _tracer(asked.tracer)(model, args, kwargs, asked.leaf, asked.method)
        return failed if trace.error else trace


def _is_meta(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_meta


def _initialized(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], spec: CaptureOptions) -> nn.Module:
    """Return a copy of a model that makes its parameters when it is first called, called once."""
    # A lazy parameter can be copied, a lazy buffer, as of LazyBatchNorm2d, cannot (torch 2.13).
    lazy = {
        id(buffer): UninitializedBuffer(device=buffer.device)  # type: ignore[call-arg] # the stub lacks it
        for buffer in model.buffers()
        if is_lazy(buffer)
    }
    model = copy.deepcopy(model, lazy)
    run = getattr(model, spec.method) if spec.method else model
    with contextlib.suppress(Exception), torch.no_grad():  # the tracer will meet it again
        run(*map(copied, args), **{key: copied(value) for key, value in kwargs.items()})
    return model


def _tracer(name: str) -> Callable[..., Trace]:
    """The function that traces; torch.export is imported only where it is asked for."""
    return cast(
        "Callable[..., Trace]", importlib.import_module(f"sphinx_fxgraph.capture.tracers.{_TRACERS[name]}").trace
    )


_TRACERS = {
    "auto": "auto",
    "symbolic": "fx",
    "observed": "eager",
    "export": "export",
    "autograd": "autograd",
}


def _output(graph: fx.Graph) -> str:
    """Return the output of the model as text; empty where it was not reached."""
    last = next(iter(reversed(graph.nodes)), None)
    if last is None or last.op != "output" or "outputs" not in last.meta:
        return ""
    return last.meta["result"] or short_meta(last.meta["outputs"][0])


def _made_by() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "sphinx-fxgraph": sphinx_fxgraph.__version__,
        "torch": str(torch.__version__),
    }


# -- failures


def _trace_failure(trace: Trace) -> Failure:
    error = trace.error
    assert error is not None
    if isinstance(error, CaptureError):
        name = error.type or type(error).__name__
        return Failure(error.stage, name, error.message, error.file, error.line, transient=error.transient)
    stage: Stage = "input" if isinstance(error, ArgumentError) else "probe" if trace.tracer == "observed" else "trace"
    return Failure(stage, type(error).__name__, said(error) or "no message", *place(error))


def _probe_failure(error: ProbeError) -> Failure:
    """The place is that of the call in the model's code, as it was traced; a leaf module's inside is not traced."""
    cause = error.__cause__
    assert cause is not None
    return Failure("probe", type(cause).__name__, said(cause) or "no message", *placed(error.node))


def _failed_node(record: Record) -> str:
    if not record.root:
        return ""
    return next((join(path, node.name) for path, _, node in record.walk() if "failed" in node.marks), "")


def _failed(spec: GraphSpec, error: CaptureError) -> Record:
    """The record of a model that could not be built, with the files that a mended one would come from."""
    cause = error.__cause__
    sources, distributions = depends_on(filter(None, {*_files(error), _target_file(spec)}))
    name = type(cause or error).__name__
    failure = Failure(error.stage, name, error.message, error.file, error.line, transient=error.transient)
    return cleaned(
        Record(
            spec=spec.to_dict(),
            tracer="symbolic",
            failure=failure,
            sources=sources,
            distributions=distributions,
            made_by=_made_by(),
        )
    )


def _files(error: BaseException) -> Iterable[str]:
    """The files that an exception and its causes went through."""
    causes: dict[int, BaseException] = {}
    cause: BaseException | None = error
    while cause is not None and id(cause) not in causes:  # an exception may be its own cause
        causes[id(cause)] = cause
        cause = cause.__cause__ or cause.__context__
    for each in causes.values():
        if isinstance(each, SyntaxError) and each.filename:
            yield each.filename
        yield from (frame.filename for frame in traceback.extract_tb(each.__traceback__))


def _target_file(spec: GraphSpec) -> str:
    """The file of the module that the target stands in; empty where there is none."""
    tree = parse_target(spec.target) if spec.target else None
    name = tree.function if isinstance(tree, Call) else tree
    parts = [*(name.module or "").split("."), *name.qualname.split(".")] if name else []
    module = file = ""
    for part in filter(None, parts):
        module = join(module, part)
        try:
            found = importlib.util.find_spec(module)
        except by_model():  # finding a name imports its parents, which may raise anything
            break
        if found is None:
            break
        file = (found.origin or "") if found.has_location else ""
    return file
