"""Why a capture's process ended without a record, as far as its exit status and output tell."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence

from sphinx_fxgraph.cache.fingerprints import portable
from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.text.escape import one_line

_TRACEBACK = re.compile(r"^(Timeout \(\d+:\d+:\d+|Fatal Python error: |Windows fatal exception: )", re.MULTILINE)
"""How faulthandler begins."""


def ended(status: int | None, output: str, seconds: float, sys_path: Sequence[str]) -> Failure:
    """What there is to say.

    Args:
        status: exit status, negative for a signal; None if the process had to be ended for taking too long.
        output: what it wrote.
        seconds: its time limit.
        sys_path: its import path.
    """
    header = _TRACEBACK.search(output)
    place = _place(output[header.end() :], sys_path) if header else ("", 0)
    words = last_words(output[: header.start()] if header else output)
    if status is None or (status == 1 and header and header[0].startswith("Timeout")):
        kind, message, words = "timeout", f"no result within {seconds:g} s (:timeout: sets the limit)", ""
    elif status < 0:
        kind = signal_name(-status)
        message = f"the process was ended by {kind}"
        if kind == "SIGKILL":
            message += ", most likely because memory ran out"
    else:
        kind, message = "exit", f"the model's code ended the process with status {status}"
    if words:
        message += f"; it wrote: {words}"
    return Failure("limit", kind, message, *place, transient=True)


def tail(descriptor: int, most: int = 1 << 18) -> str:
    """Return the end of what a process has written to a file."""
    size = os.fstat(descriptor).st_size
    data = os.pread(descriptor, most, max(0, size - most)) if hasattr(os, "pread") else _end_of(descriptor, size, most)
    return data.decode(errors="replace").replace("\0", "")


def _end_of(descriptor: int, size: int, most: int) -> bytes:
    at = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, max(0, size - most), os.SEEK_SET)
    data = os.read(descriptor, most)
    os.lseek(descriptor, at, os.SEEK_SET)
    return data


def signal_name(number: int) -> str:
    """As ``SIGABRT``."""
    known = {each.value: each.name for each in signal.Signals}
    return known.get(number, f"signal {number}")


def _place(traceback: str, sys_path: Sequence[str]) -> tuple[str, int]:
    """Where the process was: in the model's own code if it was in any."""
    threads = re.split(r"^(?=(?:Current t|T)hread 0x)", traceback, flags=re.MULTILINE)
    current = next((thread for thread in threads if thread.startswith("Current")), threads[-1])
    frames = re.findall(r'^  File "(.+)", line (\d+) in ', current, re.MULTILINE)
    places = [(name, int(line)) for file, line in frames if (name := portable(file, sys_path))]
    others = ("torch", "sphinx_fxgraph", *sys.stdlib_module_names)
    own = [place for place in places if re.split(r"[/.]", place[0])[0] not in others]
    return next(iter(own or places), ("", 0))


def last_words(text: str) -> str:
    """Return the last words of an output, without what differs from machine to machine."""
    text = one_line("\n".join(text.strip().split("\n")[-4:]))[-300:]
    text = re.sub(r"(?<![\w.])(?:[A-Za-z]:)?[/\\](?:[^\s:\"'/\\]+[/\\])+", "", text)  # folders
    return re.sub(r"\b0x[0-9a-fA-F]+", "0x…", text)
