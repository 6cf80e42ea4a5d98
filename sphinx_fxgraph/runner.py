"""Many specs become records: worker servers side by side, each record handed on as soon as it is there.

The servers are started with `subprocess` and not with `multiprocessing`, which runs the caller's main script again and
breaks under an unguarded ``docs/build.py``. This process imports no torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import IO

from sphinx_fxgraph.capture.child import Request, failed
from sphinx_fxgraph.capture.postmortem import signal_name
from sphinx_fxgraph.capture.worker import STARTUP, command
from sphinx_fxgraph.record import Failure, Record, RecordError
from sphinx_fxgraph.spec import GraphSpec

TIMEOUT = 300.0
"""Seconds for a capture whose spec does not say."""
_SERVER_MEMORY = 1_500_000_000
"""Bytes that a server and its child need for a usual model."""


def capture(
    specs: Iterable[GraphSpec],
    *,
    python: str = sys.executable,
    sys_path: Sequence[str] | None = None,
    confdir: str | os.PathLike[str] = "",
    workers: int = 0,
    timeout: float = TIMEOUT,
    memory: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Generator[tuple[GraphSpec, Record], None, None]:
    """Capture each spec once, in worker processes, and give its record as soon as it is there, in whichever order.

    Whatever happens to a capture, there is a record, which then says what failed. Closing the iterator ends the
    processes and loses nothing that it gave.

    Args:
        specs: what to capture; without any, no process is started.
        python: the interpreter that has torch.
        sys_path: where the models' packages are found; by default as in this process.
        confdir: the current folder of the captures.
        workers: how many processes; 0 asks cores and memory.
        timeout: seconds for a spec that has no limit of its own.
        memory: bytes of data for each capture; 0 is no limit.
        progress: told the target of each spec that is done.
    """
    todo = list(dict.fromkeys(specs))
    path = _portable_path(sys.path if sys_path is None else sys_path, python)
    count = min(len(todo), workers or _most_workers())
    jobs: queue.SimpleQueue[GraphSpec | None] = queue.SimpleQueue()
    results: queue.SimpleQueue[tuple[GraphSpec, Record] | BaseException] = queue.SimpleQueue()
    for job in [*todo, *[None] * count]:
        jobs.put(job)

    def work(server: _Server) -> None:
        try:
            while (spec := jobs.get()) is not None:
                seconds = float(spec.timeout or timeout)
                results.put((spec, server.capture(Request(spec.to_dict(), path, os.fspath(confdir), seconds, memory))))
        except BaseException as error:  # noqa: BLE001 - raised again where the results are taken
            results.put(error)

    servers = [_Server(python, threads=max(1, _cores() // count)) for _ in range(count)]
    threads = [threading.Thread(target=work, args=(server,), daemon=True) for server in servers]
    try:
        for thread in threads:
            thread.start()
        for _ in todo:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            if progress is not None:
                progress(result[0].target or result[0].label)
            yield result
    finally:
        for server in servers:
            server.stop()
        for thread in threads:
            if thread.ident:
                thread.join()


class _Server:
    """A worker process, started when it is first needed and again after it has died."""

    def __init__(self, python: str, threads: int) -> None:
        self._python = python
        self._environment = {"OMP_NUM_THREADS": str(threads)} | os.environ  # the servers share the cores
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._number = 0

    def capture(self, request: Request) -> Record:
        """The record, or one that says how the process ended."""
        self._number += 1
        line = json.dumps({"id": self._number, **vars(request)}).encode() + b"\n"
        try:
            process = self._start()
        except OSError as error:
            message = f"the interpreter for captures does not start: {error.strerror or error}"
            return failed(request.spec, Failure("import", type(error).__name__, message, transient=True))
        # The server keeps the time itself. This is for a server that does not even come to life.
        guard = threading.Timer(2 * request.seconds + 4 * STARTUP, process.kill)
        guard.daemon = True
        guard.start()
        try:
            return self._ask(process, line) or failed(request.spec, self._obituary(process))
        except RecordError as error:
            return failed(
                request.spec, Failure("limit", "RecordError", f"no record came back: {error}", transient=True)
            )
        finally:
            guard.cancel()

    def stop(self) -> None:
        """End the process and what it is doing: it ends its child when its input is closed."""
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
        """The answer to a request; None from a process that has died."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
            answer = process.stdout.readline()
        except (OSError, ValueError):  # it has died, or `stop` has closed its input
            return None
        return Record.from_json(json.loads(answer)["record"]) if answer.endswith(b"\n") else None

    def _obituary(self, process: subprocess.Popen[bytes]) -> Failure:
        """How the server ended. The next request gets a new one."""
        with self._lock:
            self._process = None
        _close(process)
        assert self._log is not None
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().split("\n")
        status = process.returncode
        kind = signal_name(-status) if status < 0 else f"exit {status}"
        return Failure("limit", kind, f"the worker process has ended: {lines[-1] or kind}", transient=True)


def _close(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        process.stdin.close()  # type: ignore[union-attr] # it is a pipe
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _portable_path(path: Iterable[str], python: str) -> tuple[str, ...]:
    """The import path for another process: without what belongs to this interpreter, where that is another one."""
    entries = [str(Path(entry).absolute()) for entry in path]
    if Path(python).absolute() == Path(sys.executable).absolute():
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
    """Bytes that this machine, or the container it is, can still give; 0 where nobody knows."""
    known = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        known.append(int(Path("/proc/meminfo").read_text(encoding="ascii").split("MemAvailable:")[1].split()[0]) * 1024)
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit, used = (int((group / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        known.append(max(limit - used, 1))
    return min(known, default=0)
