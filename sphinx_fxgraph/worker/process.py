"""The worker server: specs in, records out, each capture in a process of its own; also lists a registry's models.

``python -m sphinx_fxgraph.worker.process`` imports torch once and forks a child for each request, a line of
JSON on standard input; the answer is a line of JSON on standard output. The server itself runs no operator: a child
would hang in OpenMP, whose threads do not survive a fork. Closing its input ends it, and the capture under way.

With ``--once`` it makes one capture, in this process; with ``--list`` it calls a zoo's registry. Requests, results and
output travel through descriptors: no file has a name, so none is left when processes are killed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
import json
import operator
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Protocol, cast

from sphinx_fxgraph.cache.fingerprints import depends_on
from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.worker import child, sandbox
from sphinx_fxgraph.worker.child import Request
from sphinx_fxgraph.worker.sandbox import remove_folder


def write_listing(request: Mapping[str, Any], result: int, output: int) -> NoReturn:
    """Call what the request names, write what it gives to ``result`` as JSON, and end this process.

    Args:
        request: ``callable`` as ``module:name``, ``sys_path``, ``folder``, ``seconds`` and ``temporary``.
        result: file descriptor; gets ``models`` with ``sources``, ``folders`` and ``distributions``, or an ``error``.
        output: file descriptor; takes what the code prints.
    """
    status = 1
    try:
        log = sandbox.enter(output, request["folder"], request["sys_path"], temporary=request["temporary"])
        sandbox.adopt_orphans()
        sandbox.leave_network()
        sandbox.refuse_network()
        sandbox.limit_time(request["seconds"], log)
        answer = json.dumps(_list_models(request["callable"])).encode()
        sandbox.end_children()
        with open(result, "wb") as file:
            file.write(answer)
        status = 0
    except BaseException:  # noqa: BLE001 - told by the exit status and the output
        traceback.print_exc()
    finally:
        os._exit(status)


def _list_models(name: str) -> dict[str, Any]:
    module, _, path = name.partition(":")
    try:
        found = operator.attrgetter(path)(importlib.import_module(module))()
        models = dict(found) if isinstance(found, Mapping) else list(found)
        json.dumps(models)
    except Exception as error:  # noqa: BLE001 - someone else's code
        return {"error": f"{type(error).__name__}: {error}"}
    sources, distributions = depends_on(_files(module.partition(".")[0]))
    return {
        "models": models,
        "sources": {source.file: source.digest for source in sources},
        "folders": _folders([source.file for source in sources], module.partition(".")[0]),
        "distributions": distributions,
    }


def _files(package: str) -> Iterable[str]:
    """Yield the files of a package that are loaded."""
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if f"{name}.".startswith(f"{package}.") and file:
            yield file


def _folders(sources: Iterable[str], package: str) -> dict[str, list[str]]:
    """Return the Python files in the folders of the sources: a registry that searches its folder finds new files."""
    folders = {os.path.dirname(source) for source in sources}  # noqa: PTH120 - not a path but a name of ours
    found = {}
    for place in getattr(sys.modules[package], "__path__", ()):
        for folder in sorted(filter(None, folders)):
            files = Path(place).parent.joinpath(folder).glob("*.py")
            found[folder] = sorted(file.name for file in files)
    return found


STARTUP = 60.0
"""Seconds that a fresh process may need for importing torch."""
IMPORTING, READY = "importing torch", "torch is imported"
"""Lines that a server writes to standard error, before anything else imports torch and afterwards."""
_QUIET = 20.0
"""Seconds without any work, but at most a quarter of the limit, after which a forked child counts as hung."""
_FORKS = hasattr(os, "fork") and sys.platform != "darwin"  # macOS: its own libraries crash in a forked child
_BOOT = """\
import sys
if sys.platform == "linux":  # the build may be killed while this imports: PR_SET_PDEATHSIG, SIGKILL
    import ctypes
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
    if not sys.argv[2:]:  # a server; it may have been killed already: 16 is POLLHUP
        import select
        poll = select.poll()
        poll.register(0, 0)
        if any(event & 16 for _, event in poll.poll(0)):
            raise SystemExit
import importlib.util
spec = importlib.util.spec_from_file_location("sphinx_fxgraph", sys.argv.pop(1))
sys.modules["sphinx_fxgraph"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from sphinx_fxgraph.worker.process import main
main(sys.argv[1:])
"""


def command(python: str) -> list[str]:
    """Return the command line of a server.

    It runs this very copy of the package, whatever that interpreter would find, and nothing else of what is installed
    beside it. ``-P`` keeps the current folder, which may hold anything, out of the import path.
    """
    return [python, "-P", "-c", _BOOT, str(Path(__file__).parents[1] / "__init__.py")]


def main(arguments: list[str]) -> None:
    """Serve until standard input is closed, or make one capture, or call one registry."""
    sandbox.die_with_parent()
    if arguments[:1] == ["--list"]:
        write_listing(json.loads(sys.stdin.buffer.read()), os.dup(1), os.dup(2))
    if arguments[:1] == ["--once"]:
        request = Request(**json.loads(sys.stdin.buffer.read()))
        result = os.dup(1)
        child.capture(request, child.Slot(result, os.getppid(), int(arguments[1])), os.dup(2))
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)  # what an import prints is no answer
        if sys.platform != "win32":
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that temporary folders are removed
        sandbox.adopt_orphans()
        status = 1
        try:
            with contextlib.suppress(BrokenPipeError):  # whoever asked is no more
                _Server(requests, answers).run()
            status = 0
        except Exception:  # noqa: BLE001 - told by the exit status and the output
            traceback.print_exc()
        finally:
            os._exit(status)  # taking torch down in order takes longer than a killed build may leave us


class _Process(Protocol):
    """A child, forked or fresh."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""


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
    """A forked child uses no processor time: a package may have run an operator in the server."""


class _Server:
    def __init__(self, requests: BinaryIO, answers: BinaryIO) -> None:
        self.requests, self.answers = requests, answers
        self.ready: dict[str, bool] = {}
        """Modules that children have imported, and whether this process is to import them too."""
        self.path: tuple[str, ...] | None = None
        """The import path with which this process imported modules of children; None if it has imported none."""
        self.forks = _FORKS

    def run(self) -> None:
        """Answer every request."""
        print(IMPORTING, file=sys.stderr, flush=True)
        self._preload()
        print(READY, file=sys.stderr, flush=True)
        before: Request | None = None
        for line in self.requests:
            plain = json.loads(line)
            number = plain.pop("id")
            request = Request(**plain)
            if before and self.forks and any(self.ready.values()):
                self._import_shared(before)
            answer = {"id": number, "record": self.capture(request)}
            before = request
            self.answers.write(json.dumps(answer).encode() + b"\n")
            self.answers.flush()

    def _preload(self, *names: str) -> None:
        """Import what every capture needs; meanwhile nothing is read, and the kernel watches the parent."""
        if _FORKS:
            sandbox.die_with_parent()
            if self._is_abandoned(0):  # before the kernel was told
                raise SystemExit
            child.preload(*names)
            gc.freeze()  # children share the memory of what they do not touch
            sandbox.die_with_parent(False)

    def _import_shared(self, request: Request) -> None:
        """Import what a successful child has imported, so that later children need not."""
        threads, before = child.count_threads(), list(sys.path)
        names = [name for name, todo in self.ready.items() if todo]
        self.ready = dict.fromkeys(self.ready, False)
        sandbox.go_offline()
        sys.path[:] = dict.fromkeys([*request.sys_path, *sys.path])
        with sandbox.silence(), sandbox.no_compile_cache():
            self._preload(*names)
        sys.path[:] = before
        self.path = request.sys_path
        self.forks = child.count_threads() == threads  # a process with more of them cannot be forked safely

    def _can_fork(self, request: Request) -> bool:
        """Return whether a forked child would find the modules and the network that the request means."""
        return self.path is None or (self.path == request.sys_path and not request.spec.get("network"))

    def capture(self, request: Request) -> str:
        """Return the record as JSON, also if the child dies."""
        with contextlib.ExitStack() as files:
            try:
                folder = files.enter_context(_temporary_folder(request.temporary)) if request.temporary else ""
                request = dataclasses.replace(request, temporary=folder)
                result, output = (files.enter_context(_open_file(name)) for name in ("result", "output"))
                start = time.monotonic()
                try:
                    forks = self.forks and self._can_fork(request)
                    run = self._fork if forks else self._fresh
                    status = self._wait(run(request, result, output), request, output)
                except _HungError:
                    start = time.monotonic()
                    status = self._wait(self._fresh(request, result, output), request, output)
                if status == 0 and (size := os.fstat(result.fileno()).st_size):
                    if size > _LARGEST:
                        raise OSError(f"the record has {size >> 20} MB")
                    result.seek(0)
                    names = json.loads(result.readline())
                    self.ready = dict.fromkeys((name for name in names if name not in sys.modules), True) | self.ready
                    return result.read().decode("utf-8", "replace")
                if status == 1 and time.monotonic() - start >= request.seconds:
                    status = None  # the limit within the child, which may have had no file left to say so
                failure = child.exit_failure(status, child.tail(output.fileno()), request.seconds, request.sys_path)
            except (OSError, ValueError) as error:  # no memory to fork, no room for files, no record in the file
                message = f"no process for the capture: {getattr(error, 'strerror', None) or error}"
                failure = Failure("limit", type(error).__name__, message, transient=True)
        return child.failure_record(request.spec, failure).to_json()

    def _fork(self, request: Request, result: BinaryIO, output: BinaryIO) -> _Process:
        server = os.getpid()
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self.requests.close()
            self.answers.close()
            slot = child.Slot(result.fileno(), server, result.fileno())
            child.capture(request, slot, output.fileno())
        return _Forked(pid)

    def _fresh(self, request: Request, result: BinaryIO, output: BinaryIO) -> _Process:
        for file in (result, output):
            file.seek(0)
            file.truncate()
        process = subprocess.Popen(
            [*command(sys.executable), "--once", str(result.fileno())],
            stdin=subprocess.PIPE,
            stdout=result,
            stderr=output,
            start_new_session=True,
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(json.dumps(dataclasses.asdict(request)).encode())
        return process

    def _wait(self, process: _Process, request: Request, output: BinaryIO) -> int | None:
        """Return the exit status; None for a child that did not end itself in time.

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
                if self._is_abandoned(0.01):
                    raise SystemExit
                _limit_output(output)
                now = time.monotonic()
                if forked and (done := _processor_time(process.pid)) != work:
                    work, since = done, now
                if work >= 0 and now - since > patience:
                    raise _HungError
            return process.poll()
        finally:
            _end_process(process)

    def _is_abandoned(self, seconds: float) -> bool:
        """Wait, and return whether the process that started this server has closed its input or ended."""
        if sys.platform == "win32":
            time.sleep(seconds)
            return False
        poll = select.poll()
        poll.register(self.requests, 0)
        return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(seconds * 1000))


def _processor_time(pid: int) -> int:
    """Return the processor time of a process in clock ticks; -1 where that is not known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return -1
    return int(fields[11]) + int(fields[12])


def _end_process(process: _Process) -> None:
    """End a child and every process that it has started, also in sessions of their own."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    while process.poll() is None:
        with contextlib.suppress(OSError):
            os.kill(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        time.sleep(0.01)
    sandbox.end_children()


@contextlib.contextmanager
def _temporary_folder(name: str) -> Iterator[str]:
    """Make a folder for the temporary files of one capture, and remove it; empty where it cannot be made."""
    try:
        Path(name).parent.mkdir(parents=True, exist_ok=True)  # a model may have removed it
        Path(name).mkdir(mode=0o700)
    except OSError:
        yield ""
        return
    try:
        yield name
    finally:
        remove_folder(name)


def _open_file(name: str) -> BinaryIO:
    """Open a file that is in no folder: no capture can remove it, and it is gone with the processes that have it."""
    if sys.platform == "linux" and hasattr(os, "memfd_create"):
        return open(os.memfd_create(f"fxgraph-{name}"), "w+b")  # noqa: PTH123 - a descriptor, closed by the caller
    return cast("BinaryIO", tempfile.TemporaryFile())


_LARGEST = 1 << 28
"""Bytes of a record."""
_MOST_OUTPUT = 1 << 26
"""Bytes of what a capture prints; of more, only the end is kept."""


def _limit_output(output: BinaryIO) -> None:
    if sys.platform != "win32" and os.fstat(output.fileno()).st_blocks * 512 > _MOST_OUTPUT:
        os.ftruncate(output.fileno(), 0)


if __name__ == "__main__":
    main(sys.argv[1:])
