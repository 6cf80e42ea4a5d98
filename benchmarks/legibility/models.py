"""The models that pictures are measured on, and their records."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from attention import T5, Bert, Llama, Swin, VisionTransformer
from convnets import GoogLeNet
from others import Chain, Experts, Flat, GraphNetwork, LSTMLoop
from torch import nn

from sphinx_fxgraph.capture.capture import record_model
from sphinx_fxgraph.record.model import Record

sys.path.append(str(Path(__file__).parents[2] / "docs"))  # the gallery's models

Called = tuple[nn.Module, tuple[torch.Tensor, ...]]


def _image(size: int = 224, channels: int = 3) -> tuple[torch.Tensor]:
    return (torch.empty(1, channels, size, size),)


def _ids(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int64)


def _gallery(name: str, size: int = 224, channels: int = 3) -> Callable[[], Called]:
    def call() -> Called:
        module, _, function = name.partition(".")
        return getattr(__import__(f"zoo.{module}", fromlist=[function]), function)(), _image(size, channels)

    return call


def _monai(name: str, **options: object) -> Callable[[], Called]:
    def call() -> Called:
        from monai.networks import nets

        return getattr(nets, name)(**options), (torch.empty(1, 1, 64, 64, 64),)

    return call


def _llama(layers: int) -> Callable[[], Called]:
    def call() -> Called:
        mask = torch.empty(1, 1, 128, 128, dtype=torch.bfloat16)
        return Llama(layers).to(torch.bfloat16), (_ids(1, 128), _ids(1, 128), mask)

    return call


def _torchvision(name: str, size: int = 224) -> Callable[[], Called]:
    def call() -> Called:
        from torchvision import models

        return getattr(models, name)(weights=None), _image(size)

    return call


def _hugging(model: str, config: str, **options: object) -> Callable[[], Called]:
    def call() -> Called:
        import transformers

        return getattr(transformers, model)(getattr(transformers, config)(**options)), (_ids(1, 128),)

    return call


MODELS: dict[str, Callable[[], Called]] = {
    "ResNet-18": _gallery("resnet.resnet18"),
    "ResNet-50": _gallery("resnet.resnet50"),
    "DenseNet-121": _gallery("densenet.densenet121"),
    "GoogLeNet": lambda: (GoogLeNet(), _image()),
    "UNet": _gallery("unet.UNet", 256),
    "MobileNetV2": _gallery("mobilenet.mobilenet_v2"),
    "UNet 3-D": _monai(
        "UNet",
        spatial_dims=3,
        in_channels=1,
        out_channels=2,
        channels=(16, 32, 64, 128, 256),
        strides=(2, 2, 2, 2),
        num_res_units=2,
    ),
    "SegResNet": _monai("SegResNet", spatial_dims=3, in_channels=1, out_channels=2, init_filters=8),
    "ViT-B/16": lambda: (VisionTransformer(), _image()),
    "Swin-T": lambda: (Swin(), _image()),
    "BERT-base": lambda: (Bert(), (_ids(1, 128), _ids(1, 128), _ids(1, 128))),
    "BERT states": lambda: (Bert(hidden_states=True), (_ids(1, 128), _ids(1, 128), _ids(1, 128))),
    "Llama-32": _llama(32),
    "Llama-80": _llama(80),
    "T5": lambda: (T5(), (_ids(1, 64), _ids(1, 64), _ids(64, 64))),
    "graph network": lambda: (GraphNetwork(), (torch.empty(20, 16), _ids(2, 60))),
    "experts": lambda: (Experts(), (torch.empty(4, 64),)),
    "two inputs": lambda: (_gallery("two_inputs.TwoInputs")()[0], (torch.empty(1, 3, 16, 16), torch.empty(1, 2, 8, 8))),
    "LSTM ×100": lambda: (LSTMLoop(), (torch.empty(2, 100, 8),)),
    "chain 600": lambda: (Chain(), (torch.empty(2, 3),)),
    "flat 3000": lambda: (Flat(), (torch.empty(2, 3),)),
}
"""Plain torch and the gallery's."""

OTHERS: dict[str, Callable[[], Called]] = {
    "transformers BERT": _hugging("BertModel", "BertConfig"),
    "transformers GPT-2": _hugging("GPT2Model", "GPT2Config"),
    "transformers Llama": _hugging("LlamaModel", "LlamaConfig", hidden_size=256, intermediate_size=688),
    "torchvision ViT-B/16": _torchvision("vit_b_16"),
    "torchvision Swin-T": _torchvision("swin_t"),
    "torchvision Faster R-CNN": _torchvision("fasterrcnn_resnet50_fpn"),
}
"""Where their packages are installed; most need the observed tracer."""


def record(name: str, tracer: str = "symbolic") -> Record:
    """The record of one of them, captured on the meta device.

    Raises:
        ImportError: its package is not installed.
        RuntimeError: it could not be captured.
    """
    make = MODELS.get(name) or OTHERS[name]
    with torch.device("meta"):
        model, args = make()
        found = record_model(model.eval(), tuple(arg.to("meta") for arg in args), {}, tracer=tracer)
    if found.failure:
        raise RuntimeError(f"{name}: {found.failure.message}")
    return found
