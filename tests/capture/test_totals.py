"""Totals that are right: every tensor once, published MACs."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, nn  # noqa: E402 - only where torch is
from torch.nn import functional  # noqa: E402

from sphinx_fxgraph.capture.capture import record_model, record_spec  # noqa: E402
from sphinx_fxgraph.spec.spec import GraphSpec  # noqa: E402


@pytest.mark.parametrize(
    ("target", "parameters", "macs"),
    [
        # MACs in millions as torchvision publishes them for these architectures at 224 ("GFLOPS" on its model pages).
        ("zoo.resnet.resnet18", 11_689_512, 1814),
        ("zoo.mobilenet.mobilenet_v2", 3_504_872, 301),
        ("zoo.densenet.densenet121", 7_978_856, 2834),
    ],
)
def test_parameters_and_macs_are_the_published_ones(
    target: str, parameters: int, macs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    totals = record_spec(GraphSpec.parse(target, "1, 3, 224, 224")).totals
    assert totals.parameters == totals.trainable == parameters
    assert totals.macs is not None
    assert round(totals.macs / 1e6) == macs


class Tied(nn.Module):
    """An embedding that is the output layer too, a module under two names, a parameter on a container."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.norm = self.again = nn.BatchNorm1d(4)
        self.layers = nn.Sequential(nn.Linear(4, 4))
        self.layers.register_parameter("scale", nn.Parameter(torch.ones(2)))
        self.frozen = nn.Parameter(torch.ones(3, dtype=torch.float64), requires_grad=False)

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.layers(self.norm(self.embedding(ids)))
        out: Tensor = self.head(functional.relu(self.again(hidden)))
        return out


def test_each_tensor_counts_once_and_ties_are_told() -> None:
    model = Tied()
    record = record_model(model, (torch.ones(2, dtype=torch.int64),), {})
    assert record.failure is None
    totals = record.totals
    assert totals.parameters == sum(parameter.numel() for parameter in model.parameters()) == 40 + 8 + 20 + 2 + 3
    assert totals.trainable == totals.parameters - 3
    assert totals.buffers == 4 + 4 + 1
    assert totals.bytes == 4 * (40 + 8 + 20 + 2) + 8 * 3 + 4 * 8 + 8
    assert record.ties == {
        "again.bias": "norm.bias",
        "again.num_batches_tracked": "norm.num_batches_tracked",
        "again.running_mean": "norm.running_mean",
        "again.running_var": "norm.running_var",
        "again.weight": "norm.weight",
        "head.weight": "embedding.weight",
    }
    own = {module.path: module.parameters for module in record.modules}
    assert own == {"": 3, "embedding": 40, "head": 0, "norm": 8, "layers": 2, "layers.0": 20}


def test_activation_bytes_are_what_all_operators_give() -> None:
    class Same(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x

    class Split(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.same = Same()

        def forward(self, x: Tensor) -> Tensor:
            left, right = self.same(x).chunk(2, dim=1)
            return left.double() + right

    record = record_model(Split(), (torch.ones(1, 8),), {})
    # Same gives nothing new, chunk 2 × 4 floats, taking them out of the tuple nothing, double and add 4 doubles each
    assert record.totals.activation_bytes == 8 * 4 + 4 * 8 + 4 * 8
