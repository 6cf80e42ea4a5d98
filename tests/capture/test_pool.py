"""Specs in, records out, through real worker processes and models that do what they must not."""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker.pool import capture

pytestmark = pytest.mark.torch

INPUTS = "f32[1, 2]"

WILD = """
import itertools, os, pathlib, subprocess, sys, time, urllib.request
import torch
from torch import nn

URL = "http://127.0.0.1:PORT/"

class Tame(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)

    def forward(self, x):
        return self.fc(x)

class Aborts(Tame):
    def forward(self, x):
        os.abort()

class Exits(Tame):
    def __init__(self):
        sys.exit(3)

class ExitsInForward(Tame):
    def forward(self, x):
        sys.exit(4)

class ExitsAtOnce(Tame):
    def forward(self, x):
        os._exit(0)

class SaysWhyAndDies(Tame):
    def forward(self, x):
        print("no licence in /home/me/licences/key.txt for 0x7f00deadbeef", file=sys.stderr)
        os.kill(os.getpid(), 15)

class IsKilledOnce(Tame):
    def forward(self, x):
        try:
            pathlib.Path("killed").touch(exist_ok=False)
        except FileExistsError:
            return self.fc(x)
        os.kill(os.getpid(), 9)

class Loops(Tame):
    def forward(self, x):
        while True:
            pass

class LoopsInC(Tame):
    def forward(self, x):
        sum(itertools.repeat(0))

class HangsInAFork(Tame):
    def forward(self, x):
        if "--once" not in sys.argv:
            time.sleep(1000)
        return self.fc(x)

class Prints(Tame):
    def forward(self, x):
        print("{}" * 100_000)
        os.write(1, b"not json\\n" * 1000)
        subprocess.run([sys.executable, "-c", "print(1)"], check=True)
        return self.fc(x)

class ClosesOutput(Tame):
    def forward(self, x):
        sys.stdout.close()
        sys.stderr = None
        os.closerange(0, 100)
        return self.fc(x)

class ReadsInput(Tame):
    def forward(self, x):
        assert sys.stdin.read() == ""
        assert os.read(0, 1) == b""
        return self.fc(x)

class ReadsItsFolder(Tame):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, int(pathlib.Path("width.txt").read_text()))

class Downloads(Tame):
    def __init__(self):
        super().__init__()
        urllib.request.urlopen(URL).read()

class HidesADownload(Tame):
    def __init__(self):
        super().__init__()
        try:
            urllib.request.urlopen(URL)
        except OSError:
            raise ValueError("no weights") from None

class CanDoWithoutADownload(Tame):
    def __init__(self):
        super().__init__()
        try:
            urllib.request.urlopen(URL)
        except OSError:
            pass

class LeavesAProcess(Tame):
    def forward(self, x):
        process = subprocess.Popen(["sleep", "1000"])
        pathlib.Path("left").write_text(str(process.pid))
        return self.fc(x)

class Hungry(Tame):
    def forward(self, x):
        return self.fc(x) + torch.zeros(1 << 40).sum()

class KillsTheServer(Tame):
    def forward(self, x):
        os.kill(os.getppid(), 9)

class UsesEveryCore(Tame):
    def forward(self, x):
        return self.fc(x) + torch.randn(300, 300).mm(torch.randn(300, 300)).sum()

class Raises(Tame):
    def forward(self, x):
        raise KeyboardInterrupt

class TellsAndWaits(Tame):
    def forward(self, x):
        pathlib.Path("pipe").write_text(str(os.getpid()))
        time.sleep(1000)

class MeetsAnother(Tame):
    def __init__(self, me, other):
        super().__init__()
        pathlib.Path(me).write_text(str(os.getppid()))
        while not pathlib.Path(other).exists():
            time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def listener() -> Iterator[tuple[socket.socket, list[bytes]]]:
    """A server on this machine, and what came to it."""
    came: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    came.append(connection.recv(1000))
                    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        yield server, came
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, listener: tuple[socket.socket, list[bytes]]) -> Path:
    """A docs folder, with the package `wild` beside it in `src`."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "src").mkdir()
    port = str(listener[0].getsockname()[1])
    (folder / "src/wild.py").write_text(WILD.replace("PORT", port))
    (folder / "width.txt").write_text("7")
    return folder


def parse(name: str, **options: object) -> GraphSpec:
    target = f"wild:{name}" if ":" not in name else name
    return GraphSpec.parse(target, INPUTS, **options)


CASES = {
    "Tame": parse("Tame"),
    "Aborts": parse("Aborts"),
    "Exits": parse("Exits"),
    "ExitsInForward": parse("ExitsInForward"),
    "ExitsAtOnce": parse("ExitsAtOnce"),
    "SaysWhyAndDies": parse("SaysWhyAndDies"),
    "IsKilledOnce": parse("IsKilledOnce"),
    "Loops": parse("Loops", timeout="2"),
    "LoopsInC": parse("LoopsInC", timeout="2"),
    "HangsInAFork": parse("HangsInAFork", timeout="8"),
    "Prints": parse("Prints"),
    "ClosesOutput": parse("ClosesOutput"),
    "ReadsInput": parse("ReadsInput"),
    "ReadsItsFolder": parse("ReadsItsFolder"),
    "Downloads": parse("Downloads"),
    "DownloadsAndMay": parse("Downloads", network="yes"),
    "HidesADownload": parse("HidesADownload"),
    "CanDoWithoutADownload": parse("CanDoWithoutADownload"),
    "LeavesAProcess": parse("LeavesAProcess"),
    "Hungry": parse("Hungry", device="cpu"),
    "UsesEveryCore": parse("UsesEveryCore", device="cpu"),
    "Raises": parse("Raises"),
    "Missing": parse("nowhere_to_be_found:Net"),
    "KillsTheServer": parse("KillsTheServer"),
    "First": parse("MeetsAnother('first', 'second')"),
    "Second": parse("MeetsAnother('second', 'first')"),
}


@pytest.fixture(scope="module")
def told() -> list[str]:
    """What the progress callback was told."""
    return []


@pytest.fixture(scope="module")
def records(folder: Path, told: list[str]) -> Mapping[str, Record]:
    """All cases captured in one run of two workers."""
    done = dict(
        capture(
            CASES.values(),
            sys_path=[str(folder / "src"), *sys.path],
            confdir=folder,
            workers=2,
            timeout=60,
            progress=told.append,
        )
    )
    return {name: done[spec] for name, spec in CASES.items()}


def failure(record: Record) -> Failure:
    assert record.failure is not None
    return record.failure


def line(text: str) -> int:
    return WILD.split("\n").index(text) + 1


def test_every_spec_has_a_record_of_its_own_and_progress_names_each(
    records: Mapping[str, Record], told: list[str]
) -> None:
    assert {name: dict(record.spec) for name, record in records.items()} == {
        name: spec.to_dict() for name, spec in CASES.items()
    }
    assert sorted(told) == sorted(spec.target for spec in CASES.values())


@pytest.mark.parametrize(
    "name",
    [
        "Tame",
        "Prints",
        "ClosesOutput",
        "ReadsInput",
        "HangsInAFork",
        "CanDoWithoutADownload",
        "LeavesAProcess",
        "IsKilledOnce",
    ],
)
def test_these_have_their_graph(records: Mapping[str, Record], name: str) -> None:
    assert records[name].failure is None
    assert records[name].output == "f32[1, 3]"
    assert {source.file for source in records[name].sources} == {"wild.py"}


@pytest.mark.parametrize(
    ("name", "kind", "message", "at"),
    [
        ("Aborts", "SIGABRT", "the process was ended by SIGABRT", "        os.abort()"),
        ("ExitsAtOnce", "exit", "the model's code ended the process with status 0", None),
        (
            "SaysWhyAndDies",
            "SIGTERM",
            "the process was ended by SIGTERM; it wrote: no licence in key.txt for 0x…",
            None,
        ),
        ("Loops", "timeout", "no result within 2 s (:timeout: sets the limit)", None),
        ("LoopsInC", "timeout", "no result within 2 s (:timeout: sets the limit)", "        sum(itertools.repeat(0))"),
    ],
)
def test_what_ends_the_process_is_a_failure_with_its_place(
    records: Mapping[str, Record], name: str, kind: str, message: str, at: str | None
) -> None:
    found = failure(records[name])
    assert (found.stage, found.type, found.message, found.transient) == ("limit", kind, message, True)
    if at is not None:
        assert (found.file, found.line) == ("wild.py", line(at))


def test_a_loop_is_told_with_the_line_it_was_in(records: Mapping[str, Record]) -> None:
    found = failure(records["Loops"])
    assert found.file == "wild.py"
    assert found.line in (line("        while True:"), line("            pass"))


def test_the_network_is_refused_with_the_remedy(
    records: Mapping[str, Record], listener: tuple[socket.socket, list[bytes]]
) -> None:
    for name in ("Downloads", "HidesADownload"):
        found = failure(records[name])
        assert found.transient
        assert "weights=None" in found.message
        assert ":network: yes" in found.message
    assert "no weights" in failure(records["HidesADownload"]).message
    assert records["DownloadsAndMay"].failure is None
    assert len(listener[1]) == 1


def test_a_missing_package_is_named(records: Mapping[str, Record]) -> None:
    found = failure(records["Missing"])
    assert (found.stage, found.transient) == ("import", True)
    assert "nowhere_to_be_found" in found.message


def test_memory_that_is_not_there_depends_on_the_machine(records: Mapping[str, Record]) -> None:
    found = failure(records["Hungry"])
    assert (found.stage, found.transient) == ("limit", True)
    assert "memory" in found.message


def test_an_interrupt_in_a_model_does_not_interrupt_us(records: Mapping[str, Record]) -> None:
    assert failure(records["Raises"]).type == "KeyboardInterrupt"


@pytest.mark.parametrize(("name", "at"), [("Exits", "        sys.exit(3)"), ("ExitsInForward", "        sys.exit(4)")])
def test_an_exit_is_a_failure_like_an_exception(records: Mapping[str, Record], name: str, at: str) -> None:
    found = failure(records[name])
    assert (found.type, found.file, found.line) == ("SystemExit", "wild.py", line(at))
    assert at.strip()[-2] in found.message


def test_the_current_folder_is_that_of_conf_py(records: Mapping[str, Record]) -> None:
    assert records["ReadsItsFolder"].output == "f32[1, 7]"


def test_operators_on_many_threads_run_in_a_forked_child(records: Mapping[str, Record]) -> None:
    assert records["UsesEveryCore"].failure is None


def test_what_a_capture_has_started_ends_with_it(records: Mapping[str, Record], folder: Path) -> None:
    assert records["LeavesAProcess"].failure is None
    state = Path(f"/proc/{(folder / 'left').read_text()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_two_workers_work_at_once(records: Mapping[str, Record], folder: Path) -> None:
    assert records["First"].failure is records["Second"].failure is None
    assert (folder / "first").read_text() != (folder / "second").read_text()


def test_a_worker_that_dies_costs_one_record(records: Mapping[str, Record]) -> None:
    found = failure(records["KillsTheServer"])
    assert (found.stage, found.type, found.transient) == ("limit", "SIGKILL", True)
    assert records["First"].failure is None  # and came later


def test_no_record_holds_a_path_of_this_machine(records: Mapping[str, Record], folder: Path) -> None:
    for record in records.values():
        text = record.to_json()
        assert str(folder) not in text
        assert sys.prefix not in text


def test_without_specs_no_process_is_started() -> None:
    assert list(capture([], python="/nowhere/python")) == []


def test_an_interpreter_that_is_not_there_is_a_failure() -> None:
    ((_, record),) = capture([parse("Tame")], python="/nowhere/python")
    assert (failure(record).stage, failure(record).type) == ("import", "FileNotFoundError")


def test_an_interpreter_without_torch_is_told_how_to_get_it(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    (site,) = (tmp_path / "bare").glob("[Ll]ib/**/site-packages")
    (site / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    python = tmp_path / "bare" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ((_, record),) = capture([parse("Tame")], python=str(python))
    found = failure(record)
    assert (found.stage, found.type, found.transient) == ("import", "ModuleNotFoundError", True)
    assert "sphinx-fxgraph[torch]" in found.message


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes")
def test_closing_the_iterator_ends_what_is_under_way(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    pipe = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    specs = [parse("Tame"), parse("TellsAndWaits"), parse("Exits")]
    running = capture(specs, sys_path=[str(folder / "src")], confdir=folder, workers=1)
    assert next(running)[0] == specs[0]
    assert select.select([pipe], [], [], 60)[0]
    pid = int(os.read(pipe, 100))
    os.kill(pid, 0)  # it is there
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    os.close(pipe)
