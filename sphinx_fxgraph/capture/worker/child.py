"""One capture in a process of its own: from a request to a record in a file, and out."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sphinx_fxgraph import sources
from sphinx_fxgraph.capture.worker import sandbox
from sphinx_fxgraph.record import Failure, Record
from sphinx_fxgraph.spec import GraphSpec


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


IMPORTED_DYNAMO = 3
"""The exit status of a capture that is done, in which torch has imported torch._dynamo.

torch does so by itself, with the first operator that it has on meta in Python only. It takes as long as all of torch,
so the server imports it once for the captures to come; small models alone never need it.
"""


def preload(*names: str) -> None:
    """Import what every capture imports, and more. What fails here fails again in `capture`, which tells."""
    for name in ("sphinx_fxgraph.capture.recording", "sphinx_fxgraph.capture.closure.files", *names):
        with contextlib.suppress(Exception):
            sources.is_source(str(importlib.import_module(name).__file__))  # reads what is installed, once


def capture(request: Request, result: Path, output: Path) -> NoReturn:
    """Write the record to ``result``, and what the model's code prints to ``output``, and end this process."""
    status = 1
    try:
        log = sandbox.enter(output, request.folder, request.sys_path, request.memory)
        preload()
        refused = [] if request.spec.get("network") else sandbox.refuse_network()
        sandbox.limit_time(request.seconds, log)
        result.write_text(_told(_record(request.spec), refused).to_json(), encoding="utf-8")
        status = IMPORTED_DYNAMO if "torch._dynamo" in sys.modules else 0
    except BaseException:  # noqa: BLE001 - a forked child must never go back into the server
        traceback.print_exc()
    finally:
        os._exit(status)


def failed(spec: Mapping[str, Any], failure: Failure) -> Record:
    """The record of a capture that has nothing to show but why."""
    return Record(spec=spec, tracer=spec.get("tracer", "auto"), failure=failure)


def _record(spec: Mapping[str, Any]) -> Record:
    try:
        from sphinx_fxgraph.capture.closure.files import completed
        from sphinx_fxgraph.capture.closure.ran import watch
        from sphinx_fxgraph.capture.errors import place, said
        from sphinx_fxgraph.capture.recording import record_spec
    except Exception as error:  # noqa: BLE001 - a torch whose libraries do not load raises anything
        message = f"torch cannot be imported: {error}"
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            message = (
                "torch is not installed here; install it (pip install 'sphinx-fxgraph[torch]') "
                "or build from a committed cache"
            )
        return failed(spec, Failure("import", type(error).__name__, message, transient=True))
    try:
        with watch() as watched:
            record = record_spec(GraphSpec.from_dict(spec))
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
    elif failure.type == "MemoryError" or "allocate memory" in failure.message:  # torch's allocator: a RuntimeError
        failure = dataclasses.replace(failure, stage="limit", transient=True)
    return dataclasses.replace(record, failure=failure)
