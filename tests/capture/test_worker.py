"""The worker's own face: a line of JSON in, a line of JSON out, and what it makes of a process that ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker.child import exit_failure

WORKER = [sys.executable, "-m", "sphinx_fxgraph.worker.process"]

NOISY = """
print("imported")
import os
os.write(1, b"{}")
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU()))
        print("built", self)
"""


def environment(seed: int) -> dict[str, str]:
    return {**os.environ, "PYTHONHASHSEED": str(seed)}


@pytest.mark.torch
def test_a_server_answers_each_request_and_a_single_capture_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/noisy.py").write_text(NOISY)
    spec = GraphSpec.parse("noisy:Net", "1, 3, 16, 16")
    request = {"spec": spec.to_dict(), "sys_path": [str(tmp_path / "a")], "folder": str(tmp_path), "seconds": 60}
    lines = [json.dumps({"id": number, **request}) + "\n" for number in ("x", 7)]
    with subprocess.Popen(
        WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", env=environment(1)
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(lines))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in lines]
        assert server.communicate()[0] == ""
    assert server.returncode == 0
    assert [answer["id"] for answer in answers] == ["x", 7]
    assert answers[0]["record"] == answers[1]["record"]

    (tmp_path / "a").rename(tmp_path / "b")
    moved = {**request, "sys_path": [str(tmp_path / "b")], "folder": str(tmp_path / "b")}
    with (tmp_path / "result").open("w+") as result, (tmp_path / "output").open("w+") as output:
        subprocess.run(
            [*WORKER, "--once", str(result.fileno())],
            input=json.dumps(moved),
            stdout=result,
            stderr=output,
            check=True,
            encoding="utf-8",
            env=environment(2),
        )
        result.seek(0)
        output.seek(0)
        _, _, once = result.read().partition("\n")
        printed = output.read()
    assert once == answers[0]["record"]
    assert printed.startswith("imported\n{}built Net(")
    record = Record.from_json(once)
    assert record.failure is None
    assert [source.file for source in record.sources] == ["noisy.py"]


# -- postmortem


def dump(*frames: str) -> str:
    return "Thread 0x00007f00 (most recent call first):\n" + "".join(f"  File {frame}\n" for frame in frames)


def test_the_place_of_a_crash_is_in_the_models_code_if_it_was_there_at_all() -> None:
    torch = '"/env/site-packages/torch/nn/modules/linear.py", line 5 in forward'
    model = '"/docs/src/pkg/net.py", line 12 in forward'
    caller = '"/docs/src/pkg/run.py", line 3 in run'
    path = ["/docs/src", "/env/site-packages", "/docs"]
    for frames, place in (
        ((torch, model, caller), ("pkg/net.py", 12)),
        ((torch,), ("torch/nn/modules/linear.py", 5)),
        ((), ("", 0)),
    ):
        crash = "Fatal Python error: Aborted\n\n" + dump('"/x.py", line 1 in other') + "\nCurrent t"
        crash += dump(*frames).removeprefix("T") + "\nExtension modules: numpy\n"
        failure = exit_failure(-6, crash, 60, path)
        assert (failure.type, failure.file, failure.line) == ("SIGABRT", *place)
        timeout = exit_failure(1, "printed\nTimeout (0:00:03)!\n" + dump(*frames), 3, path)
        assert (timeout.type, timeout.file, timeout.line) == ("timeout", *place)
        assert timeout.message == "no result within 3 s (:timeout: sets the limit)"


@pytest.mark.parametrize(
    ("status", "output", "kind", "message"),
    [
        (None, "busy", "timeout", "no result within 60 s (:timeout: sets the limit)"),
        (-9, "", "SIGKILL", "the process was ended by SIGKILL, most likely because memory ran out"),
        (-62, "", "signal 62", "the process was ended by signal 62"),
        (3, "", "exit", "the model's code ended the process with status 3"),
        (1, "Timeout (is my favourite word)", "exit", "the model's code ended the process with status 1; it wrote: "),
        (1, "a\n\nb /home/me/x.py:3: C:\\Users\\me\\y.txt 0x7fA0\n", "exit", "it wrote: a b x.py:3: y.txt 0x…"),
        (
            -6,
            "terminate called after throwing\n  what():  no\n",
            "SIGABRT",
            "terminate called after throwing what(): no",
        ),
        (1, "long " * 10_000, "exit", "long long"),
    ],
)
def test_what_ended_a_process_is_told_without_what_is_of_this_machine(
    status: int | None, output: str, kind: str, message: str
) -> None:
    failure = exit_failure(status, output, 60, [])
    assert (failure.stage, failure.type, failure.transient) == ("limit", kind, True)
    assert message in failure.message
    assert len(failure.message) < 500
