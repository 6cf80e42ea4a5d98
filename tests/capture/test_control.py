"""What a model does with plain values: torch's operators of control flow, and numbers that are read out of tensors."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._higher_order_ops.map import map as control_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from sphinx_fxgraph import ModelRecord, model_record
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Node

pytestmark = pytest.mark.torch


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))


class Loop(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def more(count: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            return count < 2

        def twice(count: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return count + 1, value * 2

        return while_loop(more, twice, (torch.tensor(0), x))[1]


class Scale(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, float, list[float]]:
        largest = x.max().item()
        return x * largest, largest, x.tolist()


class Steps(nn.Module):
    """A layer in the body of torch's scan and map, and in a branch of its cond."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def scanned(self, x: torch.Tensor) -> torch.Tensor:
        return scan(lambda carry, row: (self.lin(carry) + row, carry.clone()), x[0], x)[1]  # type: ignore[no-any-return]

    def mapped(self, x: torch.Tensor) -> torch.Tensor:
        return control_map(self.lin, x)  # type: ignore[no-any-return]

    def branched(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: self.lin(y), lambda y: y.cos(), (x,))


def nodes(model: ModelRecord) -> list[Node]:
    return [node for _, _, node in model.record.walk()]


def test_of_a_branch_the_side_that_ran_is_shown() -> None:
    positive, negative = model_record(Branch(), torch.ones(2)), model_record(Branch(), -torch.ones(2))
    assert [node.name for node in nodes(positive)][-2:] == ["sin", "output"]
    assert [node.name for node in nodes(negative)][-2:] == ["cos", "output"]


def test_of_a_loop_each_round_is_shown() -> None:
    names = [node.name for node in nodes(model_record(Loop(), torch.ones(2)))]
    assert [name for name in names if name.startswith("mul")] == ["mul", "mul"]


def test_a_number_read_out_of_a_tensor_is_an_edge_and_not_its_value() -> None:
    record = model_record(Scale(), torch.tensor([0.123456, 0.654321]))
    scaled = next(node for node in nodes(record) if node.name == "mul")
    assert scaled.args == (Value("x"), Value("item"))
    assert "0.65" not in record.to_json()
    assert "0.12" not in record.to_json()


@pytest.mark.parametrize("name", ["scan", "map"])
def test_a_body_of_scan_or_map_is_a_frame_with_its_macs(name: str) -> None:
    record = model_record(Steps(), torch.rand(3, 4), method={"scan": "scanned", "map": "mapped"}[name])
    steps = [node for node in nodes(record) if node.type == f"torch.{name}"]
    assert len(steps) == 3
    assert len({node.body for node in steps}) == 1
    assert [node.target for node in record.record.bodies[steps[0].body].nodes if node.op == "call_module"] == ["/lin"]
    assert record.macs == 3 * 16


def test_the_condition_of_a_branch_ends_at_the_branch() -> None:
    found = {node.name: node for node in nodes(model_record(Steps(), torch.rand(3, 4), method="branched"))}
    assert [value.node for value in found["cond"].inputs] == ["gt", "x"]


def test_the_macs_of_both_sides_of_an_exported_branch_are_counted_and_a_note_says_so() -> None:
    class Product(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda a: a @ a.t() @ a, lambda a: a * 2, (x,))

    record = model_record(Product(), torch.rand(3, 4), tracer="export")
    assert record.macs == 3 * 4 * 3 + 3 * 3 * 4
    assert any("both branches" in note for note in record.record.notes)
