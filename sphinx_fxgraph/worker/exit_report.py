"""Why a capture's process ended without a record, as far as its exit status and output tell."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Sequence

from sphinx_fxgraph.cache.fingerprints import portable
from sphinx_fxgraph.record.header import Failure

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
    words = _words(output[: header.start()] if header else output)
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


def _words(text: str) -> str:
    """The last words, without what differs from machine to machine."""
    text = " ".join(" ".join(text.strip().split("\n")[-4:]).split())[-300:]
    text = re.sub(r"(?<![\w.])(?:[A-Za-z]:)?[/\\](?:[^\s:\"'/\\]+[/\\])+", "", text)  # folders
    return re.sub(r"\b0x[0-9a-fA-F]+", "0x…", text)
