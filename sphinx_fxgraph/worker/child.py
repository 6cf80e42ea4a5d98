"""One capture in a process of its own: from a request to a record in a file, or a report of how the process ended."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from msgspec import structs

from sphinx_fxgraph.cache import fingerprints
from sphinx_fxgraph.cache.fingerprints import portable
from sphinx_fxgraph.escape import one_line
from sphinx_fxgraph.record.cleaning import cleaned
from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.parser import parse_target
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.spec.syntax import Call
from sphinx_fxgraph.worker import sandbox

_TRACEBACK = re.compile(r"^(Timeout \(\d+:\d+:\d+|Fatal Python error: |Windows fatal exception: )", re.MULTILINE)
"""How faulthandler begins."""


def exit_failure(status: int | None, output: str, seconds: float, sys_path: Sequence[str]) -> Failure:
    """Return why a process ended without a record.

    Args:
        status: exit status, negative for a signal; None if the process had to be ended for taking too long.
        output: what it wrote.
        seconds: its time limit.
        sys_path: its import path.
    """
    header = _TRACEBACK.search(output)
    place = _crash_place(output[header.end() :], sys_path) if header else ("", 0)
    words = last_words(output[: header.start()] if header else output)
    if status is None or (status == 1 and header and header[0].startswith("Timeout")):
        kind, message, words = "timeout", f"no result within {seconds:g} s (:timeout: sets the limit)", ""
    elif status < 0:
        kind = signal_name(-status)
        message = f"the process was ended by {kind}"
        if kind == "SIGKILL":
            message += ", most likely because memory ran out"
    else:
        kind, message = "exit", f"the model's code ended the process with status {status}"
    if words:
        message += f"; it wrote: {words}"
    return Failure("limit", kind, message, *place, transient=True)


def tail(descriptor: int, most: int = 1 << 18) -> str:
    """Return the end of what a process has written to a file."""
    size = os.fstat(descriptor).st_size
    data = os.pread(descriptor, most, max(0, size - most)) if hasattr(os, "pread") else _end_of(descriptor, size, most)
    return data.decode(errors="replace").replace("\0", "")


def _end_of(descriptor: int, size: int, most: int) -> bytes:
    at = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, max(0, size - most), os.SEEK_SET)
    data = os.read(descriptor, most)
    os.lseek(descriptor, at, os.SEEK_SET)
    return data


def signal_name(number: int) -> str:
    """Return the name of a signal, such as ``SIGABRT``."""
    known = {each.value: each.name for each in signal.Signals}
    return known.get(number, f"signal {number}")


def _crash_place(traceback: str, sys_path: Sequence[str]) -> tuple[str, int]:
    """Return file and line where the process crashed, in the model's own code if it was in any."""
    threads = re.split(r"^(?=(?:Current t|T)hread 0x)", traceback, flags=re.MULTILINE)
    current = next((thread for thread in threads if thread.startswith("Current")), threads[-1])
    frames = re.findall(r'^  File "(.+)", line (\d+) in ', current, re.MULTILINE)
    places = [(name, int(line)) for file, line in frames if (name := portable(file, sys_path))]
    others = ("torch", "sphinx_fxgraph", *sys.stdlib_module_names)
    own = [place for place in places if re.split(r"[/.]", place[0])[0] not in others]
    return next(iter(own or places), ("", 0))


def last_words(text: str) -> str:
    """Return the last words of an output, without what differs from machine to machine."""
    text = one_line("\n".join(text.strip().split("\n")[-4:]))[-300:]
    text = re.sub(r"(?<![\w.])(?:[A-Za-z]:)?[/\\](?:[^\s:\"'/\\]+[/\\])+", "", text)  # folders
    return re.sub(r"\b0x[0-9a-fA-F]+", "0x…", text)


@dataclass(frozen=True)
class Request:
    """A capture: the spec, and what the process that makes it has to know."""

    spec: Mapping[str, Any]
    sys_path: tuple[str, ...]
    folder: str
    """Becomes the current folder: that of ``conf.py``."""
    seconds: float
    memory: int = 0
    """Bytes; 0 is no limit."""
    temporary: str = ""
    """The folder for temporary files of the model's code."""


def preload(*names: str) -> None:
    """Import what every capture imports, and more modules. An import that fails here is reported by `capture`."""
    for name in ("sphinx_fxgraph.capture.capture", "sphinx_fxgraph.capture.dependencies", *names):
        with contextlib.suppress(Exception):
            fingerprints.is_source(str(importlib.import_module(name).__file__))  # reads what is installed, once


def capture(request: Request, result: Slot, output: int) -> NoReturn:
    """Capture in this process, and end it.

    Args:
        request: what to capture.
        result: takes a line with the modules that the server may import once for all captures to come, and the record.
        output: file descriptor that takes what the model's code prints.
    """
    status = 1
    shareable: list[str] = []
    try:
        log = sandbox.enter(output, request.folder, request.sys_path, request.memory, request.temporary)
        online = bool(request.spec.get("network"))
        isolated = not online and sandbox.leave_network()
        preload()
        refused = [] if online else sandbox.refuse_network()
        sandbox.limit_time(request.seconds, log)
        record = _explain(_capture_record(request.spec, shareable), refused, isolated, log)
        # torch imports it with its first operator in Python; it takes as long as torch
        if "torch._dynamo" in sys.modules:
            shareable.append("torch._dynamo")
        result.write(f"{json.dumps(shareable)}\n{record.to_json()}".encode("utf-8", "replace"))
        status = 0
    except BaseException:  # noqa: BLE001 - a forked child must never go back into the server
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        os._exit(status)


class Slot:
    """A file that the server has open and this process writes to, also after the model's code closed all files.

    Args:
        descriptor: of this process.
        server: of the process that reads it.
        number: the descriptor there.
    """

    def __init__(self, descriptor: int, server: int, number: int) -> None:
        self._descriptor = descriptor
        self._path = Path(f"/proc/{server}/fd/{number}")
        self._file = self._identity(descriptor)

    @staticmethod
    def _identity(descriptor: int) -> tuple[int, int]:
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino

    def write(self, data: bytes) -> None:
        """Replace the content of the file."""
        try:
            if self._identity(self._descriptor) != self._file:  # closed, and opened again for something else
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            with open(self._descriptor, "wb", closefd=False) as file:
                file.seek(0)
                file.truncate()
                file.write(data)
        except OSError:
            self._path.write_bytes(data)


def _shareable_modules(spec: GraphSpec) -> list[str]:
    """Return the modules of installed packages that a target imports, if importing them started no thread.

    A process with threads, as OpenMP's after the first operator, cannot be forked: its children would hang.
    """
    from sphinx_fxgraph.capture.build import resolve

    before, count = set(sys.modules), count_threads()
    try:
        target = parse_target(spec.target)
        resolve(target.function if isinstance(target, Call) else target)
    except BaseException:  # noqa: BLE001 - it fails again where it is told
        return []
    if count == 0 or count_threads() != count:
        return []
    found = [(name, getattr(module, "__file__", None)) for name, module in sys.modules.items() if name not in before]
    return [name for name, file in found if file and file.endswith(".py") and not fingerprints.is_source(file)]


def count_threads() -> int:
    """Return how many threads this process has; 0 where that is not known."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return 0


def failure_record(spec: Mapping[str, Any], failure: Failure) -> Record:
    """Return the record of a capture that failed before there was a graph."""
    return cleaned(Record(spec=spec, tracer=spec.get("tracer", "auto"), failure=failure))


def _capture_record(spec: Mapping[str, Any], shareable: list[str]) -> Record:
    try:
        from sphinx_fxgraph.capture.capture import record_spec
        from sphinx_fxgraph.capture.dependencies import completed, watch
        from sphinx_fxgraph.capture.errors import catch_all, place, said
    except Exception as error:  # noqa: BLE001 - a torch whose libraries do not load raises anything
        return failure_record(spec, Failure("import", type(error).__name__, _import_message(error), transient=True))
    try:
        catch_all()
        graph_spec = GraphSpec.from_dict(spec)
        with watch() as watched:
            shareable += _shareable_modules(graph_spec)
            record = record_spec(graph_spec)
        return completed(record, watched)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it costs one model its graph and nothing else
        traceback.print_exc()
        return failure_record(spec, Failure("trace", type(error).__name__, said(error), *place(error), transient=True))


OLDEST_TORCH = (2, 6)
"""The oldest release of torch that is supported, as in ``pyproject.toml``."""


def _import_message(error: Exception) -> str:
    """Return why torch cannot be used here, and what to do.

    Args:
        error: what its import raised, or that of our own modules that need it.
    """
    torch = sys.modules.get("torch")
    version = str(getattr(torch, "__version__", ""))
    numbers = re.match(r"(\d+)\.(\d+)", version)
    oldest = ".".join(map(str, OLDEST_TORCH))
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        return (
            "torch is not installed here; install it (pip install 'sphinx-fxgraph[torch]') "
            "or build from a committed cache"
        )
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST_TORCH:
        return f"torch {version} is too old: install torch {oldest} or later, or build from a committed cache"
    if torch is not None and not getattr(torch, "__file__", None):
        return "torch is not installed completely, only a folder of it is here: reinstall it"
    return f"torch cannot be imported: {error}"


_NO_NETWORK = re.compile("network is unreachable|name resolution|could not resolve|connection refused", re.IGNORECASE)


def _explain(record: Record, refused: list[str], isolated: bool, log: int) -> Record:
    """Return the record; its failure says that there was no network or memory, or what was printed before an exit.

    Args:
        record: what was captured.
        refused: connections that were tried.
        isolated: whether other programs had no network either.
        log: file descriptor of what the model's code printed.
    """
    failure = record.failure
    if failure is None:
        return record
    if refused or (isolated and _NO_NETWORK.search(failure.message)):
        message = failure.message if sandbox.REMEDY in failure.message else f"{failure.message} ({sandbox.REMEDY})"
        failure = structs.replace(failure, message=message, transient=True)
    elif failure.lacks_memory:
        failure = structs.replace(failure, stage="limit", transient=True)
    elif failure.type == "SystemExit" and (words := last_words(tail(log))):
        failure = structs.replace(failure, message=f"{failure.message}; it wrote: {words}")
    return structs.replace(record, failure=failure)
