"""The coverage sweep: what it finds wrong in a record, and its smallest tier."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import DOCS
from msgspec.structs import replace

from sphinx_fxgraph.record.model import Body, Node, Record
from sphinx_fxgraph.spec.spec import GraphSpec

torch = pytest.importorskip("torch")
sys.path.append(str(DOCS))
COVERAGE = DOCS.parent / "benchmarks" / "coverage"
sys.path.append(str(COVERAGE))

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def compared() -> Callable[[Record], list[str]]:
    """What a record of `TwoInputs` tells otherwise than a plain run of it."""
    from comparison import differences
    from facts import plain_forward
    from zoo.two_inputs import TwoInputs

    model = TwoInputs().eval()
    facts = plain_forward(model, (torch.rand(1, 3, 16, 16), torch.rand(1, 2, 8, 8)), {})
    return lambda record: differences(record, facts, model)


@pytest.fixture(scope="module")
def right() -> Record:
    from sphinx_fxgraph.capture.capture import record_spec

    return record_spec(GraphSpec.parse("zoo.two_inputs.TwoInputs", "(1, 3, 16, 16), (1, 2, 8, 8)"))


class Cache:
    """Keys that a model keeps, and how many it may keep at most, in an object of its own."""

    def __init__(self, width: torch.Tensor) -> None:
        self.width, self.layers = width, [self]
        self.keys: dict[str, torch.Tensor] = {}


class Caching(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.places = torch.nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> dict[str, object]:
        cache = Cache(torch.tensor(4))
        cache.keys["first"] = x + 1
        return {"out": x * 2, "start": self.places.sigmoid(), "cache": cache}


def test_tensors_in_objects_are_outputs_and_what_a_model_makes_of_its_own_needs_no_input() -> None:
    from comparison import differences
    from facts import plain_forward

    from sphinx_fxgraph.capture.capture import record_model

    model, x = Caching(), torch.ones(2, 3)
    facts, record = plain_forward(model, (x,), {}), record_model(model, (x,), {})
    assert facts.outputs == ("f32[2, 3]", "f32[2]", "i64[]", "f32[2, 3]")
    assert differences(record, facts, model) == []
    lost = changed(record, "add", inputs=())
    assert differences(lost, facts, model) == ["1 outputs not reached from an input, first add"]


def changed(record: Record, name: str, **fields: Any) -> Record:
    """The record with one node of its root changed."""
    root = record.bodies[record.root]
    nodes = tuple(replace(node, **fields) if node.name == name else node for node in root.nodes)
    return replace(record, bodies={**record.bodies, record.root: replace(root, nodes=nodes)})


def node(record: Record, name: str) -> Node:
    return record.bodies[record.root].by_name[name]


def test_a_right_record_has_no_differences(compared: Callable[[Record], list[str]], right: Record) -> None:
    assert compared(right) == []


def test_a_call_that_is_not_drawn_is_found(compared: Callable[[Record], list[str]], right: Record) -> None:
    assert compared(changed(right, "skip", op="call_function")) == ["1 calls not drawn, first skip (Conv2d)"]


def test_a_call_that_did_not_run_is_found(compared: Callable[[Record], list[str]], right: Record) -> None:
    sequential = node(right, "main").body
    body = right.bodies[sequential]
    twice = Body(body.type, body.inputs, (*body.nodes, replace(body.nodes[-1], name="1@2")), body.outputs)
    found = compared(replace(right, bodies={**right.bodies, sequential: twice}))
    assert found == ["1 calls drawn that did not run, first main.1 (ReLU)"]


def test_a_wrong_shape_is_found(compared: Callable[[Record], list[str]], right: Record) -> None:
    (meta,) = node(right, "skip").outputs
    (found,) = compared(changed(right, "skip", outputs=(replace(meta, dtype="bf16"),)))
    assert found.startswith("1 modules' results differ, first skip: ('bf16[1, 4, 8, 8]',)")
    (meta,) = node(right, "output").outputs
    (found,) = compared(changed(right, "output", outputs=(replace(meta, shape=(1, 4)),)))
    assert found == "outputs differ: 1 told, 1 returned, first f32[1, 4] is f32[1, 4, 16, 16]"


def test_a_wrong_number_of_parameters_is_found(compared: Callable[[Record], list[str]], right: Record) -> None:
    wrong = replace(right, totals=replace(right.totals, parameters=94))
    assert compared(wrong) == ["94 parameters told, 93 there"]


def test_a_lost_edge_is_found(compared: Callable[[Record], list[str]], right: Record) -> None:
    assert compared(changed(right, "add_1", inputs=())) == ["1 outputs not reached from an input, first add_1"]


def test_the_smoke_tier_is_right_and_is_not_run_twice(tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    command = [sys.executable, str(COVERAGE / "sweep.py"), "smoke", "--zoo", "torch", "--out", str(out)]
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stdout + first.stderr
    results = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(results) > 20
    assert {result["outcome"] for result in results} == {"right"}
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.stdout == first.stdout.splitlines()[-1] + "\n"
