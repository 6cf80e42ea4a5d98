"""How operators, modules and arguments are written in a record: short, and the same on every machine.

No text holds a tensor's values, a memory address or an absolute path.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.fx.graph import dtype_abbrs  # type: ignore[attr-defined]  # where every torch since 2.0 has it
from torch.nn import functional

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.record.cleaning import clean_text
from sphinx_fxgraph.record.model import TensorMeta

ITEM_SIZE = {short: dtype.itemsize for dtype, short in dtype_abbrs.items()}
"""Bytes of an element, by the dtype's abbreviation."""

MOST = 240
"""Characters of an argument text; a longer one is cut."""


def dotted(cls: type) -> str:
    """The dotted name of a class; of the one that torch.fx makes for each graph module, that of the module itself."""
    if cls.__qualname__.endswith("<locals>.GraphModuleImpl"):
        return f"{cls.__module__}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def base_name(cls: type) -> str:
    """The nearest torch.nn class that a class is made from, where it is not torch's own."""
    if is_torch_nn(cls):
        return ""
    return next((base.__name__ for base in cls.__mro__ if is_torch_nn(base) and base is not nn.Module), "")


def is_torch_nn(cls: type) -> bool:
    """Whether a class is one of torch's own modules."""
    return f"{cls.__module__}.".startswith(("torch.nn.", "torch.ao.nn."))


# -- tensors and results


def meta_of(tensor: torch.Tensor, path: str = "") -> TensorMeta:
    """Shape and dtype of a tensor; the device only where it is no place that a capture runs at."""
    try:
        shape: Sequence[Any] = tensor.shape
    except RuntimeError:  # a nested tensor has no shape, an uninitialised parameter none yet
        shape = ()
    if not _SIZES.issuperset(map(type, shape)):
        shape = tuple(dim if type(dim) is int else str(dim) for dim in shape)
    return _meta(tuple(shape), tensor.dtype, path, "" if tensor.is_meta or tensor.is_cpu else str(tensor.device))


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


def text(value: Any, node_text: Callable[[fx.Node], str] = str) -> str:
    """A value as short text, nodes as ``node_text`` writes them."""
    return _cut(_text(value, node_text))


def argument_text(
    args: Sequence[Any], kwargs: Mapping[str, Any], node_text: Callable[[fx.Node], str]
) -> tuple[str, str]:
    """The positional and the keyword arguments of a call as text."""
    return (
        _cut(", ".join(_text(arg, node_text) for arg in args)),
        _cut(", ".join(f"{key}={_text(arg, node_text)}" for key, arg in kwargs.items())),
    )


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


def _cut(written: str) -> str:
    written = clean_text(written)
    return written if len(written) <= MOST else written[: MOST - 1] + "…"


def _text(value: Any, node_text: Callable[[fx.Node], str]) -> str:
    if type(value) in _LITERAL:
        return repr(value)

    def inner(item: Any) -> str:
        return _text(item, node_text)

    if isinstance(value, fx.Node):
        return node_text(value)
    if isinstance(value, torch.Tensor):
        return short_meta(meta_of(value))
    if isinstance(value, str):
        return repr(_SYMBOL.sub("…", value))
    if isinstance(
        value, bytes | bool | float | complex | torch.dtype | torch.device | torch.layout | torch.memory_format
    ):
        return repr(value)
    if isinstance(value, slice):
        ends = ["" if end is None else inner(end) for end in (value.start, value.stop, value.step)]
        return ":".join(ends if ends[2] else ends[:2])
    if value is ...:
        return "..."
    if isinstance(value, torch.Size):
        return f"Size([{', '.join(map(inner, value))}])"
    if isinstance(value, tuple) and type(value).__name__ not in ("tuple", "immutable_tuple"):
        return f"{type(value).__name__}({', '.join(map(inner, value))})"
    if isinstance(value, tuple):
        return f"({', '.join(map(inner, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        return f"[{', '.join(map(inner, value))}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(inner, value)))}}}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        entries = (f"{step.key}={inner(item)}" for step, item in pytree.items(value))
        return f"{type(value).__name__}({', '.join(entries)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {inner(item)}' for key, item in value.items())}}}"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, int | torch.SymInt | torch.SymFloat | torch.SymBool):
        return str(value)
    if isinstance(value, type):
        return value.__name__
    if callable(value) and hasattr(value, "__name__") and not isinstance(value, nn.Module):
        return function_name(value)
    held = _held_text(value, inner)  # of an object only its tensors: the rest may be anything, and lead back to it
    return f"{type(value).__name__}({held})" if held else type(value).__name__  # a repr may hold an address or values


def _held_text(value: Any, inner: Callable[[Any], str]) -> str:
    """The tensors of an object, as many as are not cut off: a cache of keys and values has many."""
    entries: list[str] = []
    room = MOST
    for path, tensor in pytree.each_tensor(value):
        entries.append(f"{''.join(map(str, path)).lstrip('.')}={inner(tensor)}")
        room -= len(entries[-1])
        if room < 0:
            break
    return ", ".join(entries)


_LITERAL = frozenset({bool, int, float, type(None), torch.dtype})
"""The commonest types of those that Python writes as they are to be read."""


def config_text(module: nn.Module) -> str:
    """What a module says of its configuration, on one line."""
    try:
        said = module.extra_repr()
    except Exception:  # noqa: BLE001 - the model's own code, which printing it may never have run
        return ""
    return _cut(" ".join(_ADDRESS.sub("", said).split()))


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
    """Whether an operator writes into an argument, by its name and arguments."""
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
