"""The smallest model that has everything: two inputs, a skip, a bare parameter and arithmetic on a size."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class TwoInputs(nn.Module):
    """Adds a resized, clamped side image to a gated main image.

    Takes ``f32[N, 3, H, W]`` and ``f32[N, 2, h, w]``, returns ``f32[N, 4, H, W]``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(inplace=True))
        self.skip = nn.Conv2d(2, 4, 3, padding=1)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = self.main(x)
        y = (self.skip(y) + self.bias).clamp(0, 1)
        y = functional.interpolate(y, x.size()[-2:], mode="bilinear", align_corners=False)
        return torch.sigmoid(x) + y
