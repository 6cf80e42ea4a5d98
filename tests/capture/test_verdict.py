"""The verdict: whether the picture holds for every input value, or why it is that of one run, with file and line."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, nn  # noqa: E402 - only where torch is

from sphinx_fxgraph.capture.capture import record_model  # noqa: E402
from sphinx_fxgraph.record.model import Node, Record, Verdict  # noqa: E402


def verdict(model: nn.Module, *args: Any) -> Verdict:
    record = captured(model, *args)
    assert record.verdict is not None
    return record.verdict


def captured(model: nn.Module, *args: Any) -> Record:
    record = record_model(model, args or (torch.rand(2, 4),), {})
    assert record.failure is None
    return record


def nodes(record: Record) -> dict[str, Node]:
    return {node.name: node for _, _, node in record.walk()}


def line(model: type, text: str) -> int:
    """Where a text stands in the code of a model."""
    lines, first = inspect.getsourcelines(model)
    return next(number for number, each in enumerate(lines, first) if text in each)


# -- the same graph for every value


class Sizes(nn.Module):
    """Computes with sizes."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.size(0) * 2, -1)


def test_a_traced_graph_that_the_run_agrees_with_shows_what_is_no_tensor() -> None:
    record = captured(Sizes())
    assert record.verdict == Verdict("same")
    assert record.tracer == "symbolic"
    assert {"size", "mul"} <= {*nodes(record)}


class Written(nn.Module):
    """Writes in place in a block without gradients, which torch.fx does not see."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        with torch.no_grad():
            y += 1
        return torch.relu(y)


def test_what_only_the_run_knows_is_marked_in_the_traced_graph() -> None:
    record = captured(Written())
    assert (record.verdict, record.tracer) == (Verdict("same"), "symbolic")
    assert (nodes(record)["add"].inplace, nodes(record)["add"].marks) == (True, ("no_grad",))
    assert nodes(record)["relu"].marks == ()


class FromBuffer(nn.Module):
    """Takes rows of a table by an index that it computes from a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.rand(4, 4))
        self.register_buffer("index", torch.arange(4).reshape(2, 2))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[self.index.view(-1)[:2]]


def test_what_follows_from_a_buffer_leads_back_to_it() -> None:
    record = captured(FromBuffer())
    assert (record.verdict, record.tracer) == (Verdict("same"), "symbolic")
    assert nodes(record)["index"].kind == "buffer"
    assert nodes(record)["view"].inputs[0].node == "index"
    assert "constant" not in nodes(record)


class CountsBuffer(nn.Module):
    """Loops as often as a buffer says, so that its value must be known."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("times", torch.tensor(2))

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(int(self.times)):
            x = x * 2
        return x


def test_a_buffer_whose_value_must_be_known_is_read() -> None:
    record = captured(CountsBuffer())
    assert (record.verdict, record.tracer) == (Verdict("same"), "symbolic")
    assert {"mul", "mul_1"} <= {*nodes(record)}


class Remembers(nn.Module):
    """Keeps what it computes in a buffer, and decides by its values then."""

    def __init__(self) -> None:
        super().__init__()
        self.state: Any
        self.register_buffer("state", torch.zeros(4), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        self.__dict__["last"] = self._buffers["state"] = x * 2
        if self.state.sum() > 100:
            return x
        return x + self.state


def test_a_model_that_keeps_symbols_in_its_state_is_compared_all_the_same() -> None:
    model = Remembers()
    record = captured(model)
    assert record.verdict is not None
    assert record.verdict.kind == "path"
    assert "last" not in vars(model)
    assert torch.equal(model.state, torch.zeros(4))


# -- one path, as run


class Branches(nn.Module):
    """Decides by a value."""

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 100:  # here
            return x
        return x * 2


class TypeAsked(nn.Module):
    """Does something else while it is traced."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        return x.sin() if isinstance(x, torch.Tensor) else x.cos()  # here


class OnlyInRun(nn.Module):
    """Leaves something out while it is traced."""

    def forward(self, x: Tensor) -> Tensor:
        if type(x) is torch.Tensor:
            x = x.exp()  # here
        return x * 2


class OtherValue(nn.Module):
    """Takes another value while it is traced."""

    def forward(self, x: Tensor) -> Tensor:
        y, z = x.sin(), x.cos()
        return y * (z if isinstance(x, torch.Tensor) else y)  # here


class OwnDtype(nn.Module):
    """Computes in another dtype, in a block that torch.fx drops."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.fc(x)  # type: ignore[no-any-return]  # here


class MoreInTrace(nn.Module):
    """Adds something while it is traced."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.sin()
        if type(x) is not torch.Tensor:
            y = y.exp()
        return y * 2  # here


class Copied(nn.Module):
    """Makes a tensor of a size."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.tensor(x.shape[0])  # here


class Counted(nn.Module):
    """Takes a size for a number."""

    def forward(self, x: Tensor) -> Tensor:
        return x * len(range(x.shape[0]))  # here


PATHS = [
    (Copied, "torch.fx: a traced value is copied into a new tensor"),
    (Counted, "torch.fx: a traced value is used as a plain integer"),
    (Branches, "torch.fx: symbolically traced variables cannot be used as inputs to control flow"),
    (TypeAsked, "the run has sin where the traced graph has cos"),
    (OnlyInRun, "the traced graph has no exp"),
    (OtherValue, "mul takes other values in the run than in the traced graph"),
    (OwnDtype, "fc gives bf16[2, 4] in the run and f32[2, 4] in the traced graph"),
    (MoreInTrace, "the traced graph has exp, which the run has not"),
]


@pytest.mark.parametrize(("model", "reason"), PATHS, ids=[model.__name__ for model, _ in PATHS])
def test_the_reason_with_file_and_line(model: type[nn.Module], reason: str) -> None:
    found = verdict(model())
    assert (found.kind, found.reason) == ("path", reason)
    assert Path(found.file).name == Path(__file__).name
    assert found.line == line(model, "# here")


class Hooked(nn.Module):
    """Has a hook on itself, which torch.fx does not call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_forward_hook(lambda _module, _args, out: out.tanh())

    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def test_a_hook_on_the_model_is_missing_in_the_traced_graph_and_not_in_the_picture() -> None:
    record = captured(Hooked())
    assert record.verdict is not None
    assert (record.verdict.kind, record.verdict.reason) == ("path", "the traced graph has no tanh")
    assert record.tracer == "observed"
    assert "tanh" in nodes(record)


def test_a_model_of_torch_has_a_reason_without_a_place_of_its_own() -> None:
    found = verdict(nn.TransformerEncoderLayer(8, 2, batch_first=True), torch.rand(1, 3, 8))
    assert found.kind == "path"
    assert found.reason
    assert found.file == ""


def test_a_verdict_survives_the_record_s_json() -> None:
    record = captured(Branches())
    assert Record.from_json(record.to_json()).verdict == record.verdict


def test_no_verdict_where_a_tracer_is_asked_for() -> None:
    for tracer in ("symbolic", "observed"):
        assert record_model(Sizes(), (torch.rand(2, 4),), {}, tracer=tracer).verdict is None


def test_what_torch_imports_while_a_model_runs_is_no_choice_of_the_model() -> None:
    """The first operators on meta import modules of torch that make random names for themselves."""
    code = """
from sphinx_fxgraph.capture.capture import record_spec
from sphinx_fxgraph.spec.spec import GraphSpec
print(record_spec(GraphSpec.parse("zoo.resnet.resnet18", "1, 3, 64, 64", device="meta")).verdict.kind)
"""
    docs = str(Path(__file__).parents[2] / "docs")
    folders = os.pathsep.join(filter(None, (docs, os.environ.get("PYTHONPATH"))))
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONPATH": folders},
    )
    assert run.stdout.strip() == "same"
