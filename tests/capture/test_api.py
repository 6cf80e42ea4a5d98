"""The Python face: what a user of the package without Sphinx sees."""

from __future__ import annotations

import doctest
import gc
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, nn  # noqa: E402 - only where torch is

import sphinx_fxgraph  # noqa: E402
from sphinx_fxgraph import ModelRecord, SpecError, api, model_graph, model_record  # noqa: E402
from sphinx_fxgraph.capture.errors import CaptureError  # noqa: E402


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x: Tensor, *, scale: Tensor) -> Tensor:
        out: Tensor = self.layers(x) * scale
        return out


def test_a_record_shows_itself_as_json_table_and_dot() -> None:
    record = model_record(Net(), torch.ones(1, 4), {"scale": torch.ones(2)})
    plain = json.loads(record.to_json())
    assert plain["output"] == "f32[1, 2]"
    assert plain["totals"]["parameters"] == 58

    lines = record.table().splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs", "result"]
    assert len(lines) == 2 + 7
    assert lines[6].split() == ["call_module", "layers.2", "layers.2", "layers.1", "f32[1,", "2]"]
    assert lines[7].split() == ["call_function", "mul", "operator.mul", "layers.2,", "scale", "f32[1,", "2]"]

    assert record.to_dot().source == model_graph(Net(), torch.ones(1, 4), {"scale": torch.ones(2)}).source


def test_a_record_shows_itself_as_a_picture_and_in_a_notebook() -> None:
    record = model_record(Net(), torch.ones(1, 4), {"scale": torch.ones(2)})
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
    assert model_record(Net(), torch.ones(1, 4), {"scale": torch.ones(2)}).record.output == "f32[1, 2]"


def test_an_error_carries_its_cause_its_place_and_what_was_traced() -> None:
    with pytest.raises(CaptureError) as caught:
        model_record(Misfit(), torch.ones(1, 4))
    error = caught.value
    assert (error.stage, error.type, error.node) == ("probe", "RuntimeError", "matmul")
    assert Path(error.file).name == "test_api.py"
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[error.line - 1]
    assert line.strip() == "return x @ torch.ones(3, 2)"
    assert isinstance(error.__cause__, RuntimeError)
    assert "cannot be multiplied" in str(error.__cause__)
    assert [operator.path for operator in error.record.nodes()][:2] == ["x", "lin"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tracer": "fx"}, "tracer: 'fx' is none of auto, symbolic, observed, export, autograd"),
        ({"tracer": "Export"}, "did you mean export?"),
        ({"mode": "evaluate"}, "did you mean eval?"),
        ({"dtype": "float16"}, "did you mean f16?"),
        ({"leafs": "*.Block"}, "unknown option 'leafs'; did you mean leaf?"),
        ({"scale": 2}, "keyword arguments of forward are given as a dict in kwargs"),
        ({"seed": -1}, "seed: '-1' is no whole number"),
        ({"method": "en code"}, "no name of a method"),
    ],
)
def test_a_wrong_option_of_a_capture_suggests_the_right_one(options: dict[str, object], words: str) -> None:
    with pytest.raises(SpecError) as caught:
        model_record(Net(), torch.ones(1, 4), {"scale": torch.ones(2)}, **options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"direction": "lr"}, "did you mean LR?"),
        ({"fold": "bogus"}, "fold: 'bogus' is none of auto, loose, off"),
        ({"dept": 1}, "unknown option 'dept'; did you mean depth?"),
        ({"dims": "1 2"}, "names no dimensions"),
        ({"open": (1,)}, "no pattern"),
    ],
)
def test_a_wrong_option_of_a_picture_suggests_the_right_one(options: dict[str, object], words: str) -> None:
    record = model_record(nn.Linear(4, 2), torch.ones(1, 4))
    for draw in (record.to_svg, record.to_html):
        with pytest.raises(SpecError) as caught:
            draw(**options)
        assert words in str(caught.value)


def test_arguments_are_a_tuple_or_one_tensor() -> None:
    model = nn.Linear(4, 2)
    one, same = model_record(model, torch.ones(1, 4)), model_record(model, (torch.ones(1, 4),))
    assert one.to_json() == same.to_json()
    with pytest.raises(TypeError, match="tuple of the positional arguments"):
        model_record(model, 3)


def test_options_of_a_capture_are_followed() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Sequential(nn.ReLU(), nn.ReLU()))
    kinds = {node.node.kind for node in model_record(model, torch.ones(1, 4), leaf=("2",)).nodes()}
    assert "Sequential" in kinds
    half = model_record(model, torch.ones(1, 4), dtype="bf16")
    assert half.record.output == "bf16[1, 4]"
    assert model[0].weight.dtype == torch.float32
    assert model_record(model, torch.ones(1, 4), tracer="export").record.tracer == "export"
    assert model_record(model, torch.ones(1, 4), tracer="observed", mode="train").record.verdict is None


def test_a_record_is_saved_and_loaded(tmp_path: Path) -> None:
    record = model_record(nn.Linear(4, 2), torch.ones(1, 4))
    for suffix in ("svg", "html", "png", "pdf", "dot", "json"):
        record.save(tmp_path / f"model.{suffix}")
        assert (tmp_path / f"model.{suffix}").stat().st_size
    assert ModelRecord.load(tmp_path / "model.json").to_json() == record.to_json()
    with pytest.raises(ValueError, match=r"ends in none of \.svg"):
        record.save(tmp_path / "model.jpg")
    with pytest.raises(ValueError, match="is no record"):
        ModelRecord.load(tmp_path / "model.svg")


def test_a_record_says_in_short_what_it_is_and_how_it_differs() -> None:
    before, after = (model_record(nn.Sequential(nn.Linear(4, n), nn.ReLU()), torch.ones(1, 4)) for n in (2, 3))
    assert repr(before) == "<ModelRecord Sequential: 4 operators, 10 parameters, 8 MACs>"
    assert (before.parameters, before.macs, before.count_macs("all")) == (10, 8, 8)
    assert before.verdict == "same graph for every input value"
    assert not [*before.diff(before).lines()]
    assert "parameters" in "\n".join(before.diff(after).lines())
    with pytest.raises(ValueError, match="did you mean torchvision"):
        before.count_macs("torchvison")


def test_captures_in_several_threads_wait_for_each_other() -> None:
    with ThreadPoolExecutor(3) as pool:
        records = [*pool.map(lambda width: model_record(nn.Linear(4, width), torch.ones(1, 4)), (1, 2, 3))]
    assert [record.parameters for record in records] == [5, 10, 15]


SCRIPT = """
import torch
from sphinx_fxgraph import CaptureError, model_record

class Net(torch.nn.Module):
    def forward(self, x):
        return x @ torch.ones(3, 2)

try:
    model_record(Net(), torch.ones(1, 4))
except CaptureError as error:
    print(error.file, error.line, *(source.file for source in error.record.record.sources))
"""


def test_a_script_is_called_by_its_own_name(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    run = subprocess.run([sys.executable, script], capture_output=True, check=True, encoding="utf-8")
    assert run.stdout.split() == ["script.py", "7", "script.py"]


class Nested(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        model_record(nn.Linear(4, 2), x)
        return x


def test_a_capture_within_a_capture_is_refused() -> None:
    with pytest.raises(CaptureError, match="cannot capture another one"):
        model_record(Nested(), torch.ones(1, 4))
    assert model_record(nn.Linear(4, 2), torch.ones(1, 4)).parameters == 10


def test_inputs_that_do_not_fit_raise() -> None:
    with pytest.raises(CaptureError, match="missing a required argument: 'scale'"):
        model_record(Net(), torch.ones(1, 4))
    with pytest.raises(CaptureError, match="cannot be multiplied"):
        model_record(Net(), torch.ones(1, 5), {"scale": torch.ones(2)})


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
    model_record(Net(), torch.ones(1, 4), {"scale": torch.ones(1)})
    with pytest.raises(CaptureError):
        model_record(Net(), torch.ones(1, 3), {"scale": torch.ones(1)})
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


class OnTheCpu(nn.Module):
    """Refuses tensors that say that they are on the meta device."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def encode(self, x: Tensor) -> Tensor:
        if x.is_meta:
            raise RuntimeError("not on meta")
        out: Tensor = self.block(x)
        return out


def test_a_model_that_is_tried_with_fake_tensors_is_captured_with_the_same_options() -> None:
    with torch.device("meta"):
        model, x = OnTheCpu(), torch.ones(1, 4)
    record = model_record(model, x, method="encode", leaf=("block",))
    assert [operator.path for operator in record.nodes()] == ["x", "block", "output"]
