"""Many specs become records: worker servers side by side, each record handed on as soon as it is there.

The servers are started with `subprocess` and not with `multiprocessing`, which runs the caller's main script again and
breaks under an unguarded ``docs/build.py``. This process imports no torch.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import sysconfig
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path

from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker import executor as farm
from sphinx_fxgraph.worker.child import Request
from sphinx_fxgraph.worker.server import Server

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
    """Capture each spec once, in worker processes, and give its record as soon as it is there, in whichever order.

    Whatever happens to a capture, there is a record, which then says what failed. One whose process was killed, or that
    found no memory, is made once more when all others are done and have given theirs back. Closing the iterator ends
    the processes and loses nothing that it gave.

    Args:
        specs: what to capture; without any, no process is started.
        python: the interpreter that has torch; by default this one, or that of the executor's tasks.
        sys_path: where the models' packages are found; by default as in this process.
        confdir: the current folder of the captures.
        workers: how many processes; 0 asks cores and memory.
        timeout: seconds for a spec that has no limit of its own.
        memory: bytes of data for each capture; 0 is no limit.
        executor: makes what runs the captures elsewhere; it is shut down at the end.
        progress: told the target of each spec that is done.
    """
    todo = list(dict.fromkeys(specs))
    if not todo:
        return
    path = _portable_path(sys.path if sys_path is None else sys_path, python)
    requests = {
        spec: Request(spec.to_dict(), path, os.fspath(confdir), float(spec.timeout or timeout), memory) for spec in todo
    }
    captured = (
        _here(requests, python or sys.executable, min(len(todo), workers or _most_workers()))
        if executor is None
        else farm.captured(requests, executor, python)
    )
    with contextlib.closing(captured):
        for spec, record in captured:
            if progress is not None:
                progress(spec.target)
            yield spec, record


def _here(requests: dict[GraphSpec, Request], python: str, count: int) -> Generator[tuple[GraphSpec, Record]]:
    """Capture with servers on this machine, all at once, and then what found no room, one after another."""
    again = []
    with contextlib.closing(_side_by_side(requests, python, count)) as captured:
        for spec, record in captured:
            if record.failure and (record.failure.was_killed or (count > 1 and record.failure.lacks_memory)):
                again.append(spec)
            else:
                yield spec, record
    if again:
        yield from _side_by_side({spec: requests[spec] for spec in again}, python, 1)


def _side_by_side(requests: dict[GraphSpec, Request], python: str, count: int) -> Generator[tuple[GraphSpec, Record]]:
    """Capture each once, with a thread for each server."""
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
    """The import path for another process: without what belongs to this interpreter, where that is another one."""
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
    """Bytes that this machine, or the container it is, can still give; 0 where nobody knows."""
    known = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        known.append(int(Path("/proc/meminfo").read_text(encoding="ascii").split("MemAvailable:")[1].split()[0]) * 1024)
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit, used = (int((group / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        known.append(max(limit - used, 1))
    return min(known, default=0)
