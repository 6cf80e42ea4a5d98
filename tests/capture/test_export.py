"""What ``:tracer: export`` shows of models, and what it says where torch.export refuses."""

from __future__ import annotations

import logging
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, nn  # noqa: E402 - only where torch is

from sphinx_fxgraph.capture.capture import record_model, record_spec  # noqa: E402
from sphinx_fxgraph.record.arguments import List  # noqa: E402
from sphinx_fxgraph.record.model import Record  # noqa: E402
from sphinx_fxgraph.render.dot import Operator, flatten_record  # noqa: E402
from sphinx_fxgraph.spec.spec import GraphSpec  # noqa: E402

X = torch.ones(2, 4)


def record(model: nn.Module, *args: Any, **kwargs: Any) -> Record:
    made = record_model(model, args, kwargs, tracer="export")
    assert Record.from_json(made.to_json()) == made
    return made


def by_path(made: Record) -> dict[str, Operator]:
    return {operator.path: operator for operator in flatten_record(made)}


def why(model: nn.Module, *args: Any, **kwargs: Any) -> tuple[str, int]:
    """The message and the line, counted from the ``class`` statement of the model."""
    failure = record(model, *args, **kwargs).failure
    assert failure is not None
    assert failure.stage == "trace"
    first = type(model).forward.__code__.co_firstlineno
    return failure.message, failure.line and failure.line - first + 1


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.act = nn.ReLU(inplace=True)
        self.register_buffer("scale", torch.ones(4), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.linear(x)) * self.scale


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Block(), Block()
        self.shift = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, x: Tensor, *, flag: bool = True, extra: list[Tensor]) -> dict[str, Any]:  # noqa: ARG002 - an option
        h = self.second(self.second(self.first(x)))
        return {"sum": h + self.shift, "rows": x.shape[0], "flat": h.flatten(), "given": extra[0]}


def test_open_dimensions_modules_and_names() -> None:
    made = record(Net(), X, extra=[torch.ones(3)], flag=False)
    assert made.failure is None
    assert made.tracer == "export"
    operators = by_path(made)
    assert list(operators) == [
        "x", "extra_0", "sym_size",
        "first.linear.weight", "first.linear.bias", "first.linear.linear", "first.act.relu_",
        "first.scale", "first.mul",
        "second.linear.weight", "second.linear.bias", "second.linear.linear", "second.act.relu_",
        "second.scale", "second.mul",
        "second@2.linear.weight", "second@2.linear.bias", "second@2.linear.linear", "second@2.act.relu_",
        "second@2.scale", "second@2.mul",
        "shift", "add", "flatten", "output",
    ]  # fmt: skip
    assert operators["x"].node.outputs[0].shape == ("s0", 4)
    assert operators["extra_0"].node.outputs[0].shape == ("s1",)
    linear = operators["second@2.linear.linear"]
    assert (linear.node.kind, linear.node.target) == ("linear", "torch.ops.aten.linear.default")
    assert [source.path for source in linear.sources] == [
        "second.mul",
        "second@2.linear.weight",
        "second@2.linear.bias",
    ]
    assert operators["second@2.linear.weight"].node.target == "second.linear.weight"
    assert [operators[path].node.kind for path in ("first.linear.bias", "first.scale", "shift")] == [
        "parameter",
        "buffer",
        "constant",
    ]
    assert operators["first.act.relu_"].node.inplace
    assert operators["add"].node.where == "Net.forward:3"
    assert operators["first.mul"].node.where == "Block.forward:2"
    assert operators["flatten"].node.outputs[0].shape == ("4*s0",)
    assert made.output == "{'sum': f32[s0, 4], 'rows': s0, 'flat': f32[4*s0], 'given': f32[s1]}"


def test_numbers_are_those_of_the_inputs() -> None:
    made = record(Net(), X, extra=[torch.ones(3)])
    assert made.totals.parameters == 2 * (4 * 4 + 4)
    assert made.totals.macs == 3 * 2 * 4 * 4
    assert made.totals.activation_bytes == (3 * 3 + 2) * X.numel() * 4


def test_equal_calls_share_their_body() -> None:
    made = record(Net(), X, extra=[torch.ones(3)])
    bodies = {node.name: node.body for node in made.bodies[made.root].nodes if node.body}
    assert bodies == {"first": "Block", "second": "Block", "second@2": "Block"}


def test_a_batch_of_one_is_open_too_and_one_size_that_is_needed_is_not() -> None:
    assert record(nn.Linear(4, 3), torch.ones(1, 4)).output == "f32[s0, 3]"
    assert record(nn.Unflatten(0, (2, 3)), torch.ones(6, 4)).output == "f32[2, 3, 4]"


def test_arguments_by_name_where_they_are_options() -> None:
    class Options(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x = nn.functional.conv2d(x, torch.ones(2, 2, 3, 3), stride=2, padding=1)
            return torch.zeros_like(x.mean((2, 3)), dtype=torch.float64, device=x.device)

    operators = by_path(record(Options(), torch.ones(1, 2, 8, 8)))
    conv = operators["conv2d"].node
    assert conv.kwargs == {"stride": List((2, 2)), "padding": List((1, 1))}
    assert operators["mean"].node.detail == "dim=[2, 3]"
    assert operators["zeros_like"].kwargs == "dtype=torch.float64"  # where the capture ran is no option


def test_regions_stand_in_line_and_marked() -> None:
    class Regions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                x = self.linear(x)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.linear(x)
            return x + y

    operators = by_path(record(Regions(), X))
    assert operators["linear.linear"].node.marks == ("no_grad",)
    assert operators["linear@2.linear"].node.marks == ("autocast bf16",)
    assert operators["linear@2.linear"].node.outputs[0].dtype == "bf16"
    assert operators["add"].node.marks == ()
    assert [source.path for source in operators["add"].sources] == ["linear.linear", "linear@2.linear"]


def test_both_sides_of_a_branch_are_drawn_and_assertions_are_left_out() -> None:
    class Branch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))
            return y[y > 0].view(2, -1)

    made = record(Branch(), X)
    assert made.failure is None
    operators = by_path(made)
    assert [source.path for source in operators["cond"].sources] == ["gt", "cond_true.add", "cond_false.sub"]
    assert operators["index"].node.outputs[0].shape == ("u0",)
    assert made.output == "f32[2, u0//2]"
    assert not [path for path in operators if "assert" in path or path.startswith(("ge", "eq"))]


def test_another_method() -> None:
    class Auto(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Linear(4, 2)

        def encode(self, x: Tensor) -> Tensor:
            return self.encoder(x)

    spec = GraphSpec.parse("torch.nn.ReLU", "2, 4", method="encode", leaf="Linear")
    model = Auto()
    made = record_model(model, (X,), {}, spec=spec, tracer="export")
    assert made.output == "f32[s0, 2]"
    assert "forward" not in vars(model)
    assert [node.name for node in made.bodies[made.root].nodes] == ["x", "encoder", "output"]


class Pair(nn.Module):
    """Returns two results."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.first(x)
        return y, self.second(y)


class UsesPair(nn.Module):
    """Uses both results of a module."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.pair(x)
        return a * self.scale + b


def test_a_pattern_closes_a_module_with_all_its_results_and_numbers() -> None:
    model = UsesPair()
    opened = record_model(model, (X,), {}, tracer="export")
    closed = record_model(model, (X,), {}, spec=GraphSpec(target="", leaf=("Pair",)), tracer="export")
    nodes = closed.bodies[closed.root].by_name
    assert nodes["pair"].body == ""
    assert [meta.path for meta in nodes["pair"].outputs] == ["[0]", "[1]"]
    assert "pair.first.weight" not in closed.to_json()
    assert (closed.output, closed.totals.macs) == (opened.output, opened.totals.macs)


class Decides(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x
        return -x


class Counts(nn.Module):
    def forward(self, x: Tensor) -> list[int]:
        y = x + 1
        return list(range(int(y.max())))


class Box:
    def __init__(self, x: Tensor) -> None:
        self.x = x


class Boxes(nn.Module):
    def forward(self, x: Tensor) -> Box:
        return Box(x)


class Unboxes(nn.Module):
    def forward(self, box: Box) -> Tensor:
        return box.x * 2


class Raises(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise ValueError(f"no\ntensors of {len(x.shape)} dimensions")


class Misfits(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, torch.ones(3, 5))


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.jit.script(nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("model", "given", "message", "line"),
    [
        (Decides, X, "torch.export refuses: what runs here depends on the values in a tensor (u0 == 1)", 2),
        (Counts, X, "torch.export refuses: what runs here depends on the values in a tensor (u0)", 3),
        (Boxes, X, f"torch.export refuses: the output holds an object of {__name__}.Box, a type it does not know", 0),
        (
            Unboxes,
            Box(X),
            f"torch.export refuses: the inputs hold an object of {__name__}.Box, a type it does not know",
            0,
        ),
        (Raises, X, "no tensors of 2 dimensions", 2),
        (Misfits, X, "a and b must have same reduction dim, but got [2, 4] X [5, 3].", 2),
        (Scripted, X, "torch.export refuses: 'inner' is TorchScript", 2),
    ],
)
def test_a_refusal_is_one_sentence_with_its_place(model: type, given: Any, message: str, line: int) -> None:
    assert why(model(), given) == (message, line)


def test_arguments_that_do_not_fit() -> None:
    failure = record(Block(), X, X).failure
    assert failure is not None
    assert failure.stage == "input"
    assert "Block.forward: too many positional arguments" in failure.message


def test_nothing_is_printed_or_left_behind(capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder) -> None:
    model = Net()
    before = {name: dict(vars(module)) for name, module in model.named_modules()}
    level = logging.root.manager.disable
    record(model, X, extra=[X])
    record(Decides(), X)
    out = capfd.readouterr()
    assert (out.out, out.err) == ("", "")
    assert [str(warning.message) for warning in recwarn if "deprecated" not in str(warning.message)] == []
    assert {name: dict(vars(module)) for name, module in model.named_modules()} == before
    assert logging.root.manager.disable == level


def test_the_same_bytes_on_meta_and_on_the_cpu() -> None:
    target = "torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)"
    records = [record_spec(GraphSpec.parse(target, "2, 3, 8", tracer="export", device=at)) for at in ("meta", "cpu")]
    first, second = (
        made.to_json().replace(f'"device":"{at}",', "") for made, at in zip(records, ("meta", "cpu"), strict=True)
    )
    assert first == second
    assert records[0].output == "f32[s0, 3, 8]"


class Branches(nn.Module):
    """Chooses between two modules."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda value: self.first(value), lambda value: self.second(value), (x,))


class Mapped(nn.Module):
    """Maps a module over rows."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch._higher_order_ops.map import map as map_rows

        return map_rows(lambda row: self.linear(row), x)


def test_a_second_export_in_a_process_says_the_same_as_the_first() -> None:
    first, second, third = (record_model(Branches(), (torch.ones(3, 4),), {}, tracer="export") for _ in range(3))
    assert first.to_json() == second.to_json() == third.to_json()
    assert first.totals.macs == 2 * 3 * 4 * 4


def test_an_operator_of_control_flow_that_is_not_looked_into_is_not_counted_and_says_so() -> None:
    found = record_model(Mapped(), (torch.ones(3, 4),), {}, tracer="export")
    assert dict(found.totals.uncounted) == {"map_impl": 1}
    assert "not counted: map_impl" in {mark for _, _, node in found.walk() for mark in node.marks}
