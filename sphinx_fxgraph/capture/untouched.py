"""The Python API leaves nothing behind: the model and the random numbers are as they were, also after an exception."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from sphinx_fxgraph.capture.errors import CaptureError


@contextlib.contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Give every module its attributes, mode and hooks back, every buffer its values, torch and Python their seeds.

    A model may write to its attributes in ``forward`` (a cache, a counter), and a tracer stores constants on it.
    """
    attributes = [_Saved(vars(module)) for module in model.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers() if not buffer.is_meta]
    gpus = {tensor.device for tensor in model.parameters() if tensor.is_cuda}
    with torch.random.fork_rng(sorted(gpus, key=str)), _python_seeds():
        try:
            yield
        finally:
            for saved in attributes:
                saved.restore()
            with torch.no_grad():
                for buffer, values in buffers:
                    buffer.copy_(values)


def seed(number: int) -> None:
    """Let random numbers start from a seed, on the CPU; `untouched` sets them back."""
    numpy = sys.modules.get("numpy")
    torch.default_generator.manual_seed(number)
    random.seed(number)
    if numpy:
        numpy.random.seed(number)


_running = threading.Lock()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """While a model is captured torch behaves otherwise, so there is one capture at a time.

    Raises:
        CaptureError: another one is running, perhaps this model is just being captured.
    """
    if not _running.acquire(blocking=False):
        raise CaptureError("trace", "another capture is running in this process")
    try:
        yield
    finally:
        _running.release()


@contextlib.contextmanager
def _python_seeds() -> Iterator[None]:
    numpy = sys.modules.get("numpy")  # only a model that uses it can change its seed
    states = random.getstate(), numpy.random.get_state() if numpy else None
    try:
        yield
    finally:
        random.setstate(states[0])
        if numpy:
            numpy.random.set_state(states[1])


class _Saved:
    """The attributes of a module, and what is in the dicts that `nn.Module` keeps.

    The dicts stay the same objects: the handle of a hook refers to the one that the hook is in.
    """

    def __init__(self, attributes: dict[str, Any]) -> None:
        kept = [value for name, value in attributes.items() if name.startswith("_") and isinstance(value, dict)]
        self._dicts = [(value, value.copy()) for value in (attributes, *kept)]

    def restore(self) -> None:
        for value, content in self._dicts:
            if len(value) != len(content) or any(value.get(key) is not item for key, item in content.items()):
                value.clear()
                value.update(content)
