"""Format operators, modules and arguments for a record: short, and the same on every machine.

No text holds a tensor's values, a memory address or an absolute path.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.fx.graph import dtype_abbrs  # type: ignore[attr-defined]  # where every torch since 2.0 has it
from torch.nn import functional

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.torch_private import without_functions
from sphinx_fxgraph.record.arguments import (
    Argument,
    Dict,
    List,
    Name,
    Object,
    Size,
    Slice,
    Text,
    Tuple,
    Value,
    cut,
    format_argument,
    values_in,
)
from sphinx_fxgraph.record.cleaning import clean_text
from sphinx_fxgraph.record.model import TensorMeta

ITEM_SIZE = {short: dtype.itemsize for dtype, short in dtype_abbrs.items()}
"""Bytes of an element, by the dtype's abbreviation."""


def plain_class(cls: type) -> type:
    """Return the class of a module without the one that `torch.nn.utils.parametrize` derives from it."""
    while cls.__module__ == "torch.nn.utils.parametrize" and cls.__name__.startswith("Parametrized"):
        cls = cls.__mro__[1]
    return cls


def dotted(cls: type) -> str:
    """The dotted name of a class; of the one that torch.fx makes for each graph module, that of the module itself."""
    cls = plain_class(cls)
    if cls.__qualname__.endswith("<locals>.GraphModuleImpl"):
        return f"{cls.__module__}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def base_name(cls: type) -> str:
    """The nearest torch.nn class that a class is made from, where it is not torch's own."""
    cls = plain_class(cls)
    if is_torch_nn(cls):
        return ""
    return next((base.__name__ for base in cls.__mro__ if is_torch_nn(base) and base is not nn.Module), "")


def is_torch_nn(cls: type) -> bool:
    """Return whether a class is one of torch's own modules."""
    return f"{cls.__module__}.".startswith(("torch.nn.", "torch.ao.nn."))


# -- tensors and results


def meta_of(tensor: torch.Tensor, path: str = "") -> TensorMeta:
    """Shape and dtype of a tensor; the device only where it is no place that a capture runs at."""
    with without_functions():
        try:
            shape: Sequence[Any] = tensor.shape
        except RuntimeError:  # a nested tensor has no shape, an uninitialised parameter none yet
            shape = ()
        device = "" if tensor.is_meta or tensor.is_cpu else str(tensor.device)
        dtype = tensor.dtype
    if not _SIZES.issuperset(map(type, shape)):
        shape = tuple(dim if type(dim) is int else str(dim) for dim in shape)
    return _meta(tuple(shape), dtype, path, device)


_SIZES = frozenset({int})


@functools.lru_cache(maxsize=10_000)
def _meta(shape: tuple[int | str, ...], dtype: torch.dtype, path: str, device: str) -> TensorMeta:
    return TensorMeta(shape, short_dtype(dtype), path, device)


def short_dtype(dtype: torch.dtype) -> str:
    """The abbreviation that torch uses."""
    return dtype_abbrs.get(dtype) or str(dtype).removeprefix("torch.")


def short_meta(meta: TensorMeta) -> str:
    """A tensor as it is written in specs and results, ``f32[1, 3]``."""
    return f"{meta.dtype}[{', '.join(map(str, meta.shape))}]"


def tensors_in(value: Any) -> tuple[TensorMeta, ...]:
    """The tensors in a result, with the path each stands at: ``[0]``, ``['out']``, ``.logits``."""
    if isinstance(value, torch.Tensor):
        return (meta_of(value),)
    return tuple(meta_of(tensor, "".join(map(str, path))) for path, tensor in pytree.tensors(value))


# -- arguments


def text(value: Any) -> str:
    """Return a value as short text; nodes by what a run of them gave."""
    return cut(clean_text(format_argument(argument_of(value, _given_text), _no_name)))


def _given_text(node: fx.Node) -> Text:
    tensors: tuple[TensorMeta, ...] = node.meta.get("outputs", ())
    return Text(node.meta.get("result") or (short_meta(tensors[0]) if tensors else "?"))


def _no_name(value: Value) -> str:
    raise AssertionError(f"{value} has no name in a text")


def argument_of(value: Any, of_node: Callable[[fx.Node], Argument]) -> Argument:
    """Return an argument of a call as plain data.

    Args:
        value: what was given; of an object of an unknown class only its tensors are told.
        of_node: stands for a node.
    """
    return _argument(value, of_node, ())


def _argument(value: Any, of_node: Callable[[fx.Node], Argument], around: tuple[int, ...]) -> Argument:
    kind = type(value)
    if kind in _LITERAL:
        return value  # type: ignore[no-any-return]  # None, bool or int
    if isinstance(value, fx.Node):
        return of_node(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else Name(repr(float(value)))
    if isinstance(value, str) and not isinstance(value, enum.Enum):
        return cut(clean_text(_SYMBOL.sub("…", str(value))))
    if isinstance(value, torch.Tensor):
        return Text(short_meta(meta_of(value)))
    if isinstance(value, torch.dtype | torch.device | torch.layout | torch.memory_format) or value is ...:
        return Name("..." if value is ... else str(value))
    if isinstance(value, enum.Enum):
        return Name(f"{kind.__name__}.{value.name}")
    if isinstance(value, int):
        return int(value)
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return Size(str(value))
    if isinstance(value, bytes | complex):
        return Text(cut(repr(value)))
    if isinstance(value, type):
        return Name(dotted(value).removeprefix("builtins."))
    if id(value) in around or len(around) >= _DEEPEST:  # an object may lead back to itself
        return Text("…")
    return _container(value, lambda item: _argument(item, of_node, (*around, id(value))))


def _container(value: Any, inner: Callable[[Any], Argument]) -> Argument:
    kind = type(value).__name__
    if isinstance(value, slice):
        return Slice(inner(value.start), inner(value.stop), inner(value.step))
    if isinstance(value, torch.Size):
        return Object("Size", (List(_items(value, inner)),))
    if isinstance(value, tuple):
        items = _items(value, inner)
        return Tuple(items) if kind in ("tuple", "immutable_tuple") else Object(kind, items)
    if isinstance(value, list):
        return List(_items(value, inner))
    if isinstance(value, set | frozenset):
        return Object("set", (List(tuple(sorted(_items(value, inner), key=repr))),))
    if dataclasses.is_dataclass(value):
        fields = itertools.islice(pytree.items(value), _MOST_ITEMS)
        return Object(kind, (), tuple((str(step.key), inner(item)) for step, item in fields))
    if isinstance(value, Mapping):
        return Dict(tuple((inner(key), inner(item)) for key, item in itertools.islice(value.items(), _MOST_ITEMS)))
    if callable(value) and hasattr(value, "__name__") and not isinstance(value, nn.Module):
        return Name(function_name(value))
    # Of an object only its tensors: the rest may be anything, and a repr may hold an address or values.
    tensors = list(itertools.islice(pytree.each_tensor(value), _MOST_TENSORS + 1))
    more = (Text("…"),) if len(tensors) > _MOST_TENSORS else ()
    held = tuple(("".join(map(str, path)).lstrip("."), inner(tensor)) for path, tensor in tensors[:_MOST_TENSORS])
    return Object(kind, more, held) if held else Name(kind)


def _items(values: Iterable[Any], inner: Callable[[Any], Argument]) -> tuple[Argument, ...]:
    """Return what stands in a container. Of a long list of literals the end is left out."""
    found = tuple(map(inner, values))
    if len(found) > _MOST_ITEMS and not values_in(found):
        return (*found[:_MOST_ITEMS], Text("…"))
    return found


_LITERAL = frozenset({bool, int, type(None)})
_DEEPEST = 10
"""Containers that are looked into."""
_MOST_ITEMS, _MOST_TENSORS = 100, 4
"""Of a long list of literals, of a mapping and of an object the first are enough."""


def given(node: fx.Node) -> dict[str, Any]:
    """The keyword arguments that say something: torch.fx also lists every default that a function filled in."""
    if not node.kwargs:
        return {}
    filled = _defaults(node.target)
    return {
        key: value
        for key, value in node.kwargs.items()
        if not (
            key in filled and isinstance(value, _SIMPLE) and type(filled[key]) is type(value) and filled[key] == value
        )
    }


@functools.lru_cache(maxsize=1000)
def _defaults(target: Any) -> dict[str, Any]:
    try:
        parameters = inspect.signature(target).parameters if callable(target) else {}
    except ValueError:  # most functions written in C have no signature
        parameters = {}
    return {key: parameter.default for key, parameter in parameters.items()}


_SIMPLE = (bool, int, float, str, type(None))


def config_text(module: nn.Module) -> str:
    """Return the configuration of a module (its ``extra_repr``) on one line."""
    try:
        said = module.extra_repr()
    except Exception:  # noqa: BLE001 - the model's own code, which printing it may never have run
        return ""
    return cut(" ".join(_ADDRESS.sub("", said).split()))


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_SYMBOL = re.compile(r"Proxy\(\w+\)")
"""What a message says of a value while torch.fx traces: a number of the trace, which no two calls share."""


# -- operators


def short_name(target: Any) -> str:
    """The name that a target itself has: ``add`` for ``operator.add`` and for ``torch.ops.aten.add.Tensor``."""
    if isinstance(target, str):
        return target
    return getattr(getattr(target, "overloadpacket", target), "__name__", "function")


def function_name(function: Callable[..., Any]) -> str:
    """A function as torch prints targets, by its public name: ``operator.add``, ``torch.nn.functional.gelu``."""
    try:
        name = fx.node._get_qualified_name(function)  # what `Node.format_node` and `Graph.print_tabular` print
    except (RuntimeError, AttributeError):  # a lambda, a partial: things without a home
        name = getattr(function, "__name__", type(function).__name__)
    short = name.rpartition(".")[2]
    for public in (torch, functional):  # where the documentation has it; conv2d and einsum are torch's own
        if getattr(public, short, None) is function:
            return f"{public.__name__}.{short}"
    if name.startswith("_operator."):
        name = name.removeprefix("_")
    elif isinstance(function, type):  # the class of a backward function, which stands in no module
        name = name.removeprefix("builtins.")
    return _ADDRESS.sub("", name)


_INPLACE = frozenset(
    f"i{name}"
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
    )
)


def kind_of(name: str) -> str:
    """The short name a box shows for a function: without in-place marks and Python's own spelling."""
    plain = name.strip("_") or name
    plain = plain[1:] if plain in _INPLACE else plain
    return "div" if plain == "truediv" else plain


def writes_in_place(node: fx.Node, module: nn.Module | None) -> bool:
    """Return whether an operator writes into an argument, by its name and arguments."""
    if node.op == "call_module":
        return getattr(module, "inplace", False) is True
    if node.op not in ("call_function", "call_method"):
        return False
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    plain = name.strip("_")
    if node.kwargs.get("inplace") is True or node.kwargs.get("out") is not None:
        return True
    if plain in _INPLACE or plain == "setitem":
        return True
    keyword = name in ("and_", "or_", "not_", "is_")  # of the operator module, spelled so because of Python
    return name.endswith("_") and not name.endswith("__") and not keyword
