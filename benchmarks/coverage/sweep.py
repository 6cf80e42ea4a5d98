"""The coverage sweep: capture each of a list of targets and compare the record with a plain run of the model.

``python benchmarks/coverage/sweep.py smoke`` prints a line a target and ends with 1 if a model that runs is not drawn
right. With ``--out FILE`` each result is a line of JSON there, and a second run goes on where the first one stopped.
Each target has a process of its own; none reaches the network.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.metadata
import json
import os
import resource
import select
import signal
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

import targets
import torch
from comparison import differences
from dependence import unreached
from facts import Facts, plain_forward
from targets import Target
from torch import nn

from sphinx_fxgraph.capture.build import build
from sphinx_fxgraph.capture.capture import record_spec
from sphinx_fxgraph.capture.errors import CaptureError
from sphinx_fxgraph.capture.tracers import auto  # noqa: F401 - `record_spec` imports it late; here once for all children
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker.child import preload
from sphinx_fxgraph.worker.sandbox import refuse_network

_MEMORY = 12 << 30
_ONCE = (
    "torch._dynamo",
    *(f"transformers.{name}" for name in ("modeling_utils", "generation.utils", "processing_utils")),
)
"""Modules that take seconds to import and start no thread: imported once, not in each child."""


@dataclasses.dataclass
class Result:
    """One line of the table."""

    zoo: str
    name: str
    outcome: str
    """``right``, ``wrong``, ``failed``, ``ended`` (time, memory, crash), or ``no run``: nor does the plain model."""
    reason: str = ""
    inputs: str = ""
    tracer: str = ""
    verdict: str = ""
    operators: int = 0
    parameters: int = 0
    versions: str = ""


def measure(target: Target) -> Result:
    """The result of one target, in this process."""
    result = Result(target.zoo, target.name, "no run", versions=_versions(target))
    try:
        spec, model, facts = _run(target)
    except Exception as error:  # noqa: BLE001 - a model that does not run by itself is none of ours
        result.reason = _said(error)
        return result
    result.inputs, result.parameters = spec.inputs, facts.parameters
    record = record_spec(spec)
    result.tracer = record.tracer
    if record.verdict:
        result.verdict = record.verdict.kind
    if record.failure:
        result.outcome = "failed"
        result.reason = f"{record.failure.stage}: {record.failure.type}: {record.failure.message}"
        return result
    result.operators = record.operators
    wrong = [*differences(record, facts, model), *_unreached(record, spec)]
    result.outcome, result.reason = ("wrong", "; ".join(wrong)) if wrong else ("right", "")
    return result


def _run(target: Target) -> tuple[GraphSpec, nn.Module, Facts]:
    """The first of the target's inputs that the model takes, on meta or for real, and what a plain run does with it."""
    candidates = target.candidates()
    for device in ("auto", "cpu"):
        errors: list[Exception] = []  # what is said of the run for real is told
        built = None
        for inputs in candidates:
            spec = GraphSpec.parse(target.target, inputs, code=target.code, method=target.method)
            try:
                built = built or build(dataclasses.replace(spec, device=device))
                args, kwargs = dataclasses.replace(built, spec=spec).inputs()
                torch.manual_seed(spec.seed)
                return spec, built.model, plain_forward(built.model, args, kwargs)
            except Exception as error:
                if isinstance(error, CaptureError) and error.stage in ("import", "build"):
                    raise
                errors.append(error)
    raise errors[0]


def _unreached(record: Record, spec: GraphSpec) -> list[str]:
    """What the dependence check says; it needs a model with values."""
    try:
        built = build(dataclasses.replace(spec, device="cpu"))
    except CaptureError:
        return []
    args, kwargs = built.inputs()
    return unreached(record, built.model.eval(), args, kwargs)


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


def _versions(target: Target) -> str:
    names = ("torch", *([target.zoo] if target.zoo != "torch" else []))
    found = []
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name).partition('+')[0]}")
    return ", ".join(found)


# -- processes


def isolated(target: Target, seconds: int) -> Result:
    """The result of one target, from a child process that is ended after some seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _serve(target, writing)
    os.close(writing)
    text = b""
    until = time.monotonic() + seconds
    while select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(reading, 65536)
        if not part:
            break
        text += part
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if text.endswith(b"\n"):
        return Result(**json.loads(text))
    slow = time.monotonic() >= until
    reason = f"not done after {seconds} s" if slow else f"the process ended with status {status}"
    return Result(target.zoo, target.name, "ended", reason, versions=_versions(target))


def _serve(target: Target, writing: int) -> None:
    """Measure in this child process, and end it."""
    try:
        refuse_network()
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        os.write(writing, json.dumps(dataclasses.asdict(measure(target))).encode() + b"\n")
    except BaseException as error:  # noqa: BLE001 - a forked child never goes back
        text = f"{type(error).__name__}: {error}"[:300]
        result = Result(target.zoo, target.name, "failed", f"not recorded: {text}", versions=_versions(target))
        os.write(writing, json.dumps(dataclasses.asdict(result)).encode() + b"\n")
    finally:
        os._exit(0)


def sweep(todo: Iterable[Target], out: Path | None, seconds: int) -> list[Result]:
    """The results of all targets; those that ``out`` has are not run again, but for what ran out of time or memory."""
    known = {}
    if out is not None and out.exists():
        results = [Result(**json.loads(line)) for line in out.read_text(encoding="utf-8").splitlines()]
        known = {(result.zoo, result.name): result for result in results if result.outcome != "ended"}
    done = []
    for target in todo:
        result = known.get((target.zoo, target.name))
        if result is None:
            result = isolated(target, seconds)
            print(f"{result.outcome:7} {result.tracer:9} {result.zoo}: {result.name}  {result.reason}", flush=True)
            if out is not None:
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(dataclasses.asdict(result)) + "\n")
        done.append(result)
    return done


def main() -> int:
    """What the command line asks for; 0 if every model that runs is drawn right."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tier", choices=("smoke", "families", "all"))
    parser.add_argument("--zoo", default="", help="only the targets of this package")
    parser.add_argument("--match", default="", help="only the targets whose name contains this")
    parser.add_argument("--out", type=Path, help="JSON lines; what is there is not run again")
    parser.add_argument("--seconds", type=int, default=240, help="for one target")
    asked = parser.parse_args()
    todo = [
        target for target in targets.of_tier(asked.tier) if asked.zoo in ("", target.zoo) and asked.match in target.name
    ]
    preload(*_ONCE)
    results = sweep(todo, asked.out, asked.seconds)
    runnable = [result for result in results if result.outcome != "no run"]
    right = sum(result.outcome == "right" for result in runnable)
    print(f"{right} of {len(runnable)} right, {len(results) - len(runnable)} do not run by themselves")
    return int(right < len(runnable))


if __name__ == "__main__":
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    sys.exit(main())
