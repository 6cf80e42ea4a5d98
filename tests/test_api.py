"""The Python face: what a user of the package without Sphinx sees."""

from __future__ import annotations

import doctest
import gc
import json
import xml.etree.ElementTree as ET

import pytest
from bs4 import BeautifulSoup

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, nn  # noqa: E402 - only where torch is

import sphinx_fxgraph  # noqa: E402
from sphinx_fxgraph import api, model_graph, model_record  # noqa: E402
from sphinx_fxgraph.capture.errors import CaptureError  # noqa: E402


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x: Tensor, *, scale: Tensor) -> Tensor:
        out: Tensor = self.layers(x) * scale
        return out


def test_a_record_shows_itself_as_json_table_and_dot() -> None:
    record = model_record(Net(), torch.ones(1, 4), scale=torch.ones(2))
    plain = json.loads(record.to_json())
    assert plain["output"] == "f32[1, 2]"
    assert plain["totals"]["parameters"] == 58

    lines = record.table().splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs", "result"]
    assert len(lines) == 2 + 7
    assert lines[6].split() == ["call_module", "layers.2", "layers.2", "layers.1", "f32[1,", "2]"]
    assert lines[7].split() == ["call_function", "mul", "operator.mul", "layers.2,", "scale", "f32[1,", "2]"]

    assert record.to_dot().source == model_graph(Net(), torch.ones(1, 4), scale=torch.ones(2)).source


def test_a_record_shows_itself_as_a_picture_and_in_a_notebook() -> None:
    record = model_record(Net(), torch.ones(1, 4), scale=torch.ones(2))
    assert ET.fromstring(record.to_svg()).tag == "{http://www.w3.org/2000/svg}svg"
    page = BeautifulSoup(record.to_html(depth=0), "lxml")
    assert [box["data-path"] for box in page.select(".fxg-closed")] == ["layers"]
    (frame,) = BeautifulSoup(record._repr_html_(), "lxml").select("body > *")
    assert frame["title"] == "Net"
    assert BeautifulSoup(frame["srcdoc"], "lxml").select("svg .fxg-op")


def test_a_model_in_training_mode_is_shown_as_it_evaluates_and_stays_in_training() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout()).train()
    record = model_record(model, torch.ones(1, 4))  # a batch of one: BatchNorm refuses it in training
    assert record.record.output == "f32[1, 4]"
    assert all(module.training for module in model.modules())


class Misfit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.lin(x)
        return x @ torch.ones(3, 2)


def test_what_cannot_be_run_raises_and_says_where() -> None:
    with pytest.raises(CaptureError, match=r"cannot be multiplied .*\(.*test_api\.py:\d+\)") as caught:
        model_graph(Misfit(), torch.ones(1, 4))
    assert caught.value.stage == "probe"
    assert isinstance(torch.tensor([1.0]), Tensor)  # nothing of torch stays patched
    assert model_record(Net(), torch.ones(1, 4), scale=torch.ones(2)).record.output == "f32[1, 2]"


def test_inputs_that_do_not_fit_raise() -> None:
    with pytest.raises(CaptureError, match="missing a required argument: 'scale'"):
        model_record(Net(), torch.ones(1, 4))
    with pytest.raises(CaptureError, match="cannot be multiplied"):
        model_record(Net(), torch.ones(1, 5), scale=torch.ones(2))


def test_the_package_hands_the_names_on() -> None:
    assert sphinx_fxgraph.model_graph is api.model_graph
    assert all(getattr(sphinx_fxgraph, name) for name in sphinx_fxgraph.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = sphinx_fxgraph.no_such_name


def test_the_examples_in_the_docstrings_are_right() -> None:
    assert doctest.testmod(api).failed == 0
    assert doctest.testmod(api).attempted


def test_the_garbage_collector_is_left_as_it_was() -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    model_record(Net(), torch.ones(1, 4), scale=torch.ones(1))
    with pytest.raises(CaptureError):
        model_record(Net(), torch.ones(1, 3), scale=torch.ones(1))
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
