"""MACs are counted as torch counts them, wherever the tensors are, and what timm counts beside them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import nn  # noqa: E402 - only where torch is
from torch.nn import functional  # noqa: E402

from sphinx_fxgraph.capture.capture import record_model  # noqa: E402
from sphinx_fxgraph.capture.metrics.macs import MacCounter  # noqa: E402


def counted(make: Callable[[], Callable[..., Any]], *shapes: Sequence[int], device: str = "meta") -> tuple[int, int]:
    """The MACs and what the convention ``all`` adds."""
    with torch.device(device):
        function, inputs = make(), [torch.ones(*shape) for shape in shapes]
    if isinstance(function, nn.Module):
        function.eval()
    with torch.no_grad(), MacCounter() as counter:
        function(*inputs)
    return counter.macs, counter.extra


PRODUCTS: dict[str, tuple[Callable[[], Callable[..., Any]], list[tuple[int, ...]]]] = {
    "conv1d": (lambda: nn.Conv1d(4, 6, 3), [(2, 4, 9)]),
    "conv2d": (lambda: nn.Conv2d(4, 6, (3, 5), stride=2, padding=1), [(2, 4, 9, 9)]),
    "depthwise": (lambda: nn.Conv2d(4, 8, 3, groups=4), [(2, 4, 9, 9)]),
    "conv3d": (lambda: nn.Conv3d(2, 3, 3, dilation=2), [(1, 2, 9, 9, 9)]),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2), [(2, 4, 5, 5)]),
    "linear": (lambda: nn.Linear(4, 6), [(2, 3, 4)]),
    "bmm": (lambda: torch.bmm, [(2, 3, 4), (2, 4, 5)]),
    "baddbmm": (lambda: torch.baddbmm, [(2, 3, 5), (2, 3, 4), (2, 4, 5)]),
    "einsum": (lambda: lambda x, y: torch.einsum("bhqd,bhkd->bhqk", x, y), [(2, 3, 4, 5), (2, 3, 6, 5)]),
    "recurrent": (lambda: nn.GRU(8, 16, 2, bidirectional=True), [(5, 2, 8)]),
    "attention": (lambda: nn.MultiheadAttention(8, 2), [(5, 2, 8), (6, 2, 8), (6, 2, 8)]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_count_as_in_torch(name: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    make, shapes = PRODUCTS[name]
    with torch.device("meta"):
        function, inputs = make(), [torch.ones(*shape) for shape in shapes]
    with torch.no_grad(), FlopCounterMode(display=False) as reference:
        function(*inputs)
    assert counted(make, *shapes)[0] == reference.get_total_flops() // 2 > 0


def attention(query: Any, key: Any, value: Any) -> Any:
    return functional.scaled_dot_product_attention(query, key, value)


def causal(query: Any, key: Any, value: Any) -> Any:
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def masked(query: Any, key: Any, value: Any) -> Any:
    mask = torch.zeros(query.shape[-2], key.shape[-2], device=query.device)
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def grouped(query: Any, key: Any, value: Any) -> Any:
    return functional.scaled_dot_product_attention(query, key[:, :2], value[:, :2], enable_gqa=True)


@pytest.mark.parametrize("function", [attention, causal, masked, grouped])
def test_fused_attention_counts_the_same_on_every_kind_of_tensor(function: Callable[..., Any]) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    found = {}
    for kind in ("meta", "fake", "cpu"):
        with FakeTensorMode() if kind == "fake" else nullcontext():
            shapes = (1, 4, 16, 8), (1, 4, 24, 8), (1, 4, 24, 8)
            found[kind] = counted(lambda: function, *shapes, device="meta" if kind == "meta" else "cpu")
    assert found == dict.fromkeys(found, (2 * 4 * 16 * 24 * 8, 0))


def test_what_the_processor_has_an_operator_for_counts_as_what_it_is_made_of() -> None:
    lstm = lambda: nn.LSTM(8, 16, 2, batch_first=True)  # noqa: E731 - as the others
    assert counted(lstm, (2, 5, 8)) == counted(lstm, (2, 5, 8), device="cpu") == (2 * 5 * 64 * (8 + 16 + 16 + 16), 0)
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    found = {}
    for device in ("cpu", "meta"):
        found[device] = record_model(encoder.to(device), (torch.ones(1, 3, 8, device=device),), {}).totals
    assert found["meta"].macs == found["cpu"].macs == 3 * 8 * (24 + 8 + 16 + 16) + 2 * 3 * 3 * 8
    assert found["meta"].extra_macs == found["cpu"].extra_macs == 2 * 3 * 8 * 5


def test_products_with_vectors() -> None:
    assert counted(lambda: torch.mv, (2, 3), (3,)) == (6, 0)
    assert counted(lambda: torch.dot, (3,), (3,)) == (3, 0)
    assert counted(lambda: nn.Bilinear(4, 5, 3), (2, 4), (2, 5)) == (2 * 3 * 4 * 5, 0)


SIZE = 2 * 4 * 8 * 8


@pytest.mark.parametrize(
    ("make", "extra"),
    [
        (lambda: nn.BatchNorm2d(4), 2 * SIZE),
        (lambda: nn.BatchNorm2d(4, affine=False), SIZE),
        (lambda: nn.InstanceNorm2d(4), 4 * SIZE),
        (lambda: nn.GroupNorm(2, 4), 5 * SIZE),
        (lambda: nn.LayerNorm(8), 5 * SIZE),
        (lambda: nn.LayerNorm(8, elementwise_affine=False), 4 * SIZE),
        (lambda: nn.AdaptiveAvgPool2d(1), SIZE),
        (lambda: nn.AdaptiveAvgPool2d(2), SIZE),
        (lambda: nn.Upsample(scale_factor=2), 4 * SIZE),
        (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), 4 * 4 * SIZE),
        (lambda: nn.ReLU(), 0),
        (lambda: nn.MaxPool2d(2), 0),
    ],
)
def test_what_timm_counts_beside_products(make: Callable[[], nn.Module], extra: int) -> None:
    totals = record_model(nn.Sequential(make()), (torch.ones(2, 4, 8, 8),), {}).totals
    assert (totals.macs, totals.extra_macs) == (0, extra)


def test_a_mean_is_pooling_only_where_the_model_says_so() -> None:
    class Means(nn.Module):
        def forward(self, x: Any) -> Any:
            return functional.adaptive_avg_pool2d(x, 1) + x.mean((2, 3), keepdim=True)

    assert record_model(Means(), (torch.ones(2, 4, 8, 8),), {}).totals.extra_macs == SIZE


def test_a_capture_imports_no_compiler() -> None:
    """torch._dynamo and sympy take as long to import as torch itself."""
    code = (
        "import sys\n"
        "import torch\n"
        "from sphinx_fxgraph.capture.capture import record_model\n"
        "record = record_model(torch.nn.Linear(4, 2), (torch.ones(1, 4),), {})\n"
        "print(record.totals.macs, sorted({'torch._dynamo', 'torch._inductor', 'sympy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, encoding="utf-8")
    assert run.stdout.strip() == "8 []"
