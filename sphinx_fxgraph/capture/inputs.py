"""Bind the arguments of a call to a signature, and read a model's own example inputs for ``:inputs: auto``.

Every zoo has its own way. Where a model holds example inputs they are taken, where it only tells a size they are made.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn

from sphinx_fxgraph.capture import pytree
from sphinx_fxgraph.capture.torch_private import pytree as torch_pytree
from sphinx_fxgraph.capture.trace import leaves
from sphinx_fxgraph.dtypes import DTYPES
from sphinx_fxgraph.spec.syntax import Arguments, List, Tensor


class ArgumentError(TypeError):
    """The inputs do not fit the signature of ``forward``."""


def bind(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    """The arguments by the names of the parameters.

    Raises:
        ArgumentError: they do not fit.
    """
    try:
        return inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{function.__qualname__}: {error}") from None


def arrivals(
    module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], method: str = "forward"
) -> dict[fx.Node, str]:
    """Return the nodes in the arguments of a module call, by the parameter that each arrives by.

    Args:
        module: the module.
        args: the positional arguments.
        kwargs: the keyword arguments.
        method: the method that is called.
    """
    try:
        signature = _signature(getattr(module, method))
        arguments = signature.bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # the call is about to fail, or is one of a function written in C
        return {}
    names: dict[fx.Node, str] = {}
    for name, value in arguments.items():
        loose = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        for key, item in value.items() if loose else [(name, value)]:
            for path, leaf in leaves(item):
                if isinstance(leaf, fx.Node):
                    names.setdefault(leaf, key + path)
    return names


_signatures: weakref.WeakKeyDictionary[Any, inspect.Signature] = weakref.WeakKeyDictionary()


def _signature(method: Callable[..., Any]) -> inspect.Signature:
    """The signature of a method, found once for all objects of its class."""
    function = getattr(method, "__func__", None)
    if function is None:
        return inspect.signature(method)
    if function not in _signatures:
        _signatures[function] = inspect.signature(method)
    return _signatures[function]


def named(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Every argument with the name that it has as an input of the model, in the order of the signature.

    Raises:
        ArgumentError: they do not fit.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one written in C, or in TorchScript
        return [*((f"input_{number}" if number else "input", arg) for number, arg in enumerate(args)), *kwargs.items()]
    bound = bind(function, args, kwargs)
    found: list[tuple[str, Any]] = []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            found += ((f"{name}_{number}", item) for number, item in enumerate(value))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            found += value.items()
        else:
            found.append((name, value))
    return found


def copied(value: Any) -> Any:
    """A copy of an argument, so that a model may write into it, and so that two arguments are never one tensor."""
    if not any(True for _ in pytree.tensors(value)):
        return value
    if isinstance(value, torch.Tensor):
        return value.clone()
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - an object of the model's own that cannot be copied
        return value


def positional(args: Any) -> tuple[Any, ...]:
    """Return positional arguments as a tuple; a single tensor is one argument.

    Raises:
        TypeError: ``args`` is neither a tuple, a list nor a tensor.
    """
    if isinstance(args, torch.Tensor):
        return (args,)
    if isinstance(args, tuple | list):
        return tuple(args)
    name = type(args).__name__
    raise TypeError(f"args: write a tuple of the positional arguments or a single tensor, not one {name}")


def cast_copies(
    dtype: str, model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[nn.Module, Sequence[Any], Mapping[str, Any]]:
    """Return copies of a model and its arguments in another floating dtype.

    Args:
        dtype: torch's abbreviation, ``bf16``.
        model: the model, which is left as it was.
        args: the positional arguments; integers and bools keep their dtype.
        kwargs: the keyword arguments.
    """
    to = getattr(torch, DTYPES[dtype])

    def cast(value: Any) -> Any:
        return value.to(to) if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    args, kwargs = torch_pytree.tree_map(cast, (tuple(args), dict(kwargs)))
    return copy.deepcopy(model).to(to), args, kwargs


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
