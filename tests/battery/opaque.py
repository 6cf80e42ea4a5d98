"""What is one node, whatever it does inside."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx, nn

from battery.case import case, x


class Swish(torch.autograd.Function):
    """Has its own backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x * scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        (saved,) = ctx.saved_tensors
        return grad * saved, grad


swish = Swish.apply  # bound before anything can be put in its place


@case("x; add(x); Swish(x, add); Swish_1(Swish, x); output(Swish_1)", x, traced=True)
class AutogradFunction(nn.Module):
    """Applies an autograd function twice, by both names."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = swish(x, x + 1)
        z: Tensor = Swish.apply(y, x)
        return z


class Reversible(torch.autograd.Function):
    """Calls modules."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layers: nn.ModuleList) -> Tensor:  # noqa: ARG004 - torch's
        for layer in layers:
            x = layer(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004 - torch's
        return grad, None


@case("x; layers.0(x); layers.1(layers.0); output(layers.1)", x, traced=True)
class ModulesInFunction(nn.Module):
    """Runs its layers inside an autograd function, where they are seen all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.ReLU()])

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = Reversible.apply(x, self.layers)
        return y


@torch.jit.script
def scripted(x: Tensor, times: int) -> Tensor:
    """Two operators in TorchScript."""
    return torch.sin(x) * times


@case("x; scripted(x); output(scripted)", x)
class ScriptedFunction(nn.Module):
    """Calls a function in TorchScript."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = scripted(x, 2)
        return y


@torch.library.custom_op("battery::double", mutates_args=(), schema="(Tensor x) -> Tensor")
def double(x: Tensor) -> Tensor:
    """An operator of our own."""
    return x * 2


@double.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@case(
    "x; double(x); double_1(double); output(double_1)",
    x,
    traced=True,
    marks={"double": ("not counted: battery.double",), "double_1": ("not counted: battery.double",)},
)
class CustomOperator(nn.Module):
    """Calls an operator of its own, by both names."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.ops.battery.double(double(x))
        return y


def rounded(x: Tensor) -> Tensor:
    """Not for torch.fx to look into."""
    return x + 1 if x.sum() > 0 else x - 1


fx.wrap("rounded")


@case("x; rounded(x); mul(rounded); output(mul)", x, traced=True, values=True)
class WrappedFunction(nn.Module):
    """Calls a function that torch.fx leaves closed."""

    def forward(self, x: Tensor) -> Tensor:
        return rounded(x) * 2


@case("x; getattr(x); matmul(getattr, x); vmap(x, matmul); output(vmap)", x)
class Vmap(nn.Module):
    """Maps a function that also takes a variable of the code around it."""

    def forward(self, x: Tensor) -> Tensor:
        weight = x.T @ x
        return torch.vmap(lambda row: row @ weight)(x)


@case("x; grad(x); output(grad)", x)
class Transforms(nn.Module):
    """Differentiates functions."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.func.grad(lambda value: self.fc(value).sum())(x)


@case("x; fc.weight; mul(fc.weight); fc(x, mul); output(fc)", x)
class FunctionalCall(nn.Module):
    """Calls a module with a weight that it has computed."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.func.functional_call(self.fc, {"weight": self.fc.weight * 2}, (x,))
        return y
