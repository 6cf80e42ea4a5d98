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


def test_bert_is_as_large_as_published() -> None:
    from zoo.bert import Bert

    ids = torch.zeros(1, 8, dtype=torch.int64, device="meta")
    with torch.device("meta"):
        model = Bert().eval()
        result = model(ids, ids, ids)
    assert {key: value.shape for key, value in result.items()} == {"hidden": (1, 8, 768), "pooled": (1, 768)}
    assert sum(parameter.numel() for parameter in model.parameters()) == 109_482_240  # of bert-base-uncased


def test_a_graph_convolution_is_the_product_with_the_normalised_adjacency() -> None:
    from zoo.graph_network import GraphConv

    torch.manual_seed(0)
    conv, x, edges = GraphConv(3, 2), torch.rand(4, 3), torch.tensor([[0, 1, 2, 2], [1, 2, 3, 0]])
    adjacency = torch.eye(4)
    adjacency[edges[1], edges[0]] = 1.0
    scale = adjacency.sum(dim=1).rsqrt().diag()
    torch.testing.assert_close(conv(x, edges), scale @ adjacency @ scale @ conv.linear(x) + conv.bias)


def test_the_early_exit_is_taken_by_a_network_that_is_sure() -> None:
    from zoo.branch import EarlyExit

    model, image = EarlyExit().eval(), torch.rand(1, 3, 8, 8)
    later: list[object] = []
    model.second.register_forward_hook(lambda *_: later.append(1))
    model(image)
    assert later
    later.clear()
    torch.nn.init.constant_(model.exit.weight, 0.0)
    model.exit.bias.data[3] = 50.0
    assert model(image).argmax() == 3
    assert not later


def test_the_detector_gives_the_best_boxes_of_each_image() -> None:
    from zoo.detector import Detector

    found = Detector(most=5).eval()([torch.rand(3, 64, 64)] * 2)
    assert [each["boxes"].shape for each in found] == [(5, 4), (5, 4)]
    assert all((each["scores"].diff() <= 0).all() for each in found)
