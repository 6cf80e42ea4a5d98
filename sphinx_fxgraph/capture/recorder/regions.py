"""The blocks of code that operators run in: without gradients, under autocast, in a checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from sphinx_fxgraph.capture.formatting import short_dtype

_CHECKPOINT = "checkpoint"


class Regions:
    """The blocks that are open, outermost first."""

    def __init__(self) -> None:
        self._open: list[Any] = []

    def enter(self, block: Any) -> None:
        """A block of torch's was entered."""
        self._open.append(block)

    def leave(self, block: Any) -> None:
        """It was left; one that was open before is not known."""
        for number in reversed(range(len(self._open))):
            if self._open[number] is block:
                del self._open[number]
                break

    @contextlib.contextmanager
    def checkpoint(self) -> Iterator[None]:
        """A part whose results are not kept for the backward pass."""
        self.enter(_CHECKPOINT)
        try:
            yield
        finally:
            self.leave(_CHECKPOINT)

    @property
    def autocasts(self) -> bool:
        """Whether operators choose their own dtype."""
        return any("autocast" in mark for mark in self.marks())

    def marks(self) -> tuple[str, ...]:
        """What an operator is marked with; of two blocks of a kind the inner one counts."""
        if not self._open:
            return ()
        marks: dict[str, str] = {}
        for number, block in enumerate(self._open):
            if block is _CHECKPOINT:
                marks["checkpoint"] = "checkpoint"
            elif isinstance(block, torch.autocast):
                marks["autocast"] = f"autocast {short_dtype(block.fast_dtype)}" if block._enabled else ""
            elif not (number and self._open[number - 1] is _CHECKPOINT):  # the old kind does that by itself
                marks["grad"] = _grad_mark(block)
        return tuple(mark for mark in marks.values() if mark)


def _grad_mark(block: Any) -> str:
    if isinstance(block, torch.inference_mode):
        return "inference_mode" if block.mode else ""
    enabled = isinstance(block, torch.enable_grad) or getattr(block, "mode", False)
    return "enable_grad" if enabled else "no_grad"
