"""Blocks of code that change what operators do."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from battery.case import case, x


@case("x; add(x); mul(add, x); output(mul)", x, traced=True, marks={"add": ("no_grad",)})
class NoGrad(nn.Module):
    """Computes a part without gradients."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = x + 1
        return y * x


@case("x; tanh(x); output(tanh)", x, traced=True, marks={"tanh": ("no_grad",)})
class SetGrad(nn.Module):
    """The same by another name, and a block that changes nothing."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.set_grad_enabled(False):
            y = x.tanh()
        with torch.enable_grad(), torch.no_grad():
            pass
        return y


@case("x; add(x); output(add)", x, traced=True, marks={"add": ("inference_mode",)})
class Inference(nn.Module):
    """Computes a part that can never have gradients."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.inference_mode():
            return x + 1


@case("x; exact(x); fc(exact); output(fc)", x, result="bf16[2, 4]", values=True, marks={"fc": ("autocast bf16",)})
class Autocast(nn.Module):
    """Computes a part in another dtype, and a part of that not."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.exact = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.autocast("cpu", enabled=False):
                x = self.exact(x)
            y: Tensor = self.fc(x)
        return y


@case(
    "x; inner.tanh(x); inner@2.tanh(inner.tanh); output(inner@2.tanh)",
    x,
    traced=True,
    marks={"inner.tanh": ("checkpoint",), "inner@2.tanh": ("checkpoint",)},
)
class Checkpoint(nn.Module):
    """Computes parts whose results are not kept."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Tanh()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = checkpoint(self.inner, x, use_reentrant=False)
        z: Tensor = checkpoint(self.inner, y, use_reentrant=True)
        return z


class Tanh(nn.Module):
    """One operator."""

    def forward(self, x: Tensor) -> Tensor:
        return x.tanh()


@case(
    "x; detach(x); fc(detach); sum(fc); grad(sum, detach); getitem(grad); output(getitem)",
    x,
    marks=dict.fromkeys(("detach", "fc", "sum", "grad", "getitem"), ("enable_grad",)),
    values=True,
)
class Force(nn.Module):
    """Differentiates what it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            energy = self.fc(x).sum()
            return torch.autograd.grad(energy, x)[0]


@case("x; fc(x); sum(fc); grad(sum, x); getitem(grad); output(getitem)", x, values=True)
class ForceOutside(nn.Module):
    """The same, counting on being called with gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        x.requires_grad_()
        return torch.autograd.grad(self.fc(x).sum(), x)[0]
