"""One capture in a process of its own: from a request to a record in a file, and out."""

from __future__ import annotations

import dataclasses
import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sphinx_fxgraph.capture import sandbox
from sphinx_fxgraph.record import Failure, Record
from sphinx_fxgraph.sources import portable
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


def capture(request: Request, result: Path, output: Path) -> NoReturn:
    """Write the record to ``result``, and what the model's code prints to ``output``, and end this process."""
    status = 1
    try:
        sandbox.enter(output, request.folder, request.sys_path, request.seconds, request.memory)
        refused = [] if request.spec.get("network") else sandbox.refuse_network()
        result.write_text(_told(_record(request.spec), refused).to_json(), encoding="utf-8")
        status = 0
    except BaseException:  # noqa: BLE001 - a forked child must never go back into the server
        traceback.print_exc()
    finally:
        os._exit(status)


def failed(spec: Mapping[str, Any], failure: Failure) -> Record:
    """The record of a capture that has nothing to show but why."""
    return Record(spec=spec, tracer=spec.get("tracer", "auto"), failure=failure)


def _record(spec: Mapping[str, Any]) -> Record:
    try:
        from sphinx_fxgraph.capture.recording import record_spec
    except ModuleNotFoundError as error:
        message = str(error)
        if error.name == "torch":
            message = (
                "torch is not installed here; install it (pip install 'sphinx-fxgraph[torch]') "
                "or build from a committed cache"
            )
        return failed(spec, Failure("import", "ModuleNotFoundError", message, transient=True))
    except Exception as error:  # noqa: BLE001 - a torch whose libraries do not load raises anything
        message = f"torch cannot be imported: {error}"
        return failed(spec, Failure("import", type(error).__name__, message, *_place(error), transient=True))
    try:
        return record_spec(GraphSpec.from_dict(spec))
    except SystemExit as error:
        message = f"the model's code called sys.exit({error.code!r})"
        return failed(spec, Failure("limit", "SystemExit", message, *_place(error), transient=True))
    except MemoryError as error:
        return failed(spec, Failure("limit", "MemoryError", "memory ran out", *_place(error), transient=True))
    except BaseException as error:  # noqa: BLE001 - whatever it is, it costs one model its graph and nothing else
        return failed(spec, Failure("trace", type(error).__name__, str(error), *_place(error)))


def _place(error: BaseException) -> tuple[str, int]:
    """The file and line that an exception comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    return (portable(frames[-1].filename), frames[-1].lineno or 0) if frames else ("", 0)


def _told(record: Record, refused: list[str]) -> Record:
    """Say of a failure that the network was refused, which the code in between may have hidden."""
    failure = record.failure
    if failure is None or not refused:
        return record
    message = failure.message if sandbox.REMEDY in failure.message else f"{failure.message} ({sandbox.REMEDY})"
    return dataclasses.replace(record, failure=dataclasses.replace(failure, message=message, transient=True))
