"""The ids of nodes on a page, from which drawing and tables lead to each other."""

from __future__ import annotations

import re
from collections.abc import Container

_PLAIN = re.compile(r"[A-Za-z0-9._-]*").fullmatch
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]")


def anchor(figure: str, path: str) -> str:
    """The id of a node: ``<figure>-<path>``, ``..2`` for the ``@2`` of a second call, ``_xHHHH_`` for odd letters."""
    if not _PLAIN(path):
        path = _NOT_PLAIN.sub(lambda c: f"_x{ord(c[0]):04X}_", re.sub(r"@(\d+)", r"..\1", path))
    return f"{figure}-{path}"


def ids(drawing: str) -> frozenset[str]:
    """All ids in an SVG."""
    return frozenset(re.findall(r' id="([^"]+)"', drawing))


def nearest(path: str, *, prefix: str, drawn: Container[str], figure: str) -> str:
    """The id of an operator in a drawing, of the module around it that is drawn, or of the figure.

    Args:
        path: of the operator.
        prefix: what the ids of the drawing start with.
        drawn: the ids in it.
        figure: the id of the figure.
    """
    while path and anchor(prefix, path) not in drawn:
        path = path.rpartition(".")[0]
    return anchor(prefix, path) if path else figure
