"""What is written in place, and who sees it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from battery.case import case, x

IN_PLACE = ("in place",)


@case("x; fc(x); relu(fc); add_(relu, x); output(add_)", x, traced=True, marks={"relu": IN_PLACE, "add_": IN_PLACE})
class Residual(nn.Module):
    """Adds in place, after an in-place ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.relu(self.fc(x))
        out += x
        return out


@case(
    "x; mul(x); add_(mul); relu(add_); mul_1(relu); output(mul_1)",
    x,
    traced=True,
    marks={"add_": IN_PLACE, "relu": IN_PLACE},
)
class Statement(nn.Module):
    """Does not use what an in-place function returns."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        y.add_(1)
        self.relu(y)
        return y * 3


@case(
    "x; clone(x); view(clone); add_(view); after_writes(add_); setitem(after_writes); chunk(setitem); "
    "getitem(chunk); getitem_1(chunk); mul_(getitem); sum(getitem_1); after_writes_1(setitem, mul_); "
    "add(after_writes_1, sum); output(add)",
    x,
    marks={"add_": IN_PLACE, "setitem": IN_PLACE, "mul_": IN_PLACE},
)
class ThroughViews(nn.Module):
    """Writes through views, and reads what they are views of."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        flat = y.view(-1)
        flat.add_(1)
        y[0] = 0
        left, right = y.chunk(2, dim=1)
        left.mul_(2)
        return y + right.sum()


@case(
    "x; zeros; getitem(x); setitem(zeros, getitem); empty_like(x); copy_(empty_like, setitem); output(copy_)",
    x,
    traced=True,
    marks={"setitem": IN_PLACE, "copy_": IN_PLACE},
)
class Filled(nn.Module):
    """Fills a tensor that it has made."""

    def forward(self, x: Tensor) -> Tensor:
        out = torch.zeros(2, 4)
        out[:, 1:] = x[:, 1:]
        other = torch.empty_like(x)
        other.copy_(out)
        return other


@case(
    "x; new_empty(x); new_empty_1(x); max(x, new_empty, new_empty_1); getitem(max); getitem_1(max); "
    "new_empty_2(x); getitem_2(getitem); add(x, getitem_2, new_empty_2); output(add, getitem_1)",
    x,
    traced=True,
    marks={"max": IN_PLACE, "add": IN_PLACE},
    result="(f32[2, 4], f32[2])",
)
class OutArgument(nn.Module):
    """Says where results go."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        highest, place = x.new_empty(2), x.new_empty(2, dtype=torch.long)
        torch.max(x, dim=1, out=(highest, place))
        total = x.new_empty(2, 4)
        torch.add(x, place[:, None], out=total)
        return total, highest


@case(
    "x; cache; setitem(cache, x); calls; add_(calls); getitem(setitem); div(getitem, add_); output(div)",
    x,
    marks={"setitem": ("written to cache", "in place"), "add_": ("written to calls", "in place")},
)
class Buffer(nn.Module):
    """Keeps state in buffers and attributes, and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(3, 4))
        self.register_buffer("calls", torch.zeros(()))
        self.seen: list[Tensor] = []
        self.last: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.cache[:2] = x
        self.calls += 1
        self.seen.append(x)
        self.last = x
        return self.cache[:2] / self.calls


@case("x; weight; getattr(weight); renorm(getattr); linear(x, renorm); output(linear)", x)
class MaxNorm(nn.Linear):
    """Puts another tensor into its weight each time."""

    def __init__(self) -> None:
        super().__init__(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        self.weight.data = torch.renorm(self.weight.data, p=2, dim=0, maxnorm=0.1)
        return functional.linear(x, self.weight)


@case(
    "x; weight; clamp_(weight); mul(x, clamp_); output(mul)",
    x,
    traced=True,
    marks={"clamp_": ("no_grad", "written to weight", "in place")},
)
class Clamped(nn.Module):
    """Writes into its weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 3.0))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.weight.clamp_(max=1)
        return x * self.weight


@case("x; add_(x); output(add_)", x, traced=True, marks={"add_": IN_PLACE})
class WritesInput(nn.Module):
    """Writes into what it is given."""

    def forward(self, x: Tensor) -> Tensor:
        return x.add_(1)


@case(
    "x; mul(x); getattr(mul); detach(x); add(detach); copy_(getattr, add); output(copy_)",
    x,
    traced=True,
    marks={"copy_": IN_PLACE},
)
class ThroughData(nn.Module):
    """Reaches around autograd."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        y.data.copy_(x.detach() + 1)
        return y
