"""The Python API leaves nothing behind: the model and the random numbers are as they were, also after an exception."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator

import torch
from torch import nn


@contextlib.contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Give every module its attributes, mode and hooks back, every buffer its values, torch and Python their seeds.

    A model may write to its attributes in ``forward`` (a cache, a counter), and a tracer stores constants on it.
    """
    attributes = [(module, _state(module)) for module in model.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers() if buffer.device.type != "meta"]
    seeds = random.getstate()
    numpy = sys.modules.get("numpy")  # not ours to import: only a model that uses it can change its seed
    numpy_seeds = numpy.random.get_state() if numpy else None
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(seeds)
        if numpy:
            numpy.random.set_state(numpy_seeds)
        for module, state in attributes:
            module.__dict__.clear()
            module.__dict__.update(state)
        with torch.no_grad():
            for buffer, values in buffers:
                buffer.copy_(values)


def _state(module: nn.Module) -> dict[str, object]:
    """The module's attributes; of the dicts that `nn.Module` keeps, copies."""
    return {
        name: value.copy() if name.startswith("_") and isinstance(value, dict) else value
        for name, value in vars(module).items()
    }
