"""Code that torch.fx cannot follow, or follows to another end than a run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from battery.case import case, x


@case("x; abs(x); max(abs); gt(max); bool(gt); small(x); output(small)", x, values=True)
class Branch(nn.Module):
    """Decides by a value."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.large = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.large(x) if x.abs().max() > 9 else self.small(x)
        return y


@case("x; max(x); item(max); mul(x, item); output(mul)", x, values=True)
class ReadsValue(nn.Module):
    """Computes with a number that it reads from a tensor."""

    def forward(self, x: Tensor) -> Tensor:
        return x * x.max().item()


@case(
    "x; arange; getitem(x); add(getitem, arange); cell(add); getitem_1(x); add_1(getitem_1, arange); "
    "cell@2(add_1); stack(cell, cell@2); output(stack)",
    x,
)
class Loop(nn.Module):
    """Loops over a dimension, with a tensor that depends on it."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        position = torch.arange(x.size(1))
        steps = [self.cell(x[row] + position) for row in range(x.shape[0])]
        return torch.stack(steps)


@case("x; unbind(x); getitem(unbind); getitem_1(unbind); stack(getitem, getitem_1); output(stack)", x)
class Unpacks(nn.Module):
    """Goes through a tensor."""

    def forward(self, x: Tensor) -> Tensor:
        first, second = x
        return torch.stack([second, first])


@case("x; relu(x); output(relu)", x)
class AsksForType(nn.Module):
    """Does something else where it is not given a tensor: silently another graph."""

    def forward(self, x: Any) -> Any:
        return x.relu() if isinstance(x, Tensor) else x + 1


@case("x; tanh(x); output(tanh)", x)
class AsksForFx(nn.Module):
    """Does something else while it is traced."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if type(x).__name__ == "Proxy" else x.tanh()


@case("x; mul(x); output(mul)", x)
class Tries(nn.Module):
    """Falls back to something else where the first fails."""

    def forward(self, x: Tensor) -> Tensor:
        try:
            return x @ x
        except RuntimeError:
            return x * 2


@case(
    "x; relu(x); relu_1(relu); relu_2(relu_1); add(relu_2, x); div(add); sub(div); pow(sub); "
    "floordiv(pow); remainder(floordiv); neg(remainder); getattr(x); matmul(neg, getattr); getattr_1(x); "
    "getattr_2(getattr_1); matmul_1(matmul, getattr_2); output(matmul_1)",
    x,
    traced=True,
)
class ManyNames(nn.Module):
    """Writes one operator in many ways."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(functional.relu(x.relu())) + x
        y = 1 - y / 2
        y = 2**y // 1 % 3
        return -y @ x.T @ x.mT.mT


@case("x; mul(x); add(x); output(add)", x, traced=True, marks={"mul": ("dead",)})
class Dead(nn.Module):
    """Computes something and forgets it."""

    def forward(self, x: Tensor) -> Tensor:
        _ = x * 3
        return x + 1


@case("x; einsum(x); output(einsum)", x, result="f32[2, 2]", traced=True)
class Einsum(nn.Module):
    """Has an argument that needs quoting."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("ab,cb->ac", x, x)


@case("x; first(x); sin(first); second(x); add(sin, second); output(add)", x, traced=True)
class Threads(nn.Module):
    """Two branches in a pool of one thread."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(lambda: self.first(x).sin())
            (second,) = pool.map(self.second, [x])
        return first.result() + second
