"""Models that do not work, for the page that shows what a failure looks like."""

from torch import Tensor, nn


class Misfit(nn.Module):
    """Its two layers do not fit: the first gives 8 features, the second takes 16."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(x))


class Undecided(nn.Module):
    """Which branch it takes depends on the values of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.small = nn.Linear(4, 2)
        self.large = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        if x.abs().max() > 1:
            return self.large(x)
        return self.small(x)


class Unbuildable(nn.Module):
    """Asks for more heads than the width can be divided into."""

    def __init__(self, width: int = 10, heads: int = 3) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"a width of {width} cannot be divided into {heads} heads")
        self.attention = nn.MultiheadAttention(width, heads)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.attention(x, x, x)[0]
        return out
