"""Captures on other machines: any `concurrent.futures.Executor` takes them there.

A task gets a request and gives a record, both as JSON, so that no disk is shared. Where it runs it starts a worker
server, which stays for the tasks that come after.
"""

from __future__ import annotations

import atexit
import dataclasses
import importlib
import json
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Executor, Future, as_completed

from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker.child import Request, failed
from sphinx_fxgraph.worker.server import Server


class ExecutorError(Exception):
    """What was said to make an executor does not."""


def find_executor(text: str) -> Callable[[], Executor]:
    """The factory that ``module:factory`` names.

    Raises:
        ExecutorError: it cannot be imported, or is nothing that can be called.
    """
    module, _, name = text.partition(":")
    try:
        factory = importlib.import_module(module)
        for part in name.split("."):
            factory = getattr(factory, part)
    except Exception as error:  # a module may raise anything when it is imported
        raise ExecutorError(f"{text!r} cannot be imported: {error}; write module:factory") from error
    if not name or not callable(factory):
        raise ExecutorError(f"{text!r} is nothing that can be called; write module:factory")
    return factory


def captured(
    requests: Mapping[GraphSpec, Request], factory: Callable[[], Executor], python: str
) -> Generator[tuple[GraphSpec, Record]]:
    """The records in the order in which they come back. Closing the iterator cancels what has not begun.

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
            futures[executor.submit(task, json.dumps(dataclasses.asdict(request)), python)] = spec
        for future in as_completed(futures):
            spec = futures[future]
            try:
                record = Record.from_json(future.result())
            except Exception as error:  # noqa: BLE001 - a lost machine, a broken pool: whatever the executor raises
                message = f"no record came back: {error}"
                record = failed(spec.to_dict(), Failure("limit", type(error).__name__, message, transient=True))
            yield spec, record
    finally:
        for future in futures:
            future.cancel()
        executor.shutdown(wait=True)


# -- where a task runs

_idle: dict[str, list[Server]] = {}
"""Servers between two tasks of this process, by interpreter: one that stays saves each task the import of torch."""
_lock = threading.Lock()


def task(request: str, python: str) -> str:
    """One capture: the request's JSON becomes the record's."""
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
