"""Run another program within bounds: its time, its output, and whatever it has started."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

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
