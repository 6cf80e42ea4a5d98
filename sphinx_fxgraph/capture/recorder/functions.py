"""How a function that a model calls is written as a node: opcode, target, arguments."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from sphinx_fxgraph.capture.torch_private import OpOverload


class Written(NamedTuple):
    """A function as torch.fx would write it."""

    op: str
    target: Any
    arguments: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple
    """Of the call -> of the node."""
    reads: bool = False
    """It makes a plain Python value of what is in a tensor: a path may depend on it."""


_PROPERTIES = frozenset({"T", "mT", "H", "mH", "data", "grad", "imag", "real"})
"""Those of a tensor that are tensors."""

_QUIET = frozenset(
    """
    __delete__ __dir__ __format__ __hash__ __len__ __reduce_ex__ __repr__ __set__ data_ptr dense_dim dim element_size
    get_device has_names is_coalesced is_complex is_contiguous is_conj is_floating_point is_inference is_neg is_pinned
    is_same_size is_set_to is_shared is_signed ndimension nelement numel q_scale q_zero_point qscheme register_hook
    requires_grad_ retain_grad size sparse_dim storage storage_offset storage_type stride untyped_storage
    """.split()  # noqa: SIM905 - words read better than a list of strings
)
"""Functions that say something of a tensor but its values; most are asked all the time."""

_READS: dict[str, Any] = {
    **dict.fromkeys(("allclose", "equal", "is_nonzero", "item", "numpy", "tolist")),
    "__array__": "numpy",
    "__bool__": bool,
    "__complex__": complex,
    "__contains__": operator.contains,
    "__float__": float,
    "__index__": operator.index,
    "__int__": int,
}


@functools.lru_cache(maxsize=4096)
def is_own(function: Any) -> bool:
    """Whether a function is torch's: no operator of another library, nor a function that such a one tells torch of."""
    if isinstance(function, OpOverload):
        return function.namespace in ("aten", "prim", "prims")
    return (getattr(function, "__module__", None) or "torch").partition(".")[0] == "torch"


def is_torchs(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call runs torch's own code alone, and no function that it is given."""
    return is_own(function) and not any(map(callable, args)) and not any(map(callable, kwargs.values()))


@functools.lru_cache(maxsize=4096)
def written(function: Any) -> Written | None:
    """The node of a function that `torch.overrides` hands over; nothing for one that is no operator."""
    name = getattr(function, "__name__", "")
    if name == "__get__":
        attribute = getattr(getattr(function, "__self__", None), "__name__", "")
        if attribute not in _PROPERTIES:
            return None
        return Written("call_function", getattr, lambda args: (*args[:1], attribute))
    if name in _QUIET:
        return None
    if isinstance(function, OpOverload):
        return Written("call_function", function.overloadpacket)
    if not getattr(function, "__qualname__", "").startswith(("TensorBase.", "Tensor.")):
        return Written("call_function", function, reads=name in _READS)
    if name in _READS:
        target = _READS[name] or name
        return Written("call_method" if isinstance(target, str) else "call_function", target, reads=True)
    return _operator(name) or Written("call_method", name)


def _operator(name: str) -> Written | None:
    """What Python writes with a sign."""
    if not (name.startswith("__") and name.endswith("__")):
        return None
    plain = {"__rdiv__": "rtruediv", "__div__": "truediv", "__idiv__": "itruediv"}.get(name, name.strip("_"))
    for swapped, spelled in ((False, plain), (True, plain.removeprefix("r"))):
        function = getattr(operator, spelled, None) or getattr(operator, f"{spelled}_", None)
        if function is not None:
            return Written("call_function", function, _swapped if swapped else tuple)
    return None


def _swapped(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return args[1], args[0], *args[2:]
