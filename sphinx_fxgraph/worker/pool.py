"""Capture many specs side by side: with worker servers on this machine, or with a `concurrent.futures.Executor`.

The servers are started with `subprocess` and not with `multiprocessing`, which runs the caller's main script again and
breaks under an unguarded ``docs/build.py``. This process imports no torch.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import importlib
import json
import os
import queue
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from pathlib import Path
from typing import IO

from sphinx_fxgraph.escape import printable_json
from sphinx_fxgraph.record.checks import check_calls
from sphinx_fxgraph.record.header import Failure, RecordError
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker.child import Request, failure_record, last_words, signal_name
from sphinx_fxgraph.worker.process import IMPORTING, READY, STARTUP, command
from sphinx_fxgraph.worker.sandbox import remove_folder


class Server:
    """A client of a worker process, which is started when it is first needed and again after it has died.

    Args:
        python: the interpreter that has torch.
        threads: how many cores it may use.
    """

    def __init__(self, python: str, threads: int) -> None:
        self._python = python
        self._environment = {"OMP_NUM_THREADS": str(threads)} | os.environ  # the servers share the cores
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._number = 0

    def capture(self, request: Request) -> Record:
        """Return the record, or one whose failure says how the process ended."""
        self._number += 1
        # The server makes and removes it. Should it die, that is done here.
        folder = os.path.join(tempfile.gettempdir(), f"fxgraph-{os.urandom(8).hex()}")  # noqa: PTH118 - travels as text
        line = json.dumps({"id": self._number, **vars(request), "temporary": folder}).encode() + b"\n"
        try:
            process = self._start()
        except OSError as error:
            message = f"the interpreter for captures does not start: {error.strerror or error}"
            return failure_record(request.spec, Failure("import", type(error).__name__, message, transient=True))
        # The server keeps the time itself. This is for a server that does not even come to life.
        guard = threading.Timer(min(2 * request.seconds + 4 * STARTUP, threading.TIMEOUT_MAX), process.kill)
        guard.daemon = True
        guard.start()
        try:
            if record := self._ask(process, line):
                return record
            failure = self._exit_failure(process)
            remove_folder(folder)
            return failure_record(request.spec, failure)
        except RecordError as error:
            return failure_record(
                request.spec, Failure("limit", "RecordError", f"no record came back: {error}", transient=True)
            )
        finally:
            guard.cancel()

    def stop(self) -> None:
        """End the process and its capture: it ends its child when its input is closed."""
        with self._lock:
            self._stopped = True
            process, self._process = self._process, None
        if process is not None:
            _close(process)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise OSError("stopped")
            if self._process is None:
                self._log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
                self._process = subprocess.Popen(
                    command(self._python),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._log,
                    env=self._environment,
                    start_new_session=True,  # Ctrl+C is for us; we end it in order
                )
            return self._process

    def _ask(self, process: subprocess.Popen[bytes], line: bytes) -> Record | None:
        """Return the answer to a request; None from a process that has died."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
            answer = process.stdout.readline()
        except (OSError, ValueError):  # it has died, or `stop` has closed its input
            return None
        return _read_record(json.loads(answer)["record"]) if answer.endswith(b"\n") else None

    def _exit_failure(self, process: subprocess.Popen[bytes]) -> Failure:
        """Return how the server ended. The next request gets a new one."""
        with self._lock:
            self._process = None
        _close(process)
        assert self._log is not None
        self._log.seek(0)
        text = self._log.read().decode(errors="replace")
        status = process.returncode
        kind = signal_name(-status) if status < 0 else f"exit {status}"
        _, begun, words = text.rpartition(f"{IMPORTING}\n")
        if begun and READY not in words:
            message = f"the process was ended by {kind}" if status < 0 else f"the process ended with status {status}"
            written = f"; it wrote: {written}" if (written := last_words(words)) else ""
            return Failure("import", kind, f"torch cannot be imported: {message}{written}", transient=True)
        lines = [line for line in text.splitlines() if line.strip() and line not in (IMPORTING, READY)]
        return Failure("limit", kind, f"the worker process has ended: {lines[-1] if lines else kind}", transient=True)


def _read_record(text: str) -> Record:
    """Return the record that a process sent.

    Raises:
        RecordError: it is none, or one that no drawing can be made of.
    """
    record = Record.from_json(printable_json(text))
    check_calls(record)
    return record


def _close(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        process.stdin.close()  # type: ignore[union-attr] # it is a pipe
    try:
        process.wait(2)  # it removes the temporary folder of the capture under way
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class ExecutorError(Exception):
    """The configured executor cannot be made."""


def find_executor(text: str) -> Callable[[], Executor]:
    """Return the factory that ``module:factory`` names.

    Raises:
        ExecutorError: it cannot be imported or called.
    """
    module, _, name = text.partition(":")
    try:
        factory = importlib.import_module(module)
        for part in name.split("."):
            factory = getattr(factory, part)
    except Exception as error:  # a module may raise anything when it is imported
        raise ExecutorError(f"{text!r} cannot be imported: {error}; write module:factory") from error
    if not name or not callable(factory):
        raise ExecutorError(f"{text!r} cannot be called; write module:factory")
    return factory


def capture_with_executor(
    requests: Mapping[GraphSpec, Request], factory: Callable[[], Executor], python: str
) -> Generator[tuple[GraphSpec, Record]]:
    """Yield the records in the order in which they come back. Closing the iterator cancels tasks that have not begun.

    Args:
        requests: the requests by spec.
        factory: makes the executor.
        python: the interpreter of the tasks' workers; empty is that of the task.

    Raises:
        ExecutorError: there is no executor.
    """
    try:
        executor = factory()
    except Exception as error:  # it connects to a cluster, perhaps
        raise ExecutorError(f"no executor: {type(error).__name__}: {error}") from error
    futures: dict[Future[str], GraphSpec] = {}
    try:
        for spec, request in requests.items():
            futures[executor.submit(run_task, json.dumps(dataclasses.asdict(request)), python)] = spec
        for future in as_completed(futures):
            spec = futures[future]
            try:
                record = _read_record(future.result())
            except Exception as error:  # noqa: BLE001 - a lost machine, a broken pool: whatever the executor raises
                message = f"no record came back: {error}"
                record = failure_record(spec.to_dict(), Failure("limit", type(error).__name__, message, transient=True))
            yield spec, record
    finally:
        for future in futures:
            future.cancel()
        executor.shutdown(wait=True)


# -- where a task runs

_idle: dict[str, list[Server]] = {}
"""Servers between two tasks of this process, by interpreter: one that stays saves each task the import of torch."""
_lock = threading.Lock()


def run_task(request: str, python: str) -> str:
    """Capture one model: take a request as JSON and return the record as JSON."""
    with _lock:
        idle = _idle.setdefault(python, [])
        server = idle.pop() if idle else Server(python or sys.executable, threads=1)
    record = server.capture(Request(**json.loads(request)))
    with _lock:
        idle.append(server)
    return record.to_json()


@atexit.register
def _end() -> None:
    for servers in _idle.values():
        for server in servers:
            server.stop()


TIMEOUT = 300.0
"""Seconds for a capture whose spec does not say."""
_SERVER_MEMORY = 1_500_000_000
"""Bytes that a server and its child need for a usual model."""

_Captured = Iterator[tuple[GraphSpec, Record]]


def capture(
    specs: Iterable[GraphSpec],
    *,
    python: str = "",
    sys_path: Sequence[str] | None = None,
    confdir: str | os.PathLike[str] = "",
    workers: int = 0,
    timeout: float = TIMEOUT,
    memory: int = 0,
    executor: Callable[[], Executor] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Generator[tuple[GraphSpec, Record], None, None]:
    """Capture each spec once, in worker processes, and yield its record as soon as it is there, in any order.

    A capture that fails gives a record with its failure. A capture whose process was killed, or that found no memory,
    is made once more when all others are done. Closing the iterator ends the processes.

    Args:
        specs: what to capture; without any, no process is started.
        python: the interpreter that has torch; by default this one, or that of the executor's tasks.
        sys_path: where the models' packages are found; by default as in this process.
        confdir: the current folder of the captures.
        workers: how many processes; 0 asks cores and memory.
        timeout: seconds for a spec that has no limit of its own.
        memory: bytes of data for each capture; 0 is no limit.
        executor: makes what runs the captures elsewhere; it is shut down at the end.
        progress: called with the target of each spec that is done.
    """
    todo = list(dict.fromkeys(specs))
    if not todo:
        return
    path = _portable_path(sys.path if sys_path is None else sys_path, python)
    requests = {
        spec: Request(spec.to_dict(), path, os.fspath(confdir), float(spec.timeout or timeout), memory) for spec in todo
    }
    results = (
        _capture_here(requests, python or sys.executable, min(len(todo), workers or _most_workers()))
        if executor is None
        else capture_with_executor(requests, executor, python)
    )
    with contextlib.closing(results):
        for spec, record in results:
            if progress is not None:
                progress(spec.target)
            yield spec, record


def _capture_here(requests: dict[GraphSpec, Request], python: str, count: int) -> Generator[tuple[GraphSpec, Record]]:
    """Capture with servers on this machine; then, one after another, what was killed or found no memory."""
    again = []
    with contextlib.closing(_capture_side_by_side(requests, python, count)) as captured:
        for spec, record in captured:
            if record.failure and (record.failure.was_killed or (count > 1 and record.failure.lacks_memory)):
                again.append(spec)
            else:
                yield spec, record
    if again:
        yield from _capture_side_by_side({spec: requests[spec] for spec in again}, python, 1)


def _capture_side_by_side(
    requests: dict[GraphSpec, Request], python: str, count: int
) -> Generator[tuple[GraphSpec, Record]]:
    """Capture each spec once, with a thread for each server."""
    jobs: queue.SimpleQueue[GraphSpec | None] = queue.SimpleQueue()
    results: queue.SimpleQueue[tuple[GraphSpec, Record] | BaseException] = queue.SimpleQueue()
    for job in [*requests, *[None] * count]:
        jobs.put(job)

    def work(server: Server) -> None:
        try:
            while (spec := jobs.get()) is not None:
                results.put((spec, server.capture(requests[spec])))
        except BaseException as error:  # noqa: BLE001 - raised again where the results are taken
            results.put(error)

    servers = [Server(python, threads=max(1, _cores() // count)) for _ in range(count)]
    threads = [threading.Thread(target=work, args=(server,), daemon=True) for server in servers]
    try:
        for thread in threads:
            thread.start()
        for _ in requests:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        for server in servers:
            server.stop()
        for thread in threads:
            if thread.ident:
                thread.join()


def _portable_path(path: Iterable[str], python: str) -> tuple[str, ...]:
    """Return the import path for another process, without the folders of this interpreter if it has another one."""
    entries = [str(Path(entry).absolute()) for entry in path]
    if not python or Path(python).absolute() == Path(sys.executable).absolute():
        return tuple(entries)
    own = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(entry for entry in entries if not any(Path(entry).is_relative_to(folder) for folder in own))


# -- how many


def _most_workers() -> int:
    available = _available_memory()
    return max(1, min(_cores(), available // _SERVER_MEMORY if available else _cores()))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _available_memory() -> int:
    """Return the bytes that are free on this machine or in its container; 0 where that is not known."""
    known = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        known.append(int(Path("/proc/meminfo").read_text(encoding="ascii").split("MemAvailable:")[1].split()[0]) * 1024)
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit, used = (int((group / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        known.append(max(limit - used, 1))
    return min(known, default=0)
