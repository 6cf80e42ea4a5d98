"""What surrounds one capture: a process group of its own, no network, limits, output that goes into a file.

Everything here changes the whole process, so it is entered once, in a process that ends after the capture.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from sphinx_fxgraph.cache import fingerprints

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
    fingerprints.look_again()
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
    """Let the kernel kill this process when the thread that started it ends; no more, if not ``yes``. Linux only."""
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
    """Make this process refuse every connection but local sockets. The list returned tells what was refused."""
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
    """Tell the hub's client, which else tries again and again before it looks at what it has on disk."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_DATASETS_OFFLINE="1")


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Let nothing that is printed be seen, by Python or below it."""
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
