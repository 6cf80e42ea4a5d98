"""What a model says of itself that it is called with, for ``:inputs: auto``.

Every zoo has its own way. Where a model holds example inputs they are taken, where it only tells a size they are made.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from sphinx_fxgraph.spec.syntax import Arguments, List, Tensor


def told(model: nn.Module, builder: object = None) -> Any:
    """The inputs of a model.

    Args:
        model: the model.
        builder: what was called to make it, if that is known.

    Returns:
        `Arguments` to make them from, or the inputs themselves: one, a tuple, or a dict by keyword. None where the
        model says nothing.
    """
    for ask in (_lightning, _transformers, _timm, _braindecode):
        if (found := ask(model)) is not None:
            return found
    return _torchvision(builder)


def _images(*shape: int) -> Arguments:
    return Arguments((Tensor("f32", (1, *shape)),))


def _lightning(model: Any) -> Any:
    """https://lightning.ai/docs/pytorch/stable/common/lightning_module.html#example-input-array."""
    return getattr(model, "example_input_array", None)


# -- transformers


def _transformers(model: Any) -> Any:
    """``dummy_inputs`` are token ids; for what takes none the configuration tells."""
    config, main = getattr(model, "config", None), getattr(model, "main_input_name", None)
    if config is None or main is None:
        return None
    decodes = getattr(config, "is_encoder_decoder", False)
    if main in _MAIN and (shape := _MAIN[main](_Config(config))) is not None:
        tokens = (("decoder_input_ids", Tensor("i64", (1, 8))),) if decodes else ()
        return Arguments(kwargs=((main, Tensor("f32", (1, *shape))), *tokens))
    inputs = getattr(model, "dummy_inputs", None)
    if not isinstance(inputs, dict):
        return None
    if decodes and "input_ids" in inputs:
        inputs = {"decoder_input_ids": inputs["input_ids"], **inputs}
    if hasattr(model, "logit_scale"):  # it compares texts with images
        inputs = {**inputs, "pixel_values": torch.rand(1, *_pixels(_Config(config)))}
    return inputs


class _Config:
    """A configuration, which may keep what is asked for in one of its parts."""

    def __init__(self, config: Any) -> None:
        parts = [getattr(config, name, None) for name in ("vision_config", "backbone_config", "audio_config")]
        self._configs = [each for each in (config, *parts) if each is not None]

    def get(self, *names: str, default: Any = None) -> Any:
        """The first that is there."""
        found = (getattr(config, name, None) for config in self._configs for name in names)
        return next((value for value in found if value is not None), default)


def _pixels(config: _Config) -> tuple[int, ...]:
    size = config.get("image_size", "input_size", default=224)
    height, width = (size, size) if isinstance(size, int) else tuple(size)[-2:]
    return config.get("num_channels", "in_channels", default=3), height, width


def _features(config: _Config) -> tuple[int, ...] | None:
    """Whisper's: two frames for each position of its encoder."""
    bins, positions = config.get("num_mel_bins"), config.get("max_source_positions")
    return (bins, 2 * positions) if bins and positions else None


_MAIN: dict[str, Callable[[_Config], tuple[int, ...] | None]] = {
    "pixel_values": _pixels,
    "input_features": _features,
    "input_values": lambda _: (16_000,),  # a second of sound
}
"""The shape of one sample of what a model mainly takes."""


# -- timm


def _timm(model: Any) -> Arguments | None:
    """``default_cfg["input_size"]``; a model may have been made for other images, which its first layers know."""
    config = getattr(model, "default_cfg", None)
    if not isinstance(config, dict) or "input_size" not in config:
        return None
    channels, height, width = config["input_size"]
    embedding = getattr(model, "patch_embed", None)
    if isinstance(size := getattr(embedding, "img_size", None), tuple):
        height, width = size
    first = config.get("first_conv")
    path = first[0] if isinstance(first, tuple | list) and first else first
    if isinstance(path, str) and path:
        with contextlib.suppress(AttributeError):  # the layer is called otherwise in this model
            channels = getattr(model.get_submodule(path), "in_channels", channels)
    return _images(channels, height, width)


# -- braindecode


def _braindecode(model: Any) -> Arguments | None:
    """``input_shape``: a batch of one, channels, and times. Elsewhere an attribute of that name may be anything."""
    if not any(cls.__module__.startswith("braindecode.") for cls in type(model).__mro__):
        return None
    shape = getattr(model, "input_shape", None)
    return Arguments((Tensor("f32", tuple(shape)),)) if shape else None


# -- torchvision


def _torchvision(builder: Any) -> Arguments | None:
    """The size that the transforms of a builder's weights crop to, or resize to where they do not crop."""
    api = sys.modules.get("torchvision.models._api")
    module = getattr(builder, "__module__", None) or ""
    if api is None or not module.startswith("torchvision."):
        return None
    try:
        weights = api.get_model_weights(builder).DEFAULT
    except (AttributeError, ValueError):  # no builder, or one without weights
        return None
    options = getattr(weights.transforms, "keywords", {})
    size = options.get("crop_size") or options.get("resize_size")
    kind = getattr(getattr(weights.transforms, "func", weights.transforms), "__name__", "")
    if kind == "ObjectDetection":
        return Arguments((List((Tensor("f32", (3, 800, 800), 0.0, 1.0),)),))  # a list of images of any size
    if kind == "OpticalFlow":
        height, width = weights.meta["min_size"]
        return Arguments((Tensor("f32", (1, 3, height, width)),) * 2)
    if size is None:
        return None
    height, width = (size, size) if isinstance(size, int) else (size[0], size[-1])
    if kind == "VideoClassification":
        return _images(3, weights.meta.get("min_temporal_size", 16), height, width)
    return _images(3, height, width)
