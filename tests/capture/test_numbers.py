"""What a model's numbers add up to, by module and by call."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, nn  # noqa: E402 - only where torch is

from sphinx_fxgraph.capture.capture import record_model, record_spec  # noqa: E402
from sphinx_fxgraph.record.metrics import by_call, by_module, depth, tied_parameters, total  # noqa: E402
from sphinx_fxgraph.record.model import Record, join  # noqa: E402
from sphinx_fxgraph.spec.spec import GraphSpec  # noqa: E402


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.fc(x)) @ self.fc.weight


class Net(nn.Module):
    """A block that runs twice, a list that is never called itself, a chunk, and a head with the weights of a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8, bias=False)])
        self.head = nn.Linear(8, 8)
        self.head.weight = self.layers[0].weight

    def forward(self, x: Tensor) -> Tensor:
        x = self.block(self.block(x))
        left, right = x.chunk(2)
        return self.head(self.layers[1](self.layers[0](left))) + right


@pytest.fixture(scope="module")
def net() -> Record:
    record = record_model(Net(), (torch.ones(4, 8),), {})
    assert record.failure is None
    return record


def test_modules_sum_up_to_the_model(net: Record) -> None:
    modules = by_module(net)
    assert modules[""] == total(net)
    for measure in ("parameters", "trainable", "buffers", "bytes", "macs"):
        top = (getattr(modules[path], measure) or 0 for path in ("block", "layers", "head"))
        assert sum(top) == getattr(total(net), measure)
    assert (modules["block"].parameters, modules["block"].macs) == (72, 2 * 2 * 4 * 8 * 8)
    assert (modules["block.fc"].parameters, modules["block.fc"].macs) == (72, 2 * 4 * 8 * 8)
    assert (modules["layers"].parameters, modules["layers"].macs) == (72 + 64, 2 * 2 * 8 * 8)
    assert modules["head"].parameters == 8  # its weight counts where it is registered first


def test_a_call_is_what_one_call_computes(net: Record) -> None:
    calls = by_call(net)
    assert calls["block"] == calls["block@2"]
    assert calls["block"].macs == 2 * 4 * 8 * 8
    assert calls["block.fc"].macs == 4 * 8 * 8
    assert (calls["block.fc"].parameters, calls["block.relu"].parameters) == (72, 0)
    assert calls["block.relu"].activation_bytes == 4 * 8 * 4
    assert calls["add"].macs is None


def test_activations_are_those_of_all_operators(net: Record) -> None:
    calls = by_call(net)
    operators = [join(path, node.name) for path, _, node in net.walk() if not node.body]
    assert sum(calls[path].activation_bytes or 0 for path in operators) == net.totals.activation_bytes


def test_what_is_tied_to_what(net: Record) -> None:
    assert tied_parameters(net) == {"head.weight": "layers.0.weight"}


@pytest.mark.parametrize(
    ("target", "layers"), [("resnet.resnet18", 18), ("densenet.densenet121", 121), ("mobilenet.mobilenet_v2", 53)]
)
def test_depth_is_what_papers_count(target: str, layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    assert depth(record_spec(GraphSpec.parse(f"zoo.{target}", "1, 3, 64, 64"))) == layers


def test_the_depth_of_calls_is_that_of_all_of_them(net: Record) -> None:
    assert depth(net) == 2 + 2 + 3
