"""What one run of a traced graph tells: results, MACs, and where it failed."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, nn  # noqa: E402 - only where torch is

from sphinx_fxgraph.capture.capture import record_model, record_spec  # noqa: E402
from sphinx_fxgraph.record.model import Node, Record  # noqa: E402
from sphinx_fxgraph.render.dot import flatten_record  # noqa: E402
from sphinx_fxgraph.spec.spec import GraphSpec  # noqa: E402

DOCS = Path(__file__).parents[2] / "docs"
X = torch.ones(2, 4)


def node(record: Record, path: str) -> Node:
    return next(operator.node for operator in flatten_record(record) if operator.path == path)


@dataclass
class Output:
    logits: Tensor
    hidden: tuple[Tensor, ...] = ()
    loss: Tensor | None = None


Pair = namedtuple("Pair", "first second")


class Results(nn.Module):
    """Results of every kind."""

    def forward(self, x: Tensor) -> Any:
        values, indices = x.max(dim=1)
        half, mask = x.half().to(torch.bfloat16), x > 0
        return Output(half, (Pair(values, indices), {"mask": mask, "size": x.size(), "width": x.shape[1]}))


def test_results_of_every_kind_are_told_by_path_shape_and_dtype() -> None:
    record = record_model(Results(), (X,), {})
    assert record.failure is None
    assert [(meta.path, meta.shape, meta.dtype) for meta in node(record, "output").outputs] == [
        (".logits", (2, 4), "bf16"),
        (".hidden[0][0]", (2,), "f32"),
        (".hidden[0][1]", (2,), "i64"),
        (".hidden[1]['mask']", (2, 4), "b8"),
    ]
    expected = "{'mask': b8[2, 4], 'size': Size([2, 4]), 'width': 4}"
    assert record.output == f"Output(logits=bf16[2, 4], hidden=(Pair(f32[2], i64[2]), {expected}))"
    assert node(record, "max").result == "max(f32[2], i64[2])"
    assert not node(record, "size").has_tensor


class Reading(nn.Module):
    """Makes Python numbers of what is in a tensor."""

    def forward(self, x: Tensor) -> Tensor:
        most = x.max().item()
        return x * (most + 1) / x.size(0)


def test_no_value_of_a_tensor_gets_into_the_record() -> None:
    record = record_model(Reading(), (X * 1234.5,), {})
    assert record.failure is None
    assert node(record, "item").result == "float"
    assert record.verdict is not None
    assert record.verdict.kind == "path"
    assert "123" not in replace(record, sources=(), made_by={}).to_json()


def test_macs_are_half_of_what_torch_counts() -> None:
    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            tokens = self.conv(x).flatten(2).transpose(1, 2)
            out: Tensor = self.attention(tokens, tokens, tokens)[0] @ torch.ones(8, 5)
            return out.relu()

    record = record_model(Counted(), (torch.ones(1, 3, 4, 4),), {})
    assert record.failure is None
    macs = {operator.path: operator.node.macs for operator in flatten_record(record)}
    assert macs["conv"] == 16 * 8 * 27
    assert macs["attention"] == 4 * 16 * 8 * 8 + 2 * 16 * 16 * 8  # projections; scores and their use
    assert macs["matmul"] == 16 * 8 * 5
    assert macs["relu"] is None
    assert record.totals.macs == sum(count for count in macs.values() if count)


def test_an_operator_that_fails_is_marked_and_what_ran_before_keeps_its_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    record = record_spec(GraphSpec.parse("zoo.broken.Misfit", "f32[1, 4]", tracer="symbolic"))
    failure = record.failure
    assert failure is not None
    assert (failure.stage, failure.node, failure.file) == ("probe", "head", "zoo/broken.py")
    assert "1x8 and 16x2" in failure.message
    source = (DOCS / "zoo" / "broken.py").read_text(encoding="utf-8").splitlines()
    assert source[failure.line - 1].strip() == "return self.head(self.encoder(x))"
    assert "failed" in node(record, "head").marks
    assert node(record, "encoder.1").outputs[0].shape == (1, 8)
    assert node(record, "output").outputs == ()
    assert record.totals.parameters == 74
    assert record.totals.macs is None


def test_a_failure_inside_a_sequential_is_placed_where_that_is_called() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Sequential(nn.Linear(4, 8), nn.Linear(4, 8)))

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.layers(x)  # the line
            return out

    failure = record_model(Outer(), (X,), {}).failure
    assert failure is not None
    assert failure.node == "layers.0.1"
    assert failure.file.endswith("test_shape_prop.py")
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[failure.line - 1].endswith("# the line")
    failure = record_model(Outer().layers, (X,), {}).failure
    assert failure is not None
    assert (failure.node, failure.file, failure.line) == ("0.1", "", 0)


class Values(nn.Module):
    """Runs on values only: how many entries are kept depends on them."""

    def forward(self, x: Tensor) -> Tensor:
        return x[x > -100].view(-1, 1) * x.max().item()


def test_a_model_that_cannot_run_on_meta_is_run_for_real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    record = record_spec(GraphSpec.parse("test_shape_prop.Values", "f32[2, 4]"))
    assert record.failure is None
    assert record.output == "f32[8, 1]"
    assert record.spec["target"] == "test_shape_prop.Values"
    assert "device" not in record.spec


class Hungry(nn.Module):
    """Has no room for real, and on meta does not like its own tensor of the CPU."""

    def __init__(self) -> None:
        super().__init__()
        if type(torch.empty(1)) is Tensor and not torch.empty(1).is_meta:
            raise MemoryError("no room")
        self.many = nn.Linear(4000, 4000)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.many(x) + torch.ones(1, device="cpu").expand(1, 4000)
        return y


def test_a_model_that_is_too_large_to_be_run_for_real_is_run_with_fake_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    record = record_spec(GraphSpec.parse("test_shape_prop.Hungry", "f32[1, 4000]"))
    assert record.failure is None
    assert record.output == "f32[1, 4000]"
    assert record.totals.parameters == 16_004_000


def test_a_failure_on_the_device_that_was_asked_for_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    record = record_spec(GraphSpec.parse("test_shape_prop.Values", "f32[2, 4]", device="meta"))
    assert record.failure is not None
    assert record.failure.stage == "probe"


class Writing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(2).add_(1)


def test_the_inputs_are_not_written_to() -> None:
    x = X.clone()
    record = record_model(Writing(), (x,), {})
    assert torch.equal(x, X)
    assert [operator.node.inplace for operator in flatten_record(record)] == [False, True, True, False]
    assert [operator.node.kind for operator in flatten_record(record)][1:3] == ["mul", "add"]
