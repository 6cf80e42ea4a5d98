"""The gallery's models are what they are called: as many parameters as published, and they run."""

from __future__ import annotations

import importlib
import sys

import pytest
from conftest import DOCS

torch = pytest.importorskip("torch")
sys.path.append(str(DOCS))

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("target", "parameters"),
    [
        ("resnet.resnet18", 11_689_512),
        ("resnet.resnet34", 21_797_672),
        ("resnet.resnet50", 25_557_032),
        ("mobilenet.mobilenet_v2", 3_504_872),
        ("densenet.densenet121", 7_978_856),
    ],
)
def test_a_classifier_has_the_published_number_of_parameters(target: str, parameters: int) -> None:
    module, name = target.split(".")
    with torch.device("meta"):
        model = getattr(importlib.import_module(f"zoo.{module}"), name)().eval()
        assert model(torch.rand(1, 3, 224, 224)).shape == (1, 1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_the_u_net_keeps_the_size() -> None:
    from zoo.unet import UNet

    with torch.device("meta"):
        assert UNet(widths=(8, 16, 32))(torch.rand(1, 3, 64, 32)).shape == (1, 2, 64, 32)
