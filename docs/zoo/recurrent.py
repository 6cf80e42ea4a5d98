"""A recurrent network that is written as a loop over time."""

import torch
from torch import Tensor, nn


class Recurrent(nn.Module):
    """One LSTM cell, called for each step of a sequence; the last state is classified.

    Takes ``f32[N, steps, inputs]``, returns ``f32[N, classes]``.
    """

    def __init__(self, inputs: int = 8, hidden: int = 16, classes: int = 3) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(inputs, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        hidden = cell = torch.zeros(x.size(0), self.cell.hidden_size, device=x.device)
        for step in range(x.size(1)):
            hidden, cell = self.cell(x[:, step], (hidden, cell))
        return self.head(hidden)
