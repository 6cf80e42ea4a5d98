"""The models. Each one runs on a CPU in milliseconds."""

import torch
from torch import Tensor, nn


class AutoEncoder(nn.Module):
    """Compress a vector to a short code and rebuild the vector from the code.

    Args:
        features: the length of the vector.
        code: the length of the code.
    """

    def __init__(self, features: int = 784, code: int = 16) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, 128), nn.ReLU(), nn.Linear(128, code))
        self.decoder = nn.Sequential(nn.Linear(code, 128), nn.ReLU(), nn.Linear(128, features), nn.Sigmoid())

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the vectors as the code has kept them."""
        return self.decoder(self.encoder(vectors))


class _Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, images: Tensor) -> Tensor:
        inner = self.norm1(self.conv1(images)).relu()
        return (images + self.norm2(self.conv2(inner))).relu()


class ConvNet(nn.Module):
    """Classify images with three stages of residual blocks.

    Args:
        classes: how many classes there are.
        width: the channels of the first stage; each further stage has twice as many.
    """

    def __init__(self, classes: int = 10, width: int = 16) -> None:
        super().__init__()
        stages: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1)]
        for channels in (width, 2 * width, 4 * width):
            stages += [_Residual(channels), _Residual(channels), nn.Conv2d(channels, 2 * channels, 3, 2, 1)]
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(8 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return a score for each class."""
        return self.head(self.stages(images).mean((2, 3)))


class _Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        normed = self.norm1(tokens)
        tokens = tokens + self.attention(normed, normed, normed, need_weights=False)[0]
        return tokens + self.mlp(self.norm2(tokens))


class Encoder(nn.Module):
    """Encode a sequence with four layers of self-attention.

    Args:
        width: the length of a token's vector.
        heads: how many attention heads there are.
    """

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer(width, heads) for _ in range(4))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return a vector for each token."""
        for layer in self.layers:
            tokens = layer(tokens)
        return tokens


class Recurrent(nn.Module):
    """Forecast the next step of a series with two recurrent layers.

    Args:
        channels: the values of a step.
        width: the length of the state.
    """

    def __init__(self, channels: int = 8, width: int = 32) -> None:
        super().__init__()
        self.rnn = nn.GRU(channels, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, channels)

    def forward(self, series: Tensor) -> Tensor:
        """Return the forecast."""
        states, _ = self.rnn(series)
        return self.head(states[:, -1])


def _convs(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU()
    )


class UNet(nn.Module):
    """Segment images: a path down, a path up, and a skip connection at each size.

    Args:
        classes: how many classes a pixel can have.
        width: the channels at full size.
    """

    def __init__(self, classes: int = 2, width: int = 8) -> None:
        super().__init__()
        self.down1, self.down2 = _convs(3, width), _convs(width, 2 * width)
        self.bottom = _convs(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.join2 = _convs(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.join1 = _convs(2 * width, width)
        self.head = nn.Conv2d(width, classes, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, images: Tensor) -> Tensor:
        """Return a score for each class of each pixel."""
        first = self.down1(images)
        second = self.down2(self.pool(first))
        deep = self.up2(self.bottom(self.pool(second)))
        deep = self.up1(self.join2(torch.cat([second, deep], 1)))
        return self.head(self.join1(torch.cat([first, deep], 1)))
