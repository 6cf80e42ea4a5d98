"""Densely connected networks (Huang, Liu, van der Maaten and Weinberger 2016, arXiv:1608.06993).

The DenseNet-BC of the paper: bottleneck layers, and transitions that halve the channels.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


class DenseLayer(nn.Module):
    """A bottleneck and a 3×3 convolution on everything that came before in the block."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(inputs, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, features: list[Tensor]) -> Tensor:
        x = self.conv1(self.relu1(self.norm1(torch.cat(features, dim=1))))
        return self.conv2(self.relu2(self.norm2(x)))


class DenseBlock(nn.ModuleDict):
    """Layers that each see the outputs of all layers before them."""

    def __init__(self, inputs: int, depth: int, growth: int) -> None:
        super().__init__(
            {f"denselayer{number + 1}": DenseLayer(inputs + number * growth, growth) for number in range(depth)}
        )

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self.values():
            features.append(layer(features))
        return torch.cat(features, dim=1)


class Transition(nn.Sequential):
    """Half the channels, half the size."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.pool = nn.AvgPool2d(2)


class DenseNet(nn.Module):
    """A stem, dense blocks with transitions between them, and a classifier.

    Takes ``f32[N, 3, H, W]``, returns ``f32[N, classes]``.

    Args:
        depths: layers in each block.
        growth: channels that each layer adds.
        classes: outputs of the classifier.
    """

    def __init__(self, depths: tuple[int, ...], growth: int = 32, classes: int = 1000) -> None:
        super().__init__()
        channels = 2 * growth
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False))
        self.features.add_module("norm0", nn.BatchNorm2d(channels))
        self.features.add_module("relu0", nn.ReLU(inplace=True))
        self.features.add_module("pool0", nn.MaxPool2d(3, stride=2, padding=1))
        for number, depth in enumerate(depths, 1):
            self.features.add_module(f"denseblock{number}", DenseBlock(channels, depth, growth))
            channels += depth * growth
            if number < len(depths):
                self.features.add_module(f"transition{number}", Transition(channels, channels // 2))
                channels //= 2
        self.features.add_module(f"norm{len(depths) + 1}", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.features(x), inplace=True)
        x = functional.adaptive_avg_pool2d(x, 1)
        return self.classifier(torch.flatten(x, 1))


def densenet121(classes: int = 1000) -> DenseNet:
    """DenseNet-121."""
    return DenseNet((6, 12, 24, 16), classes=classes)
