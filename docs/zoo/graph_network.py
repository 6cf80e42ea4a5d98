"""A graph convolutional network (Kipf and Welling 2016, arXiv:1609.02907), in plain torch."""

import torch
from torch import Tensor, nn


class GraphConv(nn.Module):
    """Each node sums what its neighbours and itself send, divided by the square roots of both degrees."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        nodes = torch.arange(x.size(0), device=x.device)
        source, target = torch.cat([edges, nodes.repeat(2, 1)], dim=1)
        degree = torch.zeros_like(x[:, 0]).index_add_(0, target, torch.ones_like(x[:, 0])[target])
        weight = degree.rsqrt()[source] * degree.rsqrt()[target]
        sent = self.linear(x)[source] * weight[:, None]
        return torch.zeros_like(sent[:1]).repeat(x.size(0), 1).index_add_(0, target, sent) + self.bias


class GraphNetwork(nn.Module):
    """Two graph convolutions: a class for every node.

    Takes ``f32[nodes, inputs]`` and ``i64[2, edges]``, from where to where; returns ``f32[nodes, classes]``.
    """

    def __init__(self, inputs: int = 1433, hidden: int = 16, classes: int = 7) -> None:
        super().__init__()
        self.first = GraphConv(inputs, hidden)
        self.second = GraphConv(hidden, classes)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x, edges)), edges)
