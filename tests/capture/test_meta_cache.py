"""What is remembered of calls on meta is what runs: the second capture is like the first, and like a real run."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402 - only where torch is
from torch.nn import functional  # noqa: E402

from sphinx_fxgraph.capture.capture import record_model  # noqa: E402
from sphinx_fxgraph.record.model import Record  # noqa: E402

pytestmark = pytest.mark.torch


class Mixed(nn.Module):
    """Twice the same of every kind: products, views that are written into, random numbers, a transformed function."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for linear in (self.first, self.second):
            x = torch.ops.aten.add(functional.dropout(linear(x), 0.5, training=True), x)
            x.transpose(0, 1).add_(1)
            low, high = x.chunk(2, dim=1)
            x = torch.cat([torch.vmap(torch.sum)(low)[:, None].expand(3, 2), high * torch.ones(3, 2)], dim=1)
        return x


def shown(record: Record) -> list[tuple[object, ...]]:
    assert record.failure is None, record.failure
    return [
        (path, node.kind, node.inputs, node.outputs, node.macs, node.inplace, node.marks)
        for path, _, node in record.walk()
    ]


def test_a_capture_by_heart_is_that_of_a_real_run() -> None:
    real = shown(record_model(Mixed(), (torch.ones(3, 4),), {}, tracer="observed"))
    with torch.device("meta"):
        model, x = Mixed(), torch.ones(3, 4)
        captures = [shown(record_model(model, (x,), {}, tracer="observed")) for _ in range(2)]
    assert captures == [real, real]
    assert [macs for *_, macs, _, _ in real if macs] == [48, 48]


def test_what_was_run_on_meta_says_nothing_of_gradients_and_other_default_dtypes() -> None:
    class Divided(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            with torch.enable_grad():
                y = (x / 2).requires_grad_()
                return torch.autograd.grad((y * y).sum(), y)[0]

    x = torch.ones(3, dtype=torch.int64, device="meta")
    assert record_model(Divided(), (x,), {}).output == "f32[3]"
    torch.set_default_dtype(torch.float64)
    try:
        assert record_model(Divided(), (x,), {}).output == "f64[3]"
    finally:
        torch.set_default_dtype(torch.float32)
