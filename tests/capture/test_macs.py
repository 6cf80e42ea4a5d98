"""MACs are counted as torch counts them, wherever the tensors are, and what timm counts beside them."""

from __future__ import annotations

import inspect
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
from sphinx_fxgraph.capture.metrics import Count, MacCounter, cost  # noqa: E402
from sphinx_fxgraph.record import metrics  # noqa: E402
from sphinx_fxgraph.render import summary  # noqa: E402
from sphinx_fxgraph.render.node_table import TEXTS, node_rows  # noqa: E402
from sphinx_fxgraph.units import PLAIN  # noqa: E402


def cost_of(make: Callable[[], Callable[..., Any]], *shapes: Sequence[int], device: str = "meta") -> Count:
    """Return what a function costs that ``make`` returns."""
    with torch.device(device):
        function, inputs = make(), [torch.ones(*shape) for shape in shapes]
    if isinstance(function, nn.Module):
        function.eval()
    with torch.no_grad(), MacCounter() as counter:
        function(*inputs)
    return counter.total


def counted(make: Callable[[], Callable[..., Any]], *shapes: Sequence[int], device: str = "meta") -> tuple[int, int]:
    """Return the MACs and what the convention ``all`` adds."""
    return cost_of(make, *shapes, device=device)[:2]


B, N, M, K, P = 2, 3, 4, 5, 6
"""Sizes that differ, so that no product of others is right by chance."""

Case = tuple[Callable[..., Any], Sequence[Sequence[int]], int]
"""A function or a module's factory, the shapes of its arguments, and its MACs counted by hand."""

MATRICES: dict[str, Case] = {
    "mm": (torch.mm, [(N, K), (K, M)], N * K * M),
    "matmul": (torch.matmul, [(B, 1, N, K), (P, K, M)], B * P * N * K * M),
    "matmul with a vector": (torch.matmul, [(B, N, K), (K,)], B * N * K),
    "bmm": (torch.bmm, [(B, N, K), (B, K, M)], B * N * K * M),
    "addmm": (torch.addmm, [(N, M), (N, K), (K, M)], N * K * M),
    "addmm_": (lambda c, a, b: c.addmm_(a, b), [(N, M), (N, K), (K, M)], N * K * M),
    "addbmm": (torch.addbmm, [(N, M), (B, N, K), (B, K, M)], B * N * K * M),
    "baddbmm": (torch.baddbmm, [(B, N, M), (B, N, K), (B, K, M)], B * N * K * M),
    "baddbmm_": (lambda c, a, b: c.baddbmm_(a, b), [(B, N, M), (B, N, K), (B, K, M)], B * N * K * M),
    "mv": (torch.mv, [(N, K), (K,)], N * K),
    "addmv": (torch.addmv, [(N,), (N, K), (K,)], N * K),
    "addmv_": (lambda c, a, b: c.addmv_(a, b), [(N,), (N, K), (K,)], N * K),
    "dot": (torch.dot, [(K,), (K,)], K),
    "vdot": (torch.vdot, [(K,), (K,)], K),
    "vecdot": (torch.linalg.vecdot, [(N, K), (N, K)], 0),  # a product and a sum, element by element
    "inner": (torch.inner, [(N, K), (M, K)], N * K * M),
    "outer": (torch.outer, [(N,), (M,)], 0),  # nothing is accumulated
    "addr": (torch.addr, [(N, M), (N,), (M,)], N * M),
    "tensordot": (lambda a, b: torch.tensordot(a, b, 2), [(N, K, M), (K, M, P)], N * K * M * P),
    "kron": (torch.kron, [(N, K), (M, P)], 0),
    "chain_matmul": (lambda *m: torch.linalg.multi_dot(m), [(N, K), (K, M), (M, P)], N * K * M + N * M * P),
    "matrix_power": (lambda a: torch.matrix_power(a, 3), [(N, N)], 2 * N**3),
    "cov": (lambda x: x @ x.T, [(N, K)], N * K * N),
    "einsum of matrices": (lambda a, b: torch.einsum("nk,mk->nm", a, b), [(N, K), (M, K)], N * K * M),
    "einsum of heads": (
        lambda q, k: torch.einsum("bhqd,bhkd->bhqk", q, k),
        [(B, N, M, K), (B, N, P, K)],
        B * N * M * P * K,
    ),
    "einsum of three": (
        lambda a, b, c: torch.einsum("nk,km,mp->np", a, b, c),
        [(N, K), (K, M), (M, P)],
        N * K * M + N * M * P,
    ),
    "einsum without a sum": (lambda a, b: torch.einsum("n,m->nm", a, b), [(N,), (M,)], 0),
    "linear": (lambda: nn.Linear(K, M), [(B, N, K)], B * N * K * M),
    "linear without bias": (functional.linear, [(B, N, K), (M, K)], B * N * K * M),
    "bilinear": (lambda: nn.Bilinear(K, M, P), [(N, K), (N, M)], N * K * M * P),
    "cdist, few rows": (torch.cdist, [(N, K), (M, K)], N * M * K),
    "cdist, many rows": (torch.cdist, [(B, 30, K), (B, 40, K)], B * 30 * 40 * K),
    "cdist, absolute": (lambda a, b: torch.cdist(a, b, 1), [(30, K), (40, K)], 30 * 40 * K),
    "pdist": (functional.pdist, [(N, K)], N * (N - 1) // 2 * K),
    "cosine_similarity": (functional.cosine_similarity, [(N, K), (N, K)], 0),
    "foreach mm": (lambda a, b: [torch.mm(a, b), torch.mm(a, b)], [(N, K), (K, M)], 2 * N * K * M),
}
X = (B, 4, 9, 9)
CONVOLUTIONS: dict[str, Case] = {
    "conv1d": (lambda: nn.Conv1d(4, 6, 3), [(B, 4, 9)], B * 6 * 7 * 4 * 3),
    "conv1d, same": (lambda: nn.Conv1d(4, 6, 4, padding="same"), [(B, 4, 9)], B * 6 * 9 * 4 * 4),
    "conv1d, no batch": (lambda: nn.Conv1d(4, 6, 3), [(4, 9)], 6 * 7 * 4 * 3),
    "conv2d": (lambda: nn.Conv2d(4, 6, (3, 5), stride=2, padding=1), [X], B * 6 * 5 * 4 * 4 * 15),
    "conv2d, 1×1": (lambda: nn.Conv2d(4, 6, 1), [X], B * 6 * 81 * 4),
    "conv2d, grouped": (lambda: nn.Conv2d(4, 6, 3, groups=2), [X], B * 6 * 49 * 2 * 9),
    "conv2d, depthwise": (lambda: nn.Conv2d(4, 8, 3, groups=4), [X], B * 8 * 49 * 9),
    "conv2d, dilated": (lambda: nn.Conv2d(4, 6, 3, dilation=2), [X], B * 6 * 25 * 4 * 9),
    "conv2d, circular": (lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular"), [X], B * 6 * 81 * 4 * 9),
    "conv3d": (lambda: nn.Conv3d(2, 3, 3, dilation=2), [(1, 2, 9, 9, 9)], 3 * 125 * 2 * 27),
    "conv_transpose1d": (lambda: nn.ConvTranspose1d(4, 6, 3, stride=2), [(B, 4, 9)], B * 4 * 9 * 6 * 3),
    "conv_transpose2d": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2), [(B, 4, 5, 5)], B * 4 * 25 * 6 * 9),
    "conv_transpose2d, grouped": (
        lambda: nn.ConvTranspose2d(4, 6, 3, groups=2),
        [(B, 4, 5, 5)],
        B * 4 * 25 * 3 * 9,
    ),
    "conv_transpose3d": (lambda: nn.ConvTranspose3d(2, 3, 2), [(1, 2, 4, 4, 4)], 2 * 64 * 3 * 8),
    "conv_tbc": (torch.conv_tbc, [(9, B, 4), (3, 4, 6), (6,)], 7 * B * 6 * 3 * 4),
    "unfold": (lambda x: functional.unfold(x, 3), [X], 0),
    "fold": (lambda x: functional.fold(x, (5, 5), 2), [(1, 4, 16)], 0),
}
SEQUENCE = [(5, B, 8)]
LAYERS: dict[str, Case] = {
    "RNN": (lambda: nn.RNN(8, 16), SEQUENCE, 5 * B * 16 * (8 + 16)),
    "GRU": (lambda: nn.GRU(8, 16), SEQUENCE, 5 * B * 48 * (8 + 16)),
    "GRU, two layers and ways": (
        lambda: nn.GRU(8, 16, 2, bidirectional=True),
        SEQUENCE,
        5 * B * 2 * 48 * (8 + 16 + 32 + 16),
    ),
    "LSTM": (lambda: nn.LSTM(8, 16), SEQUENCE, 5 * B * 64 * (8 + 16)),
    "LSTM, two layers": (lambda: nn.LSTM(8, 16, 2), SEQUENCE, 5 * B * 64 * (8 + 16 + 16 + 16)),
    "RNNCell": (lambda: nn.RNNCell(8, 16), [(B, 8)], B * 16 * (8 + 16)),
    "GRUCell": (lambda: nn.GRUCell(8, 16), [(B, 8)], B * 48 * (8 + 16)),
    "LSTMCell": (lambda: nn.LSTMCell(8, 16), [(B, 8)], B * 64 * (8 + 16)),
    "attention": (
        lambda: nn.MultiheadAttention(8, 2),
        [(5, B, 8), (6, B, 8), (6, B, 8)],
        B * (5 * 64 + 2 * 6 * 64 + 5 * 64 + 2 * 5 * 6 * 8),
    ),
    "self-attention": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16),
        SEQUENCE,
        5 * B * (4 * 64 + 2 * 128) + B * 2 * 5 * 5 * 8,
    ),
    "embedding": (lambda: lambda i: functional.embedding(i.long(), i.new_ones(3, 4)), [(5,)], 0),
}
FREE: dict[str, Case] = {
    name: (function, [X], 0)
    for name, function in {
        "add": lambda x: x + x,
        "in-place arithmetic": lambda x: x.mul_(2).sub_(1).div_(3).clamp_(0, 1),
        "addcmul": lambda x: torch.addcmul(x, x, x),
        "lerp": lambda x: torch.lerp(x, x, 0.5),
        "relu": torch.relu,
        "gelu": functional.gelu,
        "silu_": lambda x: functional.silu(x, inplace=True),
        "prelu": lambda x: functional.prelu(x, x.new_ones(4)),
        "softmax": lambda x: x.softmax(1),
        "sum": lambda x: x.sum((2, 3)),
        "mean": lambda x: x.mean(1),
        "var": lambda x: x.var(1),
        "norm": lambda x: torch.linalg.vector_norm(x, dim=1),
        "cumsum": lambda x: x.cumsum(1),
        "logsumexp": lambda x: x.logsumexp(1),
        "max": lambda x: x.max(1).values,
        "argmax": lambda x: x.argmax(1),
        "sort": lambda x: x.sort(1).values,
        "topk": lambda x: x.topk(2, 1).values,
        "cat": lambda x: torch.cat([x, x], 1),
        "stack": lambda x: torch.stack([x, x]),
        "roll": lambda x: x.roll(1, 2),
        "flip": lambda x: x.flip(2),
        "pad": lambda x: functional.pad(x, (1, 1)),
        "reflect": lambda x: functional.pad(x, (1, 1, 1, 1), mode="reflect"),
        "index": lambda x: x[:, torch.tensor([0, 2], device=x.device)],
        "gather": lambda x: x.gather(1, torch.zeros(1, 1, 1, 1, dtype=torch.int64, device=x.device)),
        "scatter": lambda x: x.scatter(1, torch.zeros(1, 1, 1, 1, dtype=torch.int64, device=x.device), 1.0),
        "where": lambda x: torch.where(x > 0, x, 0.0),
        "tril": torch.tril,
        "dropout": lambda x: functional.dropout(x, 0.5, training=True),
        "batch_norm": lambda x: functional.batch_norm(x, None, None, training=True),
        "group_norm": lambda x: functional.group_norm(x, 2),
        "layer_norm": lambda x: functional.layer_norm(x, (9,)),
        "rms_norm": lambda x: functional.rms_norm(x, (9,)),
        "local_response_norm": lambda x: functional.local_response_norm(x, 2),
        "max_pool2d": lambda x: functional.max_pool2d(x, 2),
        "avg_pool2d": lambda x: functional.avg_pool2d(x, 2),
        "adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(x, 3),
        "lp_pool2d": lambda x: functional.lp_pool2d(x, 2, 2),
        "interpolate": lambda x: functional.interpolate(x, scale_factor=2.0, mode="bicubic"),
        "grid_sample": lambda x: functional.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), align_corners=False),
        "pixel_shuffle": lambda x: functional.pixel_shuffle(x, 2),
        "reshape": lambda x: x.transpose(1, 2).reshape(B, -1),
        "to": lambda x: x.to(torch.float64),
        "weight_norm": lambda x: torch._weight_norm(x, x[:, :1, :1, :1], 0),
        "cross entropy": lambda x: functional.mse_loss(x, x),
        "unique": lambda x: x.unfold(1, 2, 1),
    }.items()
}
BATTERY = MATRICES | CONVOLUTIONS | LAYERS | FREE


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", BATTERY)
def test_operators_count_as_by_hand(name: str, device: str) -> None:
    function, shapes, macs = BATTERY[name]
    made = function.__code__.co_argcount == 0 if hasattr(function, "__code__") else False
    made = made and not function.__code__.co_flags & inspect.CO_VARARGS
    total = cost_of(function if made else lambda: function, *shapes, device=device)
    assert (total.macs, total.uncounted) == (macs, {})


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


# -- operators for special numbers and layouts


def run(function: Callable[..., Any], *args: Any) -> Count:
    with torch.no_grad(), MacCounter() as counter:
        function(*args)
    return counter.total


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_products_by_groups_count_each_row_once(device: str, dtype: Any) -> None:
    """``torch._grouped_mm`` is the product of the experts in every mixture of experts of transformers 5."""
    with torch.device(device):
        rows, experts = torch.ones(16, 16, dtype=dtype), torch.ones(2, 16, 32, dtype=dtype)
        ends = torch.tensor([8, 16], dtype=torch.int32)
    assert run(lambda: torch._grouped_mm(rows, experts, offs=ends)).macs == 16 * 16 * 32
    assert run(lambda: torch._grouped_mm(experts.mT, experts)).macs == 2 * 32 * 16 * 32
    assert run(lambda: torch._grouped_mm(experts.mT, rows, offs=ends)).macs == 32 * 16 * 16
    with torch.no_grad(), MacCounter():
        given = torch._grouped_mm(rows, experts, offs=ends)
    assert (given.shape, given.dtype) == ((16, 32), dtype)


def test_fake_tensors_of_any_dtype_multiply_by_groups() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), torch.no_grad(), MacCounter() as counter:
        ends = torch.tensor([8, 16], dtype=torch.int32)
        given = torch._grouped_mm(torch.ones(16, 16), torch.ones(2, 16, 32), offs=ends)
    assert (given.shape, given.dtype, counter.total) == ((16, 32), torch.float32, Count(16 * 16 * 32))


def test_a_meta_kernel_still_refuses_what_no_kernel_takes() -> None:
    with torch.device("meta"):
        rows, experts = torch.ones(16, 16), torch.ones(2, 16, 32, dtype=torch.float64)
        ends = torch.tensor([8, 16], dtype=torch.int32)
    with pytest.raises(RuntimeError):
        run(lambda: torch._grouped_mm(rows, experts, offs=ends))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_products_of_small_numbers(device: str) -> None:
    with torch.device(device):
        small = torch.ones(32, 16, dtype=torch.int8), torch.ones(16, 48, dtype=torch.int8)
        tiny = torch.ones(32, 16).to(torch.float8_e4m3fn), torch.ones(48, 16).to(torch.float8_e4m3fn).t()
        scale = torch.ones(())
        weight, scales = torch.ones(48, 32, dtype=torch.int8), torch.ones(48, dtype=torch.bfloat16)
        given = torch.ones(16, 32, dtype=torch.bfloat16)
    assert run(torch._int_mm, *small).macs == 32 * 16 * 48
    assert run(lambda: torch._scaled_mm(*tiny, scale, scale, out_dtype=torch.bfloat16)).macs == 32 * 16 * 48
    assert run(torch._weight_int8pack_mm, given, weight, scales).macs == 16 * 32 * 48


def quantized(model: nn.Module, *shape: int) -> nn.Module:
    import torch.ao.quantization as quantization

    whole = nn.Sequential(quantization.QuantStub(), model, quantization.DeQuantStub()).eval()
    whole.qconfig = quantization.get_default_qconfig(torch.backends.quantized.engine)
    quantization.prepare(whole, inplace=True)
    whole(torch.ones(shape))
    quantization.convert(whole, inplace=True)
    return whole


@pytest.mark.filterwarnings("ignore")
def test_quantized_layers_count_as_those_they_were_made_from() -> None:
    import torch.ao.quantization as quantization

    dynamic = quantization.quantize_dynamic(nn.Sequential(nn.Linear(K, M)), {nn.Linear})
    assert run(dynamic, torch.ones(B, K)) == Count(B * K * M)
    assert run(quantized(nn.Linear(K, M), B, K), torch.ones(B, K)) == Count(B * K * M)
    assert run(quantized(nn.Conv2d(4, 6, 3, groups=2), *X), torch.ones(X)) == Count(B * 6 * 49 * 2 * 9)
    lstm = quantization.quantize_dynamic(nn.Sequential(nn.LSTM(8, 16)), {nn.LSTM})
    assert run(lstm, torch.ones(5, B, 8)) == Count(0, 0, {"quantized_lstm": 0})


@pytest.mark.filterwarnings("ignore")
def test_sparse_products_count_what_is_stored() -> None:
    places = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    sparse, dense = torch.sparse_coo_tensor(places, torch.ones(4), (10, 10)), torch.ones(10, 6)
    for product in (torch.sparse.mm, torch.matmul, torch.spmm):
        assert run(product, sparse, dense) == Count(4 * 6)
    assert run(torch.matmul, sparse.to_sparse_csr(), dense) == Count(4 * 6)
    assert run(torch.matmul, dense.T, sparse) == Count(4 * 6)
    assert run(torch.mv, sparse, torch.ones(10)) == Count(4)
    assert run(torch.addmm, torch.ones(10, 6), sparse, dense) == Count(4 * 6)
    assert run(torch.sparse.mm, sparse, sparse) == Count(3)  # (0, 1)(1, 2), (1, 2)(2, 3), (2, 3)(3, 4)
    pattern = sparse.to_sparse_csr()
    assert run(torch.sparse.sampled_addmm, pattern, torch.ones(10, 5), torch.ones(5, 10)) == Count(4 * 5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided], ids=str)
def test_nested_tensors_count_without_padding(layout: Any) -> None:
    rows = torch.nested.nested_tensor([torch.ones(3, K), torch.ones(5, K)], layout=layout)
    assert run(nn.Linear(K, M), rows) == Count((3 + 5) * K * M)
    if layout == torch.strided:
        assert run(lambda: torch.bmm(rows, rows.transpose(1, 2))) == Count((9 + 25) * K)
    heads = torch.nested.nested_tensor([torch.ones(3, 2, 8), torch.ones(5, 2, 8)], layout=layout)
    heads = heads.transpose(1, 2).contiguous() if layout == torch.strided else heads.transpose(1, 2)
    assert run(functional.scaled_dot_product_attention, heads, heads, heads) == Count(2 * 2 * (9 + 25) * 8)


def test_deformable_convolution_counts_as_the_convolution_it_bends() -> None:
    if not hasattr(torch.ops.torchvision, "deform_conv2d"):
        library = torch.library.Library("torchvision", "FRAGMENT")
        library.define("deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask) -> Tensor")
        library.impl("deform_conv2d", lambda x, w, *_: functional.conv2d(x, w), "CPU")
        args: tuple[Any, ...] = (torch.ones(X), torch.ones(6, 4, 3, 3), torch.ones(B, 18, 7, 7), torch.ones(B, 9, 7, 7))
        assert run(torch.ops.torchvision.deform_conv2d, *args) == Count(B * 6 * 49 * 4 * 9)
        return
    from torchvision.ops import DeformConv2d

    assert run(DeformConv2d(4, 6, 3), torch.ones(X), torch.ones(B, 18, 7, 7)) == Count(B * 6 * 49 * 4 * 9)


def test_a_model_that_takes_gradients_counts_them() -> None:
    class Force(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.energy = nn.Sequential(nn.Linear(K, M), nn.Tanh(), nn.Linear(M, 1))

        def forward(self, x: Any) -> Any:
            with torch.enable_grad():
                x = x.requires_grad_()
                return torch.autograd.grad(self.energy(x).sum(), x)[0]

    with MacCounter() as counter:
        Force().requires_grad_(requires_grad=False)(torch.ones(N, K))
    assert counter.total == Count(2 * N * (K * M + M))
    query = torch.ones(1, 2, 8, 4, requires_grad=True)
    with MacCounter() as counter:
        functional.scaled_dot_product_attention(query, query, query).sum().backward()
    assert counter.total == Count((2 + 5) * 2 * 8 * 8 * 4)


# -- what is not counted


def totals_of(function: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    class Model(nn.Module):
        def forward(self, *given: Any) -> Any:
            return function(*given)

    record = record_model(Model(), args, {})
    assert record.failure is None
    return record, record.totals


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (torch.linalg.inv, ["linalg_inv_ex"]),
        (torch.linalg.cholesky, ["linalg_cholesky_ex"]),
        (lambda x: torch.linalg.solve(x, x), ["_linalg_solve_ex"]),
        (torch.linalg.svdvals, ["_linalg_svd"]),
        (torch.linalg.qr, ["linalg_qr"]),
        (torch.linalg.det, ["_linalg_det"]),
        (torch.matrix_exp, ["linalg_matrix_exp"]),
        (lambda x: torch.linalg.inv(torch.linalg.cholesky(x)), ["linalg_cholesky_ex", "linalg_inv_ex"]),
    ],
)
def test_an_operator_without_a_formula_is_named(function: Callable[..., Any], names: list[str]) -> None:
    record, totals = totals_of(function, torch.eye(4))
    assert (totals.macs, totals.uncounted) == (0, dict.fromkeys(names, 0))
    assert f"not counted: {', '.join(names)}" in summary.facts(record)
    marks = [mark for _, _, node in record.walk() for mark in node.marks]
    assert marks == [f"not counted: {name}" for name in sorted(names, key=lambda name: "inv" in name)]
    assert {row.name: TEXTS["MACs"](row, PLAIN) for group in node_rows(record) for row in group.rows if row.uncounted}
    assert metrics.total(record).uncounted == metrics.by_call(record)[""].uncounted == frozenset(names)
    assert type(record).from_json(record.to_json()) == record


def test_an_operator_of_somebody_else_is_not_taken_for_nothing() -> None:
    library = torch.library.Library("fxgraph_test", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CPU")
    record, totals = totals_of(lambda x: torch.ops.fxgraph_test.twice(x) @ x, torch.eye(4))
    assert (totals.macs, totals.uncounted) == (64, {"fxgraph_test.twice": 0})
    assert "64 MACs (not counted: fxgraph_test.twice)" in summary.facts(record)


def test_a_formula_that_does_not_fit_is_no_zero() -> None:
    library = torch.library.Library("torchvision", "FRAGMENT")
    if not hasattr(torch.ops.torchvision, "deform_conv2d"):
        library.define("deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask) -> Tensor")
    empty = torch.ones(0, 4, 3, 3)
    out = torch.ones(1, 0, 7, 7)
    assert cost(torch.ops.torchvision.deform_conv2d.default, (torch.ones(X), empty), {}, out) == Count(
        0, 0, {"torchvision.deform_conv2d": 0}
    )


def test_fourier_transforms_are_told_with_the_number_of_the_usual_estimate() -> None:
    """5 n log2(n) floating-point operations, two to a MAC, and half of them where one side is real."""
    for device in ("cpu", "meta"):
        real, complex_ = torch.ones(4, 8, device=device), torch.ones(4, 8, dtype=torch.complex64, device=device)
        assert run(torch.fft.fft2, complex_) == Count(0, 0, {"_fft_c2c": 32 * 5 * 5 // 2})
        assert run(torch.fft.rfft, real) == Count(0, 0, {"_fft_r2c": 32 * 3 * 5 // 4})
        assert run(lambda x: torch.fft.irfft(torch.fft.rfft(x)), real).uncounted == {"_fft_r2c": 120, "_fft_c2r": 120}
    record, _ = totals_of(lambda x: torch.fft.rfft(x).abs(), torch.ones(4, 8))
    assert "not counted: _fft_r2c (120 MACs)" in summary.facts(record)


def test_complex_numbers_count_once_and_are_told_as_real_ones() -> None:
    model = nn.Linear(K, M, dtype=torch.complex64)
    record = record_model(model, (torch.ones(N, K, dtype=torch.complex64),), {})
    assert record.totals.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert (record.totals.macs, record.totals.uncounted) == (N * K * M, {"complex products": 3 * N * K * M})
    facts = summary.facts(record)
    assert "24 parameters (c64, 48 as real numbers)" in facts
    assert "60 MACs (not counted: complex products (180 MACs))" in facts


def test_what_calls_itself_again_counts_each_time() -> None:
    """The second call of a function on the meta device is not run again."""

    class Twice(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.fft.rfft(torch.fft.rfft(x).abs()[..., :4]).abs()

    for device in ("cpu", "meta"):
        totals = record_model(Twice(), (torch.ones(2, 8, device=device),), {}).totals
        assert totals.uncounted == {"_fft_r2c": 16 * 3 * 5 // 4 + 8 * 2 * 5 // 4}


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
