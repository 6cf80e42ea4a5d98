"""How modules are held, called and wrapped."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize, spectral_norm, weight_norm

from battery.case import case, x


@case(
    "x; mods.0(x); mods.1.0(mods.0); mods.1.1(mods.1.0); output(mods.1.1)",
    x,
    marks={"mods.0": ("not registered",), "mods.1": ("not registered",)},
)
class PlainList(nn.Module):
    """Holds its modules in a list, where nothing trains them."""

    def __init__(self) -> None:
        super().__init__()
        self.mods = [nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 4))]

    def forward(self, x: Tensor) -> Tensor:
        for module in self.mods:
            x = module(x)
        return x


@case("x; relu(x); softmax(relu); output(softmax)", x)
class MadeInForward(nn.Module):
    """Makes modules while it runs."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = nn.Softmax(-1)(nn.ReLU()(x))
        return y


@case("x; relu(x); relu@2(relu); softmax(relu@2); softmax_1(softmax); output(softmax_1)", x)
class MadeAgain(nn.Module):
    """Makes modules for each call: one like the one before, and one of another setting."""

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):
            x = nn.ReLU()(x)
        for dim in (-1, 0):
            x = nn.Softmax(dim)(x)
        return x


class Through(nn.Module):
    """Returns its input."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Weight(nn.Module):
    """Returns its parameter beside its input."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.weight, x


@case("x; weight.weight; identity(x); mul(identity, weight.weight); add(mul, x); output(add)", x, traced=True)
class ReturnsInput(nn.Module):
    """Has modules that return what they are given."""

    def __init__(self) -> None:
        super().__init__()
        self.through, self.weight, self.identity = Through(), Weight(), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        weight, y = self.weight(self.through(x))
        return self.identity(y) * weight + y


@case(
    "x; dropout(x); dropout_1(x); add(dropout, dropout_1); contiguous(x); add_1(add, contiguous); to(x); "
    "add_2(add_1, to); add_3(add_2, x); output(add_3)",
    x,
    traced=True,
)
class SameObject(nn.Module):
    """Calls what returns its argument itself, and uses both."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout()

    def forward(self, x: Tensor) -> Tensor:
        y = self.dropout(x) + functional.dropout(x, training=self.training)
        return y + x.contiguous() + x.to(torch.float32) + x


@case("x; block.0(x); block.1(block.0); block@2.0(block.1); block@2.1(block@2.0); output(block@2.1)", x, traced=True)
class Twice(nn.Module):
    """Calls one module twice."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.block(self.block(x))
        return y


@case("x; fc.weight; fc.bias; linear(x, fc.weight, fc.bias); inner.0(linear); output(inner.0)", x, traced=True)
class DirectForward(nn.Module):
    """Calls ``forward`` of its modules."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.inner = nn.Sequential(nn.Linear(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.inner.forward(self.fc.forward(x))


@case(
    "ids; embedding(ids); head(embedding); embedding.weight; linear(embedding, embedding.weight); "
    "add(head, linear); output(add)",
    lambda: (torch.tensor([1, 2, 3]),),
    result="f32[3, 10]",
    traced=True,
)
class Tied(nn.Module):
    """Shares its embedding with its head, as a module and as a function."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        h = self.embedding(ids)
        y: Tensor = self.head(h) + functional.linear(h, self.embedding.weight)
        return y


class Scaled(nn.Sequential):
    """A container with a parameter of its own."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(4, 4))
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = super().forward(x) * self.scale.sum()
        return y


@case(
    "x; scaled.0(x); scaled.scale; scaled.sum(scaled.scale); scaled.mul(scaled.0, scaled.sum); output(scaled.mul)",
    x,
    traced=True,
)
class OwnContainer(nn.Module):
    """Holds a container with a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.scaled = Scaled()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.scaled(x)
        return y


@case("x; add(x); leaf(add); mul(leaf); inner.0(mul); inner.div(inner.0); sub(inner.div); output(sub)", x)
class Hooks(nn.Module):
    """Has hooks that compute, on itself, on a module inside and on a leaf."""

    def __init__(self) -> None:
        super().__init__()
        self.leaf = nn.Linear(4, 4)
        self.inner = nn.Sequential(nn.Linear(4, 4))
        self.leaf.register_forward_pre_hook(lambda _module, args: (args[0] + 1,))
        self.leaf.register_forward_hook(lambda _module, _args, out: out * 2)
        self.inner.register_forward_hook(lambda _module, _args, out: out / 3)
        self.register_forward_hook(lambda _module, _args, out: out - 4)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner(self.leaf(x))
        return y


@case("x; fc.weight_v; fc.weight_g; weight_norm(fc.weight_v, fc.weight_g); fc(x, weight_norm); output(fc)", x)
class OldWeightNorm(nn.Module):
    """Has its weight computed by a hook, as torch's older normalisations do."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = weight_norm(nn.Linear(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc(x)
        return y


@case(
    "x; fc.weight_orig; reshape(fc.weight_orig); fc.weight_v; mv(reshape, fc.weight_v); fc.weight_u; "
    "dot(fc.weight_u, mv); div(fc.weight_orig, dot); fc(x, div); output(fc)",
    x,
)
class OldSpectralNorm(nn.Module):
    """The same with buffers that it computes with."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = spectral_norm(nn.Linear(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc(x)
        return y


class Symmetric(nn.Module):
    """A parametrization."""

    def forward(self, weight: Tensor) -> Tensor:
        return weight.triu() + weight.triu(1).transpose(-1, -2)


@case(
    "x; normed(x); symmetric.parametrizations.weight; linear(normed, symmetric.parametrizations.weight); "
    "output(linear)",
    x,
    traced=True,
    marks={"normed": ("weight by WeightNorm",)},
)
class Parametrized(nn.Module):
    """Has parametrizations, used by its module and by a function."""

    def __init__(self) -> None:
        super().__init__()
        self.normed = parametrizations.weight_norm(nn.Linear(4, 4))
        self.symmetric = nn.Linear(4, 4)
        parametrize.register_parametrization(self.symmetric, "weight", Symmetric())

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(self.normed(x), self.symmetric.weight)


@case("x; table; mul(x, table); shift; add(mul, shift); steps.1; add_1(add, steps.1); output(add_1)", x, traced=True)
class Constants(nn.Module):
    """Uses tensors that are no parameters and no buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.ones(4)
        self.register_buffer("shift", torch.ones(4))
        self.steps = [torch.ones(4), torch.zeros(4)]

    def forward(self, x: Tensor) -> Tensor:
        return x * self.table + self.shift + self.steps[1]


@case("x; scripted(x); traced(scripted); output(traced)", x, traced=True)
class ScriptedChild(nn.Module):
    """Has children in TorchScript."""

    def __init__(self) -> None:
        super().__init__()
        self.scripted = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
        self.traced = torch.jit.trace(nn.Linear(4, 4), torch.zeros(2, 4))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.traced(self.scripted(x))
        return y


@case("x; fc(x); output(fc)", x, traced=True)
class Lazy(nn.Module):
    """Makes its parameters when it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.LazyLinear(4)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc(x)
        return y


@case(
    "x; lstm(x); getitem(lstm); getitem_1(lstm); getitem_2(getitem_1); output(getitem, getitem_2)",
    lambda: (torch.zeros(2, 3, 4),),
    result="(f32[2, 3, 4], f32[1, 2, 4])",
    traced=True,
)
class Recurrent(nn.Module):
    """Takes the result of an LSTM apart."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        out, (hidden, _) = self.lstm(x)
        return out, hidden


class Swap(nn.Module):
    """Takes a pair and returns it the other way round."""

    def forward(self, pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return pair[1], pair[0]


@case("x; add(x); mul(x); sub(add, mul); output(sub)", x, traced=True)
class PairOfModules(nn.Module):
    """Hands a pair on through modules."""

    def __init__(self) -> None:
        super().__init__()
        self.swap = Swap()

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.swap(self.swap((x + 1, x * 2)))
        return first - second


class Wrapped(nn.Module):
    """A module that others are put around."""

    def __init__(self, wrap: Any) -> None:
        super().__init__()
        self.net = wrap(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.net(x)
        return y


@case("x; net.0(x); net.1(net.0); output(net.1)", x, traced=True)
class Parallel(Wrapped):
    """Has a child in DataParallel."""

    def __init__(self) -> None:
        super().__init__(nn.DataParallel)
