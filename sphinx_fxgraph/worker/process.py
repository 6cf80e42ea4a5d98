"""The worker server: specs in, records out, each capture in a process of its own.

``python -m sphinx_fxgraph.worker.process`` imports torch once and forks a child for each request, a line of
JSON on standard input; the answer is a line of JSON on standard output. The server itself runs no operator: a child
would hang in OpenMP, whose threads do not survive a fork. Closing its input ends it, and the capture under way.

With ``--once RESULT OUTPUT`` it makes one capture, in this process; with ``--list`` it calls a zoo's registry.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import BinaryIO, Protocol

from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.worker import child, exit_report, listing, sandbox
from sphinx_fxgraph.worker.child import Request

STARTUP = 60.0
"""Seconds that a fresh process may need for importing torch."""
_QUIET = 20.0
"""Seconds without any work, but at most a quarter of the limit, after which a forked child counts as hung."""
_FORKS = hasattr(os, "fork") and sys.platform != "darwin"  # macOS: its own libraries crash in a forked child
_BOOT = """\
import importlib.util, sys
spec = importlib.util.spec_from_file_location("sphinx_fxgraph", sys.argv.pop(1))
sys.modules["sphinx_fxgraph"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from sphinx_fxgraph.worker.process import main
main(sys.argv[1:])
"""


def command(python: str) -> list[str]:
    """The command line of a server under some interpreter.

    It runs this very copy of the package, whatever that interpreter would find, and nothing else of what is installed
    beside it. ``-P`` keeps the current folder, which may hold anything, out of the import path.
    """
    return [python, "-P", "-c", _BOOT, str(Path(__file__).parents[1] / "__init__.py")]


def main(arguments: list[str]) -> None:
    """Serve until standard input is closed, or make one capture, or call one registry."""
    if arguments[:1] == ["--list"]:
        listing.listed(json.loads(sys.stdin.buffer.read()), Path(arguments[1]), Path(arguments[2]))
    if arguments[:1] == ["--once"]:
        child.capture(Request(**json.loads(sys.stdin.buffer.read())), Path(arguments[1]), Path(arguments[2]))
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)  # what an import prints is no answer
        with tempfile.TemporaryDirectory(prefix="fxgraph-", ignore_cleanup_errors=True) as folder:
            _Server(requests, answers, Path(folder)).run()


class _Process(Protocol):
    """A child, forked or fresh."""

    pid: int

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""


class _Forked:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status


class _HungError(Exception):
    """A forked child does nothing at all: a package may have run an operator where it must not."""


class _Server:
    def __init__(self, requests: BinaryIO, answers: BinaryIO, folder: Path) -> None:
        self.requests, self.answers = requests, answers
        self.result, self.output = folder / "record.json", folder / "output"
        self.ready: dict[str, bool] = {}
        """What children have imported, and whether this process has yet to do so."""
        self.path: tuple[str, ...] | None = None
        """Where modules were searched when what children had imported was imported here, if anything was."""
        self.forks = _FORKS

    def run(self) -> None:
        """Answer every request."""
        self._preload()
        before: Request | None = None
        for line in self.requests:
            plain = json.loads(line)
            number = plain.pop("id")
            request = Request(**plain)
            if before and self.forks and any(self.ready.values()):
                self._share(before)
            answer = {"id": number, "record": self.capture(request)}
            before = request
            self.answers.write(json.dumps(answer).encode() + b"\n")
            self.answers.flush()

    def _preload(self, *names: str) -> None:
        if _FORKS:
            child.preload(*names)
            gc.freeze()  # children share the memory of what they do not touch

    def _share(self, request: Request) -> None:
        """Import for all children to come what one of them has imported, and ended well."""
        threads, before = child.threads(), list(sys.path)
        names = [name for name, todo in self.ready.items() if todo]
        self.ready = dict.fromkeys(self.ready, False)
        sandbox.go_offline()
        sys.path[:] = dict.fromkeys([*request.sys_path, *sys.path])
        with sandbox.silence():
            self._preload(*names)
        sys.path[:] = before
        self.path = request.sys_path
        self.forks = child.threads() == threads  # a process with more of them cannot be forked safely

    def _is_alike(self, request: Request) -> bool:
        """Whether a child of this process would find the modules that the request means, and its network."""
        return self.path is None or (self.path == request.sys_path and not request.spec.get("network"))

    def capture(self, request: Request) -> str:
        """The record's JSON, whatever becomes of the child."""
        try:
            try:
                forks = self.forks and self._is_alike(request)
                status = self._wait(self._fork(request) if forks else self._fresh(request), request)
            except _HungError:
                status = self._wait(self._fresh(request), request)
            if status == 0 and self.result.exists():
                names = json.loads(self.result.with_name(child.READY).read_text(encoding="utf-8"))
                self.ready = dict.fromkeys((name for name in names if name not in sys.modules), True) | self.ready
                return self.result.read_text(encoding="utf-8")
            output = self.output.read_text(encoding="utf-8", errors="replace") if self.output.exists() else ""
            failure = exit_report.ended(status, output, request.seconds, request.sys_path)
        except OSError as error:  # no memory to fork, no room for temporary files
            message = f"no process for the capture: {error.strerror or error}"
            failure = Failure("limit", type(error).__name__, message, transient=True)
        return child.failed(request.spec, failure).to_json()

    def _fork(self, request: Request) -> _Process:
        self.result.unlink(missing_ok=True)
        pid = os.fork()
        if not pid:
            self.requests.close()
            self.answers.close()
            child.capture(request, self.result, self.output)
        return _Forked(pid)

    def _fresh(self, request: Request) -> _Process:
        self.result.unlink(missing_ok=True)
        process = subprocess.Popen(
            [*command(sys.executable), "--once", str(self.result), str(self.output)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(json.dumps(dataclasses.asdict(request)).encode())
        return process

    def _wait(self, process: _Process, request: Request) -> int | None:
        """The exit status; None for a child that did not end itself in time.

        Raises:
            _HungError: a forked child hangs.
        """
        forked = isinstance(process, _Forked)
        start = now = time.monotonic()
        end = start + request.seconds + (STARTUP if not forked else min(STARTUP, request.seconds))
        patience = min(_QUIET, request.seconds / 4)
        work, since = -1, start
        try:
            while process.poll() is None and now < end:
                if self._abandoned(0.01):
                    raise SystemExit
                now = time.monotonic()
                if forked and (done := _work(process.pid)) != work:
                    work, since = done, now
                if work >= 0 and now - since > patience:
                    raise _HungError
            return process.poll()
        finally:
            _end(process)

    def _abandoned(self, seconds: float) -> bool:
        """Wait a little. Whether whoever started this server has closed its input, or is no more."""
        if sys.platform == "win32":
            time.sleep(seconds)
            return False
        poll = select.poll()
        poll.register(self.requests, 0)
        return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(seconds * 1000))


def _work(pid: int) -> int:
    """Processor time that a process has had, in clock ticks; -1 where nobody knows."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return -1
    return int(fields[11]) + int(fields[12])


def _end(process: _Process) -> None:
    """End a child, if it has not ended, and what it has left running."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    while process.poll() is None:
        with contextlib.suppress(OSError):
            os.kill(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1:])
