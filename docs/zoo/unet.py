"""U-Net (Ronneberger, Fischer and Brox 2015, arXiv:1505.04597), with padding, so that nothing has to be cropped."""

import itertools

import torch
from torch import Tensor, nn


class DoubleConv(nn.Sequential):
    """Two 3×3 convolutions, each with batch normalisation and ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )


class Down(nn.Sequential):
    """Half the size, then twice the channels."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(nn.MaxPool2d(2), DoubleConv(inputs, outputs))


class Up(nn.Module):
    """Twice the size, joined with what the contracting path had at that size."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        self.conv = DoubleConv(2 * outputs, outputs)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        return self.conv(torch.cat([skip, self.up(x)], dim=1))


class UNet(nn.Module):
    """Contracting path, expanding path, and a skip at every size.

    Takes ``f32[N, channels, H, W]`` with H and W multiples of 2 to the number of ``Down`` blocks, returns
    ``f32[N, classes, H, W]``.

    Args:
        channels: of the image.
        classes: of the segmentation.
        widths: channels at each size, from the finest to the coarsest.
    """

    def __init__(
        self, channels: int = 3, classes: int = 2, widths: tuple[int, ...] = (64, 128, 256, 512, 1024)
    ) -> None:
        super().__init__()
        self.stem = DoubleConv(channels, widths[0])
        self.down = nn.ModuleList(Down(fine, coarse) for fine, coarse in itertools.pairwise(widths))
        self.up = nn.ModuleList(Up(coarse, fine) for coarse, fine in itertools.pairwise(reversed(widths)))
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        skips = []
        for down in self.down:
            skips.append(x)
            x = down(x)
        for up in self.up:
            x = up(x, skips.pop())
        return self.head(x)
