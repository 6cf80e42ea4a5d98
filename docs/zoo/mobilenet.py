"""MobileNetV2 (Sandler, Howard, Zhu, Zhmoginov and Chen 2018, arXiv:1801.04381), table 2 of the paper."""

import torch
from torch import Tensor, nn

STAGES = (
    # expansion t, channels c, repeats n, stride s of the first repeat
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class ConvNormActivation(nn.Sequential):
    """A convolution that keeps the size at stride 1, batch normalisation and ReLU6."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU6(inplace=True),
        )


class InvertedResidual(nn.Module):
    """Expand, filter each channel on its own, project without an activation; a shortcut between equal shapes."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.conv = nn.Sequential(
            *([ConvNormActivation(inputs, hidden, 1)] if expansion > 1 else []),
            ConvNormActivation(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(nn.Module):
    """Inverted residuals at width 1.0.

    Takes ``f32[N, 3, H, W]``, returns ``f32[N, classes]``.
    """

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        blocks: list[nn.Module] = [ConvNormActivation(3, 32, 3, stride=2)]
        inputs = 32
        for expansion, outputs, repeats, stride in STAGES:
            for number in range(repeats):
                blocks.append(InvertedResidual(inputs, outputs, stride if number == 0 else 1, expansion))
                inputs = outputs
        blocks.append(ConvNormActivation(inputs, 1280, 1))
        self.features = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.features(x))
        return self.classifier(torch.flatten(x, 1))


def mobilenet_v2(classes: int = 1000) -> MobileNetV2:
    """MobileNetV2 at width 1.0."""
    return MobileNetV2(classes)
