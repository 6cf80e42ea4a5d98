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
    rows: str = "auto"
    """``auto`` draws a straight stretch of operators as one box with a row for each, ``off`` each as a box."""
    dims: tuple[tuple[str, ...], ...] = ()
    """Names of the dimensions of each input, or of all that have as many."""


def parse_dims(text: str) -> tuple[tuple[str, ...], ...]:
    """The names of dimensions as one writes them: ``N C H W``, or ``N C H W, N T`` for two inputs.

    Raises:
        ValueError: they are no names.
    """
    groups = tuple(tuple(part.split()) for part in text.split(","))
    names = [name for group in groups for name in group]
    if not names or not all(map(str.isidentifier, names)):
        raise ValueError(f"{text!r} names no dimensions; for example N C H W, or N C H W, N T for two inputs")
    return groups
