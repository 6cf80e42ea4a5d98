"""The stages of a model as rows, and those of several models side by side."""

from __future__ import annotations

import sys

import pytest
from conftest import DOCS

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.torch

from sphinx_fxgraph import model_record  # noqa: E402 - only where torch is
from sphinx_fxgraph.render.stage_table import (  # noqa: E402
    Stage,
    align_stages,
    stages,
)

sys.path.insert(0, str(DOCS))
from zoo.mobilenet import mobilenet_v2  # noqa: E402
from zoo.resnet import resnet18, resnet50  # noqa: E402

IMAGE = 1, 3, 224, 224


def of(model: nn.Module, *shape: int) -> list[Stage]:
    model = model.to("meta")
    return stages(model_record(model, torch.empty(shape, device="meta")).record)


@pytest.fixture(scope="module")
def resnet() -> list[Stage]:
    return of(resnet18(), *IMAGE)


def test_they_are_the_rows_of_table_1_of_the_resnet_paper(resnet: list[Stage]) -> None:
    assert [(stage.name, stage.made_of, stage.output) for stage in resnet] == [
        ("conv1 … relu", "Conv2d 7×7 s2, BatchNorm2d, ReLU", "1×64×112×112"),
        ("maxpool", "MaxPool2d 3×3 s2", "1×64×56×56"),
        ("layer1", "BasicBlock ×2", "1×64×56×56"),
        ("layer2", "BasicBlock ×2", "1×128×28×28"),
        ("layer3", "BasicBlock ×2", "1×256×14×14"),
        ("layer4", "BasicBlock ×2", "1×512×7×7"),
        ("avgpool", "AdaptiveAvgPool2d →1×1", "1×512×1×1"),
        ("fc", "Linear 512→1000", "1×1000"),
    ]
    assert sum(stage.parameters for stage in resnet) == 11_689_512
    assert sum(stage.macs or 0 for stage in resnet) == 1_814_073_344


def test_a_wrapper_is_looked_into_and_a_list_of_equal_blocks_is_one_row() -> None:
    names = [stage.name for stage in of(mobilenet_v2(), *IMAGE)]
    assert names[:4] == ["features.0", "features.1", "features.2 … 3", "features.4 … 6"]
    blocks = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(5)))
    wrapped = of(nn.Sequential(blocks, nn.Softmax(-1)), 2, 4)
    assert [(stage.name, stage.made_of) for stage in wrapped] == [("0", "Sequential ×5"), ("1", "Softmax dim=-1")]


def test_parameters_outside_of_all_stages_and_of_modules_called_twice_are_counted_once() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))
            self.fc = nn.Linear(3, 3)
            self.act = nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(self.act(self.fc(x)).T) * self.scale

    assert [(stage.name, stage.parameters) for stage in of(Net(), 3, 3)][-1] == ("", 3)
    assert sum(stage.parameters for stage in of(Net(), 3, 3)) == 15


def test_a_model_that_is_one_layer() -> None:
    assert [(stage.made_of, stage.parameters) for stage in of(nn.Linear(4, 2), 1, 4)] == [("Linear 4→2", 10)]


def test_variants_share_the_rows_that_start_at_the_same_module(resnet: list[Stage]) -> None:
    rows = align_stages([resnet, of(resnet50(), *IMAGE)])
    assert [name for name, _ in rows] == [stage.name for stage in resnet]
    layer3 = dict(rows)["layer3"]
    assert [stage.made_of for stage in layer3 if stage] == ["BasicBlock ×2", "Bottleneck ×6"]


def test_a_deeper_variant_and_one_with_a_head_of_its_own() -> None:
    def net(depth: int, *head: nn.Module) -> list[Stage]:
        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.stem = nn.Linear(4, 8)
                self.layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(depth))
                self.head = nn.Sequential(*head)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = self.stem(x)
                for layer in self.layers:
                    x = layer(x)
                return self.head(x) if len(self.head) else x

        return of(Net(), 1, 4)

    rows = align_stages([net(3), net(6, nn.Linear(8, 2))])
    assert [(name, [stage and stage.made_of for stage in found]) for name, found in rows] == [
        ("stem", ["Linear 4→8", "Linear 4→8"]),
        ("layers.0 … 2", ["Sequential ×3", "Sequential ×6"]),
        ("head", [None, "Linear 8→2"]),
    ]
