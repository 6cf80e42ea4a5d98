"""What is neither: a graph network, loops, long chains, and large flat modules."""

import random

import torch
from torch import Tensor, nn


class GraphConv(nn.Module):
    """Messages along edges, summed at their targets (Kipf and Welling 2016, arXiv:1609.02907)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.lin = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor, edge_index: Tensor, norm: Tensor) -> Tensor:
        x = self.lin(x)
        messages = x.index_select(0, edge_index[0]) * norm.view(-1, 1)
        return torch.zeros_like(x).index_add(0, edge_index[1], messages) + self.bias


class GraphNetwork(nn.Module):
    """Three rounds of messages, then the mean over all nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(GraphConv(16 if number == 0 else 64, 64) for number in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(4))
        self.head = nn.Linear(64, 7)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        degree = torch.zeros_like(x[:, 0]).index_add(0, edge_index[1], torch.ones_like(edge_index[1], dtype=x.dtype))
        root = degree.clamp(min=1).rsqrt()
        norm = root.index_select(0, edge_index[0]) * root.index_select(0, edge_index[1])
        for number, (conv, layer_norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            found = torch.relu(layer_norm(conv(x, edge_index, norm)))
            x = found if number == 0 else x + found
        return self.head(x.mean(0))


class LSTMLoop(nn.Module):
    """One cell, step by step."""

    def __init__(self, steps: int = 100) -> None:
        super().__init__()
        self.steps = steps
        self.cell = nn.LSTMCell(8, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(2, 16, device=x.device)
        c = torch.zeros(2, 16, device=x.device)
        for step in range(self.steps):
            h, c = self.cell(x[:, step], (h, c))
        return self.head(h)


class Experts(nn.Module):
    """Eight experts side by side and a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(64, 8)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(8))

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.softmax(self.gate(x), dim=-1)
        found = torch.stack([expert(x) for expert in self.experts], dim=-1)
        return (found * weights.unsqueeze(-2)).sum(-1)


class Chain(nn.Module):
    """Operators one after another."""

    def __init__(self, count: int = 600) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: Tensor) -> Tensor:
        for number in range(self.count):
            x = torch.relu(x) if number % 2 else x + 1
        return x


class Flat(nn.Module):
    """Operators without order or modules: a random graph in which each one takes one or two of the last few."""

    def __init__(self, count: int = 3000) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: Tensor) -> Tensor:
        chance = random.Random(0)  # noqa: S311 - not for secrets
        functions = [torch.relu, torch.sin, torch.tanh, torch.exp, torch.sigmoid, torch.cos, torch.abs]
        values = [x]
        while len(values) < self.count:
            last = values[-1]
            if chance.random() < 0.6:
                values.append(chance.choice(functions)(values[-chance.randint(1, min(3, len(values)))]))
            else:
                values.append(last + values[-chance.randint(1, min(5, len(values)))])
        return values[-1]
