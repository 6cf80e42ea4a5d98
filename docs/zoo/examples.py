"""Small models for the handbook: each has one thing that a target or its inputs must be able to say."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Mlp(nn.Sequential):
    """Two linear layers; the sizes are arguments."""

    def __init__(self, inputs: int = 4, hidden: int = 8, outputs: int = 2) -> None:
        super().__init__(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Wrapper(nn.Module):
    """Takes another model as an argument of its constructor."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.inner(x), dim=-1)


class TextClassifier(nn.Module):
    """Takes token ids below 1,000 and, if wanted, a weight for each token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, ids: Tensor, weights: Tensor | None = None) -> Tensor:
        x = self.embedding(ids)
        if weights is not None:
            x = x * weights.unsqueeze(-1)
        return self.head(x.mean(dim=1))


class Batched(nn.Module):
    """Takes a dict and returns one."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Conv2d(3, 4, 3)
        self.text = nn.Linear(8, 4)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        image = self.image(batch["image"]).mean(dim=(2, 3))
        text = self.text(batch["text"])
        return {"image": image, "text": text, "joint": image + text}


class Autoencoder(nn.Module):
    """Has an encoder that is of interest by itself, and a method for it.

    .. fxgraph::
       :inputs: f32[1, 16]
       :caption: An autoencoder, drawn in its docstring
    """

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))
        self.decoder = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 16))

    def encode(self, x: Tensor) -> Tensor:
        """The code of `x`."""
        return self.encoder(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encode(x))


def batch() -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """Inputs that are made by a function: positional and keyword arguments."""
    return (torch.arange(12).reshape(2, 6),), {"weights": torch.ones(2, 6)}
