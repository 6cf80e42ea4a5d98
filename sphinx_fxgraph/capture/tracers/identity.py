"""Whether a model's code asks if two tensors are one object, which a recording may change."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def compares_identity(model: nn.Module) -> bool:
    """Return whether a method of a module's class, torch's left out, compares objects by identity (``y is x``)."""
    return any(map(_compares, {code for cls in {type(module) for module in model.modules()} for code in _codes(cls)}))


def _codes(cls: type) -> Iterator[CodeType]:
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] not in ("torch", "builtins"):
            yield from (value.__code__ for value in vars(base).values() if isinstance(value, FunctionType))
            forward = vars(base).get("forward")
            names = forward.__code__.co_names if isinstance(forward, FunctionType) else ()
            helpers = (forward.__globals__.get(name) for name in names) if isinstance(forward, FunctionType) else ()
            yield from (each.__code__ for each in helpers if isinstance(each, FunctionType))


@functools.lru_cache(maxsize=4096)
def _compares(code: CodeType) -> bool:
    before: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IS_OP" and not (before and before.opname == "LOAD_CONST"):
            return True
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval == "id":
            return True
        before = instruction
    return any(_compares(each) for each in code.co_consts if isinstance(each, CodeType))
