"""BERT (Devlin, Chang, Lee and Toutanova 2018, arXiv:1810.04805), the encoder and its pooler, in plain torch."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Embeddings(nn.Module):
    """Words, positions and segments, added and normalised."""

    def __init__(self, vocabulary: int, width: int, longest: int) -> None:
        super().__init__()
        self.word = nn.Embedding(vocabulary, width, padding_idx=0)
        self.position = nn.Embedding(longest, width)
        self.segment = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, ids: Tensor, segments: Tensor) -> Tensor:
        positions = torch.arange(ids.size(1), device=ids.device)
        return self.norm(self.word(ids) + self.position(positions) + self.segment(segments))


class SelfAttention(nn.Module):
    """Every token looks at every token that is allowed."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        """``[N, tokens, width]`` as ``[N, heads, tokens, width / heads]``."""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
        weights = torch.softmax(scores.masked_fill(~allowed, float("-inf")), dim=-1)
        return self.out((weights @ value).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Attention and a feed-forward network, each added to what goes in and normalised after."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
        x = self.attention_norm(x + self.attention(x, allowed))
        return self.norm(x + self.down(functional.gelu(self.up(x))))


class Bert(nn.Module):
    """Encodes token ids; the defaults are those of BERT-base, uncased.

    Takes ``i64[N, tokens]`` ids, segments and a mask that is 1 for what is text. Returns a dict: ``hidden``
    ``f32[N, tokens, width]`` and ``pooled`` ``f32[N, width]``.
    """

    def __init__(
        self, vocabulary: int = 30522, width: int = 768, layers: int = 12, heads: int = 12, longest: int = 512
    ) -> None:
        super().__init__()
        self.embeddings = Embeddings(vocabulary, width, longest)
        self.layers = nn.ModuleList(Layer(width, heads, 4 * width) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor) -> dict[str, Tensor]:
        hidden = self.embeddings(ids, segments)
        allowed = mask[:, None, None, :].bool()
        for layer in self.layers:
            hidden = layer(hidden, allowed)
        return {"hidden": hidden, "pooled": torch.tanh(self.pooler(hidden[:, 0]))}
