"""The line of the model's code that is running."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import fx

import sphinx_fxgraph
from sphinx_fxgraph.cache.fingerprints import portable
from sphinx_fxgraph.spec.spec import CODE_FILE

_FOREIGN = (str(Path(torch.__file__).parent) + "/", str(Path(sphinx_fxgraph.__file__).parent) + "/", "<frozen ")


@functools.lru_cache(maxsize=10_000)
def is_foreign(file: str) -> bool:
    """Return whether a file belongs to torch, to this package or to the import system."""
    return file.startswith(_FOREIGN)


def borders(**functions: Sequence[Callable[..., Any]]) -> dict[int, str]:
    """The code of a tracer's own functions, for `place`: by identity, as the hash of code takes as long as the code is.

    Args:
        functions: ``call`` those that call a module, ``end`` those that call the root.
    """
    return {id(function.__code__): what for what, group in functions.items() for function in group}


def place(frame: FrameType | None, borders: Mapping[int, str], *, leaf: bool = False) -> dict[str, Any]:
    """The line that calls an operator, as ``where`` (function and line in it) and ``source`` (file and line).

    ``where`` looks no further than the module call that the operator stands in, so that a Sequential reads the same
    wherever it is called; ``source``, for messages, does.

    Args:
        frame: where to look from, outwards.
        borders: the tracer's own functions (see `borders`).
        leaf: whether the operator is a module call itself, so that the first border is its own.
    """
    inside = True
    while frame is not None:
        code = frame.f_code
        border = borders.get(id(code))
        if border == "end":
            break
        if border == "call":
            inside = inside and leaf
            leaf = False
        elif not is_foreign(code.co_filename):
            name = code.co_qualname.replace("<locals>.", "")
            line = frame.f_lineno - code.co_firstlineno + 1
            return {"where": f"{name}:{line}" if inside else "", "source": (code.co_filename, frame.f_lineno)}
        frame = frame.f_back
    return {}


def defined(function: Callable[..., Any]) -> tuple[str, int]:
    """File (package-relative) and line where a function of the model is written; empty for one of torch's."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or is_foreign(code.co_filename):
        return "", 0
    file = code.co_filename
    return file if file == CODE_FILE else portable(file), code.co_firstlineno


def placed(node: fx.Node | None) -> tuple[str, int]:
    """File (package-relative) and line of the call that a node stands for; empty where all the model is torch's own."""
    if node is None or "source" not in node.meta:
        return "", 0
    file, line = node.meta["source"]
    return file if file == CODE_FILE else portable(file), line
