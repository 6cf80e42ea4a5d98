"""A build that changes nothing is to be as quick as one without us: what only pages need is imported for pages."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def late(name: str) -> Callable[..., Any]:
    """A function of this room by its module and name, ``html.visit_fxgraph``, imported when it is first called."""
    module, _, function = name.rpartition(".")

    def call(*args: Any) -> Any:
        return getattr(importlib.import_module(f"{__package__}.{module}"), function)(*args)

    return call
