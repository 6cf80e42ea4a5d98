"""Runs of equal siblings drawn once: when they are, and when the drawing would then say less than the truth."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from sphinx_fxgraph import model_record
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.view.labels import span
from sphinx_fxgraph.view.level import Box, Level
from sphinx_fxgraph.view.levels import root_level

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.torch

X = torch.zeros(2, 4)


class Net(nn.Module):
    """A model from its modules and a function that calls them."""

    def __init__(self, forward: Callable[..., object], **modules: nn.Module) -> None:
        super().__init__()
        self.run = forward
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, x: torch.Tensor) -> object:
        return self.run(self, x)


def chained(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
    for layer in self.layers:
        x = layer(x)
    return x


def blocks(count: int, width: int = 4) -> nn.ModuleList:
    return nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(count))


def boxes(level: Level) -> Iterator[Box]:
    for box in level.boxes:
        yield box
        if box.inner:
            yield from boxes(box.inner)


def runs(model: nn.Module, *args: torch.Tensor, fold: str = "auto") -> list[tuple[str, int, str]]:
    """First name, count and weights of every run in the default view."""
    level = root_level(model_record(model, args or X).record, ViewOptions(fold=fold))
    return [(box.node.name, box.run.count, box.run.weights) for box in boxes(level) if box.run]


def test_blocks_in_a_row_are_one_run_with_weights_of_their_own() -> None:
    assert runs(Net(chained, layers=blocks(5))) == [("layers.0", 5, "own")]


def test_two_are_no_run_and_off_folds_nothing() -> None:
    assert runs(Net(chained, layers=blocks(2))) == []
    assert runs(Net(chained, layers=blocks(5)), fold="off") == []


def test_one_block_called_again_and_again_shares_its_weights() -> None:
    block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    assert runs(Net(chained, layers=nn.ModuleList([block] * 4))) == [("layers.0", 4, "same")]


@pytest.mark.parametrize("period", [2, 3, 4])
def test_a_period_of_different_operators_is_one_run(period: int) -> None:
    kinds = (lambda: nn.Linear(4, 4), nn.ReLU, nn.Tanh, nn.Sigmoid)
    layers = nn.ModuleList(kind() for _ in range(3) for kind in kinds[:period])
    assert runs(Net(chained, layers=layers)) == [("layers.0", 3, "own")]


def test_experts_side_by_side_are_one_run_but_three_projections_are_three_things() -> None:
    def mixed(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([layer(x) for layer in self.layers]).sum(0)

    def attention(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.q(x), self.k(x), self.v(x)
        return torch.stack([q, k, v])

    assert runs(Net(mixed, layers=blocks(4))) == [("layers.0", 4, "own")]
    assert runs(Net(attention, q=nn.Linear(4, 4), k=nn.Linear(4, 4), v=nn.Linear(4, 4))) == []


def test_states_that_are_returned_do_not_keep_an_encoder_from_folding() -> None:
    def states(self: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = [x]
        for layer in self.layers:
            found.append(layer(found[-1]))
        return tuple(found)

    assert runs(Net(states, layers=blocks(6))) == [("layers.0", 6, "own")]


def test_what_an_operator_further_on_takes_is_kept_out_of_the_run() -> None:
    def skip(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        found = [x]
        for layer in self.layers:
            found.append(layer(found[-1]))
        return found[-1] + found[3]

    assert [count for _, count, _ in runs(Net(skip, layers=blocks(8)))] == [3, 5]


def test_a_loop_over_time_is_one_run_but_for_a_step_whose_state_nobody_uses() -> None:
    def loop(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        h = c = torch.zeros(2, 8)
        for step in range(100):
            h, c = self.cell(x[:, step], (h, c))
        return h

    assert runs(Net(loop, cell=nn.LSTMCell(4, 8)), torch.zeros(2, 100, 4)) == [("getitem_1", 99, "same")]


def test_the_last_block_folds_too_if_only_its_second_result_is_unused() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.fc(x) + bias, bias

    def pairs(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        bias = x * 2
        for layer in self.layers:
            x, bias = layer(x, bias)
        return x

    assert runs(Net(pairs, layers=nn.ModuleList(Pair() for _ in range(4)))) == [("layers.0", 4, "own")]


def test_other_constants_are_another_thing() -> None:
    def powers(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        for number in range(2, 7):
            x = x * number
        return x

    assert runs(Net(powers)) == []


def test_blocks_of_other_sizes_fold_only_loosely_and_say_from_which_size_to_which() -> None:
    widths = (4, 8, 16, 32)
    layers = nn.ModuleList(nn.Sequential(nn.Linear(one, two), nn.ReLU()) for one, two in itertools.pairwise(widths))
    model = Net(chained, layers=layers)
    assert runs(model) == []
    assert runs(model, fold="loose") == [("layers.0", 3, "own")]
    (box,) = (box for box in boxes(root_level(model_record(model, X).record, ViewOptions(fold="loose"))) if box.run)
    assert [meta.shape for meta in box.tensors] == [(2, "8…32")]


def test_a_run_in_a_model_that_is_cut_into_stretches_keeps_its_count() -> None:
    def long(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        for number in range(250):
            x = x + number
        return chained(self, x)

    record = model_record(Net(long, layers=blocks(5)), X).record
    (kept,) = {box.run.count for box in boxes(root_level(record, ViewOptions(open=("*",)))) if box.run}
    assert kept == 5


def test_equal_layers_of_a_plain_sequential_are_a_run_though_their_names_are_numbers() -> None:
    assert runs(nn.Sequential(*(nn.Linear(4, 4) for _ in range(6)))) == [("0", 6, "own")]


def test_a_run_that_skips_modules_says_which_it_has() -> None:
    def skipping(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        for number in (0, 1, 3, 5):
            x = x + self.layers[number](x)
        return x

    model = Net(skipping, layers=nn.ModuleList(nn.Linear(4, 4) for _ in range(6)))
    level = root_level(model_record(model, X).record, ViewOptions())
    (box,) = (box for box in boxes(level) if box.run)
    assert box.run is not None
    assert span(box.node, box.run) == "layers.0, 1, 3, 5, own weights"
