"""What a picture can be asked to look like."""

from __future__ import annotations

from dataclasses import dataclass

COLOURS = {"kind": "", "params": "parameters", "macs": "MACs", "memory": "bytes of activations"}
"""What boxes can be coloured by, and what their shares are then shares of."""


@dataclass(frozen=True)
class Look:
    """How a model is shown. A look never causes a capture."""

    depth: int | None = None
    """How many levels of modules are open; None opens as many as keep the picture legible."""
    open: tuple[str, ...] = ()
    """Paths of modules, with ``*`` and ``?``, that are open in any case."""
    fold: str = "auto"
    """``auto`` folds runs of equal siblings, ``loose`` also of siblings that differ in sizes only, ``off`` none."""
    nontensor: str = "auto"
    """Operators whose result holds no tensor: ``show``, ``compact``, ``hide``; ``auto`` shows few, compacts many."""
    direction: str = "TB"
    """``TB`` from top to bottom, ``LR`` from left to right."""
