"""Run a capture within bounds: a process group, no network, limits of time and output.

Everything here changes the whole process, so it is entered once, in a process that ends after the capture.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from sphinx_fxgraph.cache import fingerprints

_CHUNK = 1 << 16


class ProgramError(Exception):
    """The program was ended, since it took too long or wrote too much."""


@dataclass(frozen=True)
class Finished:
    """How a program ended and what it wrote."""

    status: int
    output: bytes
    errors: bytes


def run(command: Sequence[str], data: bytes = b"", *, timeout: float, most: int = 1 << 28) -> Finished:
    """Run a program to its end. Nothing that it started outlives the call, and no pipe is waited for after the end.

    `subprocess.run` with a time limit kills only the program itself and then waits for as long as a child of it holds
    the pipes (https://github.com/python/cpython/issues/81605).

    Args:
        command: the program and its arguments.
        data: its standard input.
        timeout: seconds.
        most: bytes that it may write to standard output, and to standard error.

    Raises:
        OSError: it cannot be started.
        ProgramError: it was ended.
    """
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a group that can be ended as a whole
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    written: tuple[list[bytes], list[bytes]] = ([], [])
    flooded = threading.Event()

    def read(pipe: IO[bytes], into: list[bytes]) -> None:
        size = 0
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(pipe.fileno(), _CHUNK):
                size += len(chunk)
                if size > most:
                    flooded.set()
                    end_group(process)
                    return
                into.append(chunk)

    def write(pipe: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            pipe.write(data)
        with contextlib.suppress(OSError, ValueError):
            pipe.close()

    threads = [
        threading.Thread(target=write, args=(process.stdin,), daemon=True),
        threading.Thread(target=read, args=(process.stdout, written[0]), daemon=True),
        threading.Thread(target=read, args=(process.stderr, written[1]), daemon=True),
    ]
    try:
        for thread in threads:
            thread.start()
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise ProgramError(f"needed more than {timeout:g} s") from None
    finally:
        end_group(process)
        for thread in threads:
            thread.join(5)  # all that could hold the pipes is gone
        if not any(thread.is_alive() for thread in threads):
            process.stdout.close()
            process.stderr.close()
    if flooded.is_set():
        raise ProgramError(f"wrote more than {most >> 20} MB")
    return Finished(status, b"".join(written[0]), b"".join(written[1]))


def remove_folder(name: str) -> None:
    """Remove a folder with all that is in it, also what its owner has made read-only; nothing, if it is not there."""
    for folder, _, _ in os.walk(name):  # top down, so that what is below can be listed
        with contextlib.suppress(OSError):
            os.chmod(folder, stat.S_IRWXU)  # noqa: PTH101 - a string from os.walk
    shutil.rmtree(name, ignore_errors=True)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program that leads a session of its own, and what it has started; wait for the program."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):  # it is gone, with all of its group
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        process.kill()
    process.wait()


if sys.platform == "linux":
    import fcntl

REMEDY = (
    "a capture has no network: build the model without downloaded weights (weights=None, pretrained=False), "
    "or allow it with :network: yes"
)


class NetworkRefusedError(ConnectionRefusedError):
    """Something tried to reach the network. An OSError, so that what can do without goes on."""


def enter(output: int, folder: str, sys_path: Sequence[str], memory: int = 0, temporary: str = "") -> int:
    """Set up this process: its output into a file, its folder and import path, its share of the memory.

    Args:
        output: file descriptor that takes standard output and standard error.
        folder: becomes the current folder.
        sys_path: where modules are searched first.
        memory: bytes of data it may have; 0 is no limit.
        temporary: the folder of its temporary files, which is removed afterwards; empty is that of the system.

    Returns:
        A file descriptor of the output that the model's code does not know.
    """
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):  # it leads a session already
            os.setsid()
    die_with_parent()
    log = os.dup(output)
    _redirect(output)
    if temporary:
        os.environ.update(TMPDIR=temporary, TEMP=temporary, TMP=temporary)
        tempfile.tempdir = None  # where the server's own temporary files are
    sys.path[:] = dict.fromkeys([*sys_path, *sys.path])
    fingerprints.refresh_finders()
    with contextlib.suppress(OSError):
        os.chdir(folder)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # where memory runs out, this process is the one to go
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        if memory:
            import resource

            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    faulthandler.enable(log)  # a crash is told with its place
    return log


def limit_time(seconds: float, log: int) -> None:
    """End this process after so many seconds from now; it writes to ``log`` where it was.

    A handler of SIGALRM in Python would wait for ever for a loop in C to return. This is a thread that needs nobody.
    """
    faulthandler.dump_traceback_later(min(seconds, threading.TIMEOUT_MAX), exit=True, file=log)


# -- Linux: whatever a process has started can be found and ended

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
"""Of ``<linux/prctl.h>``."""


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def die_with_parent(yes: bool = True) -> None:
    """Let the kernel kill this process when the thread that started it ends; stop that if not ``yes``. Linux only."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL if yes and sys.platform == "linux" else 0)


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends. Linux only."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def end_children(seconds: float = 5.0) -> None:
    """Kill all children of this process, and theirs, which it adopts (see `adopt_orphans`). Linux only."""
    end = time.monotonic() + seconds
    while (children := _children()) and time.monotonic() < end:
        for pid in children:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    try:
        return [
            int(pid)
            for task in Path("/proc/self/task").iterdir()
            for pid in (task / "children").read_text(encoding="ascii").split()
        ]
    except (OSError, ValueError):  # another system, or a kernel without CONFIG_PROC_CHILDREN
        return []


def leave_network() -> bool:
    """Move this process into a network of its own, which has a loopback device and nothing else.

    Binds what starts other programs or calls the system itself, which `refuse_network` does not see. Root may do this,
    and others where the system lets them make user namespaces. Linux only.

    Returns:
        Whether it was allowed.
    """
    if sys.platform != "linux":
        return False
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        user, group = os.getuid(), os.getgid()
        if libc.unshare(_NEWNET):
            if libc.unshare(_NEWUSER | _NEWNET):
                return False
            with contextlib.suppress(OSError):
                Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
                Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
                Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
            fcntl.ioctl(device, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
    except (OSError, AttributeError):
        return False
    return True


_NEWNET, _NEWUSER = 0x40000000, 0x10000000
"""Of ``<linux/sched.h>``."""
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1
"""Of ``<linux/sockios.h>`` and ``<linux/if.h>``."""


def refuse_network() -> list[str]:
    """Refuse every connection of this process but local sockets, and return a list that takes what is refused."""
    refused: list[str] = []

    def refuse(*address: Any) -> NoReturn:
        refused.append(repr(address))
        raise NetworkRefusedError(REMEDY)

    def guard(name: str) -> None:
        method = getattr(socket.socket, name)

        def guarded(self: socket.socket, *args: Any) -> Any:
            return method(self, *args) if self.family == getattr(socket, "AF_UNIX", None) else refuse(*args)

        setattr(socket.socket, name, guarded)

    for name in ("connect", "connect_ex", "sendto"):
        guard(name)
    socket.getaddrinfo = lambda host, port, *_args, **_kwargs: refuse(host, port)
    go_offline()
    return refused


def go_offline() -> None:
    """Set the environment variables that keep the client of Hugging Face's hub from retrying without network."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_DATASETS_OFFLINE="1")


@contextlib.contextmanager
def no_compile_cache() -> Iterator[None]:
    """Keep torch from making a folder for compiled code in the folder of temporary files.

    ``torch._dynamo`` makes it when it is imported (``torch._inductor.runtime.cache_dir_utils.cache_dir``), unless the
    folder is there already.
    """
    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    os.environ.setdefault(name, tempfile.gettempdir())
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Discard what Python and C code print."""
    kept = os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, descriptor in enumerate(kept, 1):
            os.dup2(descriptor, number)
        for descriptor in (*kept, nothing):
            os.close(descriptor)


def _redirect(output: int) -> None:
    """Let standard input be empty, and standard output and error go into a file, for Python and below it."""
    sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - open as long as the process is
    os.dup2(sys.stdin.fileno(), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout = sys.stderr = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115 - as long as the process
