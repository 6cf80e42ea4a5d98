"""A detector without anchors (after FCOS, Tian, Shen, Chen and He 2019, arXiv:1904.01355), small enough to read."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Stage(nn.Sequential):
    """Half the size."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
        )


class Pyramid(nn.Module):
    """Maps of three sizes, each with what the coarser ones know (Lin et al. 2016, arXiv:1612.03144)."""

    def __init__(self, inputs: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.lateral = nn.ModuleList(nn.Conv2d(channels, width, 1) for channels in inputs)

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        maps = [lateral(each) for lateral, each in zip(self.lateral, maps, strict=True)]
        for level in range(len(maps) - 2, -1, -1):
            maps[level] = maps[level] + functional.interpolate(maps[level + 1], scale_factor=2.0)
        return maps


class Head(nn.Module):
    """For each place of a map: how likely each class is there, and how far the four sides of its box are."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.tower = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(8, width), nn.ReLU())
        self.scores = nn.Conv2d(width, classes, 1)
        self.sides = nn.Conv2d(width, 4, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.tower(x)
        return torch.sigmoid(self.scores(x)).flatten(2), functional.softplus(self.sides(x)).flatten(2)


class Detector(nn.Module):
    """Finds the best boxes of a list of images.

    Takes a list of ``f32[3, H, W]`` of one size, H and W multiples of 16; returns for each image a dict: ``boxes``
    ``f32[most, 4]``, ``scores`` ``f32[most]`` and ``labels`` ``i64[most]``.
    """

    def __init__(self, classes: int = 20, width: int = 64, most: int = 10) -> None:
        super().__init__()
        self.most = most
        self.stem = Stage(3, 16)
        self.stages = nn.ModuleList([Stage(16, 32), Stage(32, 64), Stage(64, 128)])
        self.pyramid = Pyramid((32, 64, 128), width)
        self.head = Head(width, classes)

    def forward(self, images: list[Tensor]) -> list[dict[str, Tensor]]:
        x = self.stem(torch.stack(images))
        maps = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        found = [self.head(each) for each in self.pyramid(maps)]
        scores = torch.cat([scores for scores, _ in found], dim=2)
        sides = torch.cat([sides for _, sides in found], dim=2).transpose(1, 2)
        return [self.best(*each) for each in zip(scores, sides, strict=True)]

    def best(self, scores: Tensor, sides: Tensor) -> dict[str, Tensor]:
        """The most likely boxes of one image, from ``f32[classes, places]`` and ``f32[places, 4]``."""
        likely, labels = scores.max(dim=0)
        top, places = likely.topk(self.most)
        return {"boxes": sides[places], "scores": top, "labels": labels[places]}
