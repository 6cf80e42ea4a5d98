"""Tensors of other kinds."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import rnn

from battery.case import case, x


@case(
    "x; y; to_sparse(x); sparse_mm(to_sparse, y); output(sparse_mm)",
    lambda: (*x(), torch.ones(4, 2)),
    result="f32[2, 2]",
    traced=True,
)
class Sparse(nn.Module):
    """Multiplies by a sparse matrix."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sparse.mm(x.to_sparse(), y)


@case(
    "x; fft_fft(x); filter; mul(fft_fft, filter); fft_ifft(mul); getattr(fft_ifft); view_as_real(mul); "
    "output(getattr, view_as_real)",
    x,
    result="(f32[2, 4], f32[2, 4, 2])",
    traced=True,
    marks={"fft_fft": ("not counted: _fft_r2c",), "fft_ifft": ("not counted: _fft_c2c",)},
)
class Complex(nn.Module):
    """Has a complex parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Parameter(torch.ones(4, dtype=torch.complex64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        spectrum = torch.fft.fft(x) * self.filter
        return torch.fft.ifft(spectrum).real, torch.view_as_real(spectrum)


@case("x; quantize_per_tensor(x); dequantize(quantize_per_tensor); output(dequantize)", x, traced=True, values=True)
class Quantized(nn.Module):
    """Quantizes and undoes it."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).dequantize()


@case(
    "x; lengths; to(lengths); pack_padded_sequence(x, to); lstm(pack_padded_sequence); getitem(lstm); "
    "getitem_1(getitem); getitem_2(getitem); getitem_3(lstm); getitem_4(getitem_3); "
    "pad_packed_sequence(getitem_1, getitem_2); getitem_5(pad_packed_sequence); output(getitem_5, "
    "getitem_4)",
    lambda: (torch.zeros(2, 3, 4), torch.tensor([3, 2])),
    result="(f32[2, 3, 4], f32[1, 2, 4])",
    values=True,
    marks={"pack_padded_sequence": ("size from values",)},
)
class Packed(nn.Module):
    """Packs sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out, (hidden, _) = self.lstm(packed)
        return rnn.pad_packed_sequence(out, batch_first=True)[0], hidden


@case("x; mul(x); add(mul); output(add)", x)
class MadeParameter(nn.Module):
    """Makes a parameter of what it computes."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.Parameter(x * 2) + 1


@case("x; numpy(x); add(numpy, x); output(add)", x, values=True)
class Numpy(nn.Module):
    """Goes through NumPy, where nobody can follow."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.from_numpy(x.numpy() * 2) + x


@case("x; randn; add(x, randn); arange; mul(arange); add_1(add, mul); output(add_1)", x)
class Random(nn.Module):
    """Draws random numbers and makes constants."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.randn(2, 4) + torch.arange(4) * 2
