"""Captures that an executor takes elsewhere: real pools of threads and processes, and one that breaks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker.pool import ExecutorError, capture, find_executor

MODELS = """
import os, pathlib
from torch import nn

class Net(nn.Linear):
    def __init__(self, width):
        super().__init__(2, width)
        pathlib.Path(f"by-{width}").write_text(str(os.getppid()))

class Dies(nn.Module):
    def __init__(self):
        os.abort()
"""


def two_threads() -> Executor:
    return ThreadPoolExecutor(2)


def two_processes() -> Executor:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


def dying_processes() -> Executor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=os.abort)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "farmed.py").write_text(MODELS)
    return tmp_path


SPECS = [GraphSpec.parse(f"farmed:Net({width})", "1, 2") for width in (3, 4, 5, 6)]
DIES = GraphSpec.parse("farmed:Dies", "1, 2")


def captured(folder: Path, factory: str, *specs: GraphSpec) -> dict[GraphSpec, Record]:
    executor = find_executor(factory)
    return dict(capture(specs, executor=executor, sys_path=[str(folder), *sys.path], confdir=folder, timeout=60))


@pytest.mark.torch
@pytest.mark.parametrize("factory", ["two_threads", "two_processes"])
def test_records_come_back_and_servers_stay_for_more_tasks(folder: Path, factory: str) -> None:
    found = captured(folder, f"{__name__}:{factory}", *SPECS, DIES)
    assert {spec.target: found[spec].output for spec in SPECS} == {
        spec.target: f"f32[1, {width}]" for spec, width in zip(SPECS, (3, 4, 5, 6), strict=True)
    }
    died = found[DIES].failure
    assert died is not None
    assert died.type == "SIGABRT"
    servers = {(folder / f"by-{width}").read_text() for width in (3, 4, 5, 6)}
    assert len(servers) <= 2


def test_a_machine_that_is_lost_costs_its_captures_and_no_more(folder: Path) -> None:
    found = captured(folder, f"{__name__}:dying_processes", *SPECS)
    assert set(found) == set(SPECS)
    for record in found.values():
        assert record.failure is not None
        assert (record.failure.stage, record.failure.type, record.failure.transient) == (
            "limit",
            "BrokenProcessPool",
            True,
        )


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "broken_farm.py").write_text("number = 3\ndef unreachable():\n    raise OSError('no scheduler')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("broken_farm", None)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("text", ["nowhere:make", "broken_farm:make", "broken_farm", "broken_farm:number", "", ":"])
def test_a_wrong_setting_says_what_to_write(text: str) -> None:
    with pytest.raises(ExecutorError, match="write module:factory"):
        find_executor(text)


@pytest.mark.usefixtures("broken")
def test_an_executor_that_cannot_be_made_is_told() -> None:
    running = capture(SPECS, executor=find_executor("broken_farm:unreachable"))
    with pytest.raises(ExecutorError, match="no executor: OSError: no scheduler"):
        next(running)


def test_without_specs_no_executor_is_made() -> None:
    assert list(capture([], executor=find_executor("os:abort"))) == []
