"""A worker server seen from outside: a process that is started when it is needed, asked for records, and ended."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import threading
from typing import IO

from sphinx_fxgraph.record.header import Failure, RecordError
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.text.escape import printable_json
from sphinx_fxgraph.worker.child import Request, failed
from sphinx_fxgraph.worker.exit_report import signal_name
from sphinx_fxgraph.worker.process import STARTUP, command
from sphinx_fxgraph.worker.programs import remove_folder


class Server:
    """A worker process, started when it is first needed and again after it has died.

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
        """The record, or one that says how the process ended."""
        self._number += 1
        # The server makes and removes it. Should it die, that is done here.
        folder = os.path.join(tempfile.gettempdir(), f"fxgraph-{os.urandom(8).hex()}")  # noqa: PTH118 - travels as text
        line = json.dumps({"id": self._number, **vars(request), "temporary": folder}).encode() + b"\n"
        try:
            process = self._start()
        except OSError as error:
            message = f"the interpreter for captures does not start: {error.strerror or error}"
            return failed(request.spec, Failure("import", type(error).__name__, message, transient=True))
        # The server keeps the time itself. This is for a server that does not even come to life.
        guard = threading.Timer(min(2 * request.seconds + 4 * STARTUP, threading.TIMEOUT_MAX), process.kill)
        guard.daemon = True
        guard.start()
        try:
            if record := self._ask(process, line):
                return record
            failure = self._obituary(process)
            remove_folder(folder)
            return failed(request.spec, failure)
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
        return Record.from_json(printable_json(json.loads(answer)["record"])) if answer.endswith(b"\n") else None

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
        process.wait(2)  # it removes the temporary folder of the capture under way
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
