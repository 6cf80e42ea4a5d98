"""A network that decides by its values what runs (early exit, as in Teerapittayanon et al. 2016, arXiv:1709.01686)."""

import torch
from torch import Tensor, nn


class EarlyExit(nn.Module):
    """Classifies after the first block, and goes on to the second only where the first is not sure.

    Takes ``f32[1, 3, H, W]``, returns ``f32[1, classes]``.
    """

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.exit = nn.Linear(16, classes)
        self.second = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(32, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        early = self.exit(x.mean((2, 3)))
        if torch.softmax(early, 1).max() > 0.9:
            return early
        return self.head(self.second(x).mean((2, 3)))
