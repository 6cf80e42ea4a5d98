"""What nodes and modules have in common where they are written: parts that the rest tells are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Plain = dict[str, Any]


def dropped(part: Plain, told: Plain) -> Plain:
    """What can be told is left out; where something else is the case it is said, be it that there is nothing."""
    other = {key: part.get(key, type(value)()) for key, value in told.items()}
    rest = {key: value for key, value in part.items() if key not in told}
    return rest | {key: value for key, value in other.items() if value != told[key]}


def filled(plain: Plain, **parts: Any) -> Plain:
    """With those of the parts that hold something."""
    return plain | {name: part for name, part in parts.items() if part}


def each(plain: Plain, key: str, step: Callable[[Any], Any]) -> Plain:
    """With every item of a list changed, where there is one."""
    return plain | {key: [step(item) for item in plain[key]]} if key in plain else plain


def named(part: Plain, names: Mapping[str, str]) -> Plain:
    """With another name of its class."""
    return part | {"type": names.get(part["type"], part["type"])} if "type" in part else part
