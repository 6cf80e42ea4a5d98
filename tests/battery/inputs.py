"""Arguments and results of every kind."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from battery.case import case, x


@case(
    "batch; getitem(batch); getitem_1(getitem); getitem_2(batch); getitem_3(getitem_2); add(getitem_1); "
    "add_1(add, getitem_3); output(add_1)",
    lambda: ([{"a": x()[0], "id": 1, "name": "one"}, {"a": x()[0], "id": 2, "name": "two"}],),
    traced=True,
)
class ListOfDicts(nn.Module):
    """Loops over a list of dicts that also hold what is no tensor."""

    def forward(self, batch: list[dict[str, Any]]) -> Tensor:
        total: Any = 0
        for sample in batch:
            total = total + sample["a"]
        return total


@case(
    "pair; getitem(pair); getitem_1(pair); sub(getitem, getitem_1); output(sub)", lambda: ((*x(), *x()),), traced=True
)
class Pair(nn.Module):
    """Takes one tuple."""

    def forward(self, pair: tuple[Tensor, Tensor]) -> Tensor:
        first, second = pair
        return first - second


@case("red; blue; mul(red, blue); output(mul)", tuple, kwargs=lambda: {"red": x()[0], "blue": x()[0]}, traced=True)
class KeywordsOnly(nn.Module):
    """Cannot be called with positional arguments."""

    def forward(self, *, red: Tensor, blue: Tensor | None = None) -> Tensor:
        return red if blue is None else red * blue


@case("xs_0; xs_1; add(xs_0); add_1(add, xs_1); output(add_1)", lambda: (*x(), *x()), traced=True)
class Variadic(nn.Module):
    """Takes any number of tensors."""

    def forward(self, *xs: Tensor) -> Tensor:
        return sum(xs)  # type: ignore[return-value]  # it starts with 0


@case(
    "x; added; getitem(added); getitem_1(getitem); mul(x); add(mul, getitem_1); output(add)",
    x,
    kwargs=lambda: {"added": {"embedding": {"deep": x()[0]}}},
    traced=True,
)
class NestedKeywords(nn.Module):
    """Takes a dict in a dict by keyword, and a number."""

    def forward(self, x: Tensor, scale: float = 2.0, *, added: dict[str, dict[str, Tensor]]) -> Tensor:
        return x * scale + added["embedding"]["deep"]


@case("x; relu(x); output(relu)", x, result="[f32[2, 4], f32[2, 4], f32[2, 4]]", traced=True)
class Thrice(nn.Module):
    """Returns one tensor three times."""

    def forward(self, x: Tensor) -> list[Tensor]:
        y = torch.relu(x)
        return [y, y, y]


@case(
    "x; relu(x); abs(x); sum(x); output(relu, abs, sum)",
    x,
    result="(f32[2, 4], (f32[2, 4], {'total': f32[]}), None, 3)",
    traced=True,
)
class NestedResult(nn.Module):
    """Returns tuples in tuples, a dict, None and a number."""

    def forward(self, x: Tensor) -> Any:
        return x.relu(), (x.abs(), {"total": x.sum()}), None, 3


@case("x; relu(x); output(relu, x)", x, result="{'out': f32[2, 4], 'same': f32[2, 4]}", traced=True)
class DictWithInput(nn.Module):
    """Returns its input beside its result."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"out": x.relu(), "same": x}


@dataclass
class Answer:
    """A result with names."""

    logits: Tensor
    hidden: tuple[Tensor, ...]
    loss: Tensor | None = None


@case("x; relu(x); output(relu, x)", x, result="Answer(logits=f32[2, 4], hidden=(f32[2, 4],))", traced=True)
class DataclassResult(nn.Module):
    """Returns a dataclass."""

    def forward(self, x: Tensor) -> Answer:
        return Answer(x.relu(), (x,))


class Named(NamedTuple):
    """A result with names and positions."""

    out: Tensor
    aux: Tensor


@case("x; relu(x); abs(x); output(relu, abs)", x, result="Named(f32[2, 4], f32[2, 4])", traced=True)
class NamedTupleResult(nn.Module):
    """Returns a named tuple."""

    def forward(self, x: Tensor) -> Named:
        return Named(x.relu(), x.abs())


class ModelOutput(OrderedDict[str, Any]):
    """As Hugging Face's: a dict whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@case("x; relu(x); output(relu)", x, result="{'logits': f32[2, 4]}", traced=True)
class ModelOutputResult(nn.Module):
    """Returns a dict of a class of its own."""

    def forward(self, x: Tensor) -> ModelOutput:
        return ModelOutput(logits=x.relu())


class Cache:
    """As a cache of keys and values: an object with tensors in it."""

    def __init__(self) -> None:
        self.keys: list[Tensor] = []
        self.config = {"size": 4}
        self.owner: Cache = self

    def update(self, key: Tensor) -> Tensor:
        """Take a tensor and give all of them."""
        self.keys.append(key)
        return torch.cat(self.keys)


@case(
    "x; cat(x); mul(x); cat_1(x, mul); output(cat_1, x, mul)",
    x,
    result="(f32[4, 4], Cache(keys[0]=f32[2, 4], keys[1]=f32[2, 4]))",
    marks={"cat": ("dead",)},
)
class CacheResult(nn.Module):
    """Returns an object that leads back to itself."""

    def forward(self, x: Tensor) -> tuple[Tensor, Cache]:
        cache = Cache()
        cache.update(x)
        return cache.update(x * 2), cache


@case("x; exp(x); broadcast_tensors(x, exp); getitem(broadcast_tensors); getitem_1(broadcast_tensors); "
      "output(getitem, getitem_1)", x, result="Normal(loc=f32[2, 4], scale=f32[2, 4])")  # fmt: skip
class DistributionResult(nn.Module):
    """Returns a distribution."""

    def forward(self, x: Tensor) -> Any:
        return torch.distributions.Normal(x, x.exp(), validate_args=False)


@case("x; add(x); add_1(x); output(add, add_1)", x, result="[f32[2, 4], f32[2, 4]]")
class GeneratorResult(nn.Module):
    """Yields its results, and runs while they are taken."""

    def forward(self, x: Tensor) -> Iterator[Tensor]:
        yield x + 1
        yield x + 2


@case("x; output(x)", x, traced=True)
class Nothing(nn.Module):
    """Returns what it is given."""

    def forward(self, x: Tensor) -> Tensor:
        return x


@case("x; sum(x); output(sum)", x, result="f32[]", traced=True)
class Scalar(nn.Module):
    """Returns a scalar."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum()


@case(
    "features; getitem(features); getitem_1(features); add(getitem, getitem_1); output(add)",
    lambda: ({"b": x()[0], "a": x()[0]},),
    traced=True,
)
class MappingArgument(nn.Module):
    """Takes a dict, and asks for its entries in another order."""

    def forward(self, features: Mapping[str, Tensor]) -> Tensor:
        return features["a"] + features["b"]
