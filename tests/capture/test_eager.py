"""What a run of a model shows beside the models of the battery: names, places, constants, lifetimes, failures."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from conftest import DOCS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, fx, nn  # noqa: E402 - only where torch is

from sphinx_fxgraph.capture.capture import record_model  # noqa: E402
from sphinx_fxgraph.record.model import Node, Record  # noqa: E402
from sphinx_fxgraph.render.dot import flatten_record  # noqa: E402
from sphinx_fxgraph.spec.spec import GraphSpec  # noqa: E402


def observed(model: nn.Module, *args: Any, spec: GraphSpec | None = None, **kwargs: Any) -> Record:
    return record_model(model, args, kwargs, spec=spec, tracer="observed")


def root(record: Record) -> dict[str, Node]:
    return record.bodies[record.root].by_name


def takes(record: Record) -> dict[str, list[str]]:
    """What each operator takes, by path."""
    return {each.path: [source.path for source in each.sources] for each in flatten_record(record)}


# -- inputs


class Matmul(nn.Module):
    """Takes arguments of every kind."""

    def forward(self, a: Tensor, *more: Tensor, b: Tensor, **named: Tensor) -> Any:
        return a @ b, more[0], named["z"]


@pytest.mark.parametrize("tracer", ["auto", "observed", "symbolic"])
def test_keyword_arguments_in_any_order(tracer: str) -> None:
    arguments = {"z": torch.rand(7), "b": torch.rand(2, 5), "c": torch.rand(3)}
    record = record_model(Matmul(), (torch.rand(1, 2), torch.rand(9)), arguments, tracer=tracer)
    assert record.failure is None
    shapes = {name: node.outputs[0].shape for name, node in root(record).items() if node.op == "placeholder"}
    assert shapes == {"a": (1, 2), "more_0": (9,), "b": (2, 5), "z": (7,), "c": (3,)}
    assert record.output == "(f32[1, 5], f32[9], f32[7])"


# -- names and places


class Nested(nn.Module):
    """Has a module of torch.fx's inside, which it calls from a helper."""

    def __init__(self) -> None:
        super().__init__()
        self.traced = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4)))

    def forward(self, x: Tensor) -> Tensor:
        return self._helped(x)

    def _helped(self, x: Tensor) -> Tensor:
        return torch.relu(self.traced(x))


def test_a_graph_module_has_a_class_that_can_be_read() -> None:
    assert root(observed(Nested(), torch.rand(2, 4)))["traced"].type == "torch.fx.graph_module.Sequential"


def test_an_operator_tells_the_function_and_line_that_call_it() -> None:
    record = observed(Nested(), torch.rand(2, 4))
    assert root(record)["relu"].where == "Nested._helped:2"
    assert root(record)["traced"].where == "Nested._helped:2"


class Shared(nn.Module):
    """Calls one module from two others, and once more itself."""

    def __init__(self) -> None:
        super().__init__()
        self.act = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.left, self.right = nn.Sequential(self.act), nn.Sequential(self.act)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.act(self.left(x) + self.right(x))
        return y


def test_a_module_that_is_called_from_several_places_is_each_time_another_call() -> None:
    found = takes(observed(Shared(), torch.rand(2, 4)))
    assert found["add"] == ["left.act.1", "right.act.1"]
    assert [path for path in found if path.endswith(".0")] == ["left.act.0", "right.act.0", "act.0"]


# -- constants

ELSEWHERE = torch.full((4,), 0.625)


class Foreign(nn.Module):
    """Uses a tensor that nobody knows, and one that is made in a comprehension."""

    def forward(self, x: Tensor) -> Tensor:
        return x * ELSEWHERE + torch.tensor([float(number) for number in range(4)])


def test_a_tensor_of_unknown_origin_is_drawn_as_a_constant() -> None:
    record = observed(Foreign(), torch.rand(2, 4))
    constant = root(record)["constant"]
    assert (constant.kind, constant.inputs, constant.outputs[0].shape) == ("constant", (), (4,))
    assert takes(record)["mul"] == ["x", "constant"]
    assert takes(record)["add"] == ["mul", "tensor"]
    assert "0.625" not in record.to_json()


# -- lifetimes


class Temporaries(nn.Module):
    """Makes and forgets so many tensors that their places in memory are used again."""

    def forward(self, x: Tensor) -> Tensor:
        for number in range(60):
            x = x + torch.full((2, 4), float(number))
        return x


def test_a_tensor_in_the_place_of_one_that_is_gone_is_not_taken_for_it() -> None:
    found = takes(observed(Temporaries(), torch.rand(2, 4)))
    names = ["add", *(f"add_{number}" for number in range(1, 60))]
    made = ["full", *(f"full_{number}" for number in range(1, 60))]
    before = ["x", *names[:-1]]
    assert [found[name] for name in names] == [list(pair) for pair in zip(before, made, strict=True)]


class BaseIsGone(nn.Module):
    """Writes into a view of something that it has no name for, and reads it by another view."""

    def forward(self, x: Tensor) -> Tensor:
        rows = list((x * 2).unbind())
        both = rows[0].view(2, 2), rows[0]
        both[0].mul_(3)
        return both[1] + rows[1]


def test_what_is_written_through_one_view_is_read_through_another() -> None:
    found = takes(observed(BaseIsGone(), torch.rand(2, 4)))
    assert found["after_writes"] == ["mul_"]
    assert found["add"][0] == "after_writes"
    assert found["add"][1] != "mul_"  # the other row was not written to


# -- what is asked for


class Two(nn.Module):
    """Has a method beside ``forward``."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def encode(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner(x)
        return y

    def forward(self, x: Tensor) -> Tensor:
        return self.encode(x) * 2


def test_a_method_is_observed_in_place_of_forward() -> None:
    record = observed(Two(), torch.rand(2, 4), spec=GraphSpec(target="", method="encode"))
    assert [name for name in root(record) if name not in ("x", "output")] == ["inner"]


@pytest.mark.parametrize("pattern", ["inner", "Sequential", "*.Sequential"])
def test_a_pattern_closes_modules(pattern: str) -> None:
    record = observed(Two(), torch.rand(2, 4), spec=GraphSpec(target="", leaf=(pattern,)))
    assert root(record)["inner"].body == ""
    assert root(record)["inner"].outputs[0].shape == (2, 4)


# -- failures


class Breaks(nn.Module):
    """Fails in the second of its modules."""

    def __init__(self) -> None:
        super().__init__()
        self.good, self.bad = nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(5, 1))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.bad(self.good(x))
        return y


def test_a_run_that_fails_is_kept_up_to_the_operator_that_did() -> None:
    record = observed(Breaks(), torch.rand(2, 4))
    assert record.failure is not None
    assert (record.failure.stage, record.failure.node) == ("probe", "bad.1")
    assert record.failure.file.endswith("test_eager.py")
    assert list(takes(record)) == ["x", "good", "bad.0", "bad.1"]


class Leaves(nn.Module):
    """Ends the program."""

    def forward(self, x: Tensor) -> Tensor:
        sys.exit(f"no {x.dim()}")


def test_a_model_that_ends_the_program_is_a_failure() -> None:
    record = observed(Leaves(), torch.rand(2, 4))
    assert record.failure is not None
    assert record.failure.type == "SystemExit"
    assert "no 2" in record.failure.message


# -- costs

CAPTURE = """
import sys
from sphinx_fxgraph.capture.capture import record_spec
from sphinx_fxgraph.spec.spec import GraphSpec
record = record_spec(GraphSpec.parse("zoo.two_inputs.TwoInputs", "(1, 3, 16, 16), (1, 2, 8, 8)"))
print(record.verdict.kind, *({"sympy", "torch._dynamo"} & set(sys.modules)))
"""


def test_a_small_model_is_captured_without_the_compiler_of_torch() -> None:
    done = subprocess.run([sys.executable, "-c", CAPTURE], cwd=DOCS, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["same"]
