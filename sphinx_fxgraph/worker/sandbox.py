"""What surrounds one capture: a process group of its own, no network, limits, output that goes into a file.

Everything here changes the whole process, so it is entered once, in a process that ends after the capture.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from sphinx_fxgraph.cache import fingerprints

REMEDY = (
    "a capture has no network: build the model without downloaded weights (weights=None, pretrained=False), "
    "or allow it with :network: yes"
)


class NetworkRefusedError(ConnectionRefusedError):
    """Something tried to reach the network. An OSError, so that what can do without goes on."""


def enter(output: Path, folder: str, sys_path: Sequence[str], memory: int) -> int:
    """Set up this process: its output into a file, its folder and import path, its share of the memory.

    Args:
        output: takes standard output and standard error.
        folder: becomes the current folder.
        sys_path: where modules are searched first.
        memory: bytes of data it may have; 0 is no limit.

    Returns:
        A file descriptor of the output that the model's code does not know.
    """
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):  # it leads a session already
            os.setsid()
    _redirect(output)
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
    log = os.open(output, os.O_WRONLY | os.O_APPEND)
    faulthandler.enable(log)  # a crash is told with its place
    return log


def limit_time(seconds: float, log: int) -> None:
    """End this process after so many seconds from now; it writes to ``log`` where it was.

    A handler of SIGALRM in Python would wait for ever for a loop in C to return. This is a thread that needs nobody.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=log)


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


def _redirect(output: Path) -> None:
    """Standard input is empty, standard output and error go into a file, for Python and below it."""
    sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - open as long as the process is
    os.dup2(sys.stdin.fileno(), 0)
    sys.stdout = sys.stderr = output.open("w", encoding="utf-8", errors="backslashreplace", buffering=1)
    os.dup2(sys.stdout.fileno(), 1)
    os.dup2(sys.stdout.fileno(), 2)
