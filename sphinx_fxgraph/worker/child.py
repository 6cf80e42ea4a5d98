"""One capture in a process of its own: from a request to a record in a file, and out."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sphinx_fxgraph.cache import fingerprints
from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.parser import parse_target
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.spec.syntax import Call
from sphinx_fxgraph.worker import sandbox


@dataclass(frozen=True)
class Request:
    """One capture, and all that the process which makes it has to know."""

    spec: Mapping[str, Any]
    sys_path: tuple[str, ...]
    folder: str
    """Becomes the current folder: that of ``conf.py``."""
    seconds: float
    memory: int = 0
    """Bytes; 0 is no limit."""


READY = "ready.json"
"""Beside the result: the modules that a capture has imported and that the server may import, once for all to come."""


def preload(*names: str) -> None:
    """Import what every capture imports, and more. What fails here fails again in `capture`, which tells."""
    for name in ("sphinx_fxgraph.capture.capture", "sphinx_fxgraph.capture.dependencies.files", *names):
        with contextlib.suppress(Exception):
            fingerprints.is_source(str(importlib.import_module(name).__file__))  # reads what is installed, once


def capture(request: Request, result: Path, output: Path) -> NoReturn:
    """Write the record to ``result``, and what the model's code prints to ``output``, and end this process."""
    status = 1
    ready: list[str] = []
    try:
        log = sandbox.enter(output, request.folder, request.sys_path, request.memory)
        preload()
        refused = [] if request.spec.get("network") else sandbox.refuse_network()
        sandbox.limit_time(request.seconds, log)
        record = _told(_record(request.spec, ready), refused)
        if (
            "torch._dynamo" in sys.modules
        ):  # torch imports it with its first operator in Python; it takes as long as torch
            ready.append("torch._dynamo")
        result.with_name(READY).write_text(json.dumps(ready), encoding="utf-8")
        result.write_text(record.to_json(), encoding="utf-8")
        status = 0
    except BaseException:  # noqa: BLE001 - a forked child must never go back into the server
        traceback.print_exc()
    finally:
        os._exit(status)


def _ready(spec: GraphSpec) -> list[str]:
    """The modules of installed packages that a target brings in, if importing them started no thread.

    A process with threads, as OpenMP's after the first operator, cannot be forked: its children would hang.
    """
    from sphinx_fxgraph.capture.model.resolve import resolve

    before, count = set(sys.modules), threads()
    try:
        target = parse_target(spec.target)
        resolve(target.function if isinstance(target, Call) else target)
    except BaseException:  # noqa: BLE001 - it fails again where it is told
        return []
    if count == 0 or threads() != count:
        return []
    found = [(name, getattr(module, "__file__", None)) for name, module in sys.modules.items() if name not in before]
    return [name for name, file in found if file and file.endswith(".py") and not fingerprints.is_source(file)]


def threads() -> int:
    """How many threads this process has; 0 where nobody knows."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return 0


def failed(spec: Mapping[str, Any], failure: Failure) -> Record:
    """The record of a capture that has nothing to show but why."""
    return Record(spec=spec, tracer=spec.get("tracer", "auto"), failure=failure)


def _record(spec: Mapping[str, Any], ready: list[str]) -> Record:
    try:
        from sphinx_fxgraph.capture.capture import record_spec
        from sphinx_fxgraph.capture.dependencies.call_profiler import watch
        from sphinx_fxgraph.capture.dependencies.files import completed
        from sphinx_fxgraph.capture.errors import place, said
    except Exception as error:  # noqa: BLE001 - a torch whose libraries do not load raises anything
        message = f"torch cannot be imported: {error}"
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            message = (
                "torch is not installed here; install it (pip install 'sphinx-fxgraph[torch]') "
                "or build from a committed cache"
            )
        return failed(spec, Failure("import", type(error).__name__, message, transient=True))
    try:
        asked = GraphSpec.from_dict(spec)
        with watch() as watched:
            ready += _ready(asked)
            record = record_spec(asked)
        return completed(record, watched)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it costs one model its graph and nothing else
        traceback.print_exc()
        return failed(spec, Failure("trace", type(error).__name__, said(error), *place(error), transient=True))


def _told(record: Record, refused: list[str]) -> Record:
    """The record; a failure says that there was no network or no memory, where the code in between did not."""
    failure = record.failure
    if failure is None:
        return record
    if refused:
        message = failure.message if sandbox.REMEDY in failure.message else f"{failure.message} ({sandbox.REMEDY})"
        failure = dataclasses.replace(failure, message=message, transient=True)
    elif failure.lacks_memory:
        failure = dataclasses.replace(failure, stage="limit", transient=True)
    return dataclasses.replace(record, failure=failure)
