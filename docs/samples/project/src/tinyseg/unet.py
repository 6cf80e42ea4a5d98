"""A U-Net of two levels."""

import torch
from torch import nn


class UNet(nn.Module):
    """Down, up, and what was before beside it."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, width, 3, padding=1)
        self.deep = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(width, width, 3, padding=1), nn.Upsample(scale_factor=2))
        self.head = nn.Conv2d(2 * width, 1, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        high = self.down(image)
        return self.head(torch.cat([high, self.deep(high)], dim=1))
