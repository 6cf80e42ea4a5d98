"""What the symbolic tracer makes of models, asserted on their records."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, fx, nn  # noqa: E402 - only where torch is

from sphinx_fxgraph.capture.capture import record_model, record_spec  # noqa: E402
from sphinx_fxgraph.record.arguments import Value  # noqa: E402
from sphinx_fxgraph.record.model import Node, Record  # noqa: E402
from sphinx_fxgraph.render.dot import Operator, flatten_record  # noqa: E402
from sphinx_fxgraph.spec.spec import GraphSpec  # noqa: E402

DOCS = Path(__file__).parents[2] / "docs"
X = torch.ones(2, 4)


@pytest.fixture(autouse=True)
def zoo(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gallery's models can be imported."""
    monkeypatch.syspath_prepend(str(DOCS))


def record(model: nn.Module, *args: Any, **kwargs: Any) -> Record:
    made = record_model(model, args, kwargs, tracer="symbolic")
    assert Record.from_json(made.to_json()) == made
    return made


def operators(made: Record) -> list[Operator]:
    return flatten_record(made)


def paths(made: Record) -> list[str]:
    return [operator.path for operator in flatten_record(made)]


def node(made: Record, path: str) -> Node:
    return next(operator.node for operator in flatten_record(made) if operator.path == path)


def capture(target: str, inputs: str, **options: Any) -> Record:
    return record_spec(GraphSpec.parse(target, inputs, **{"tracer": "symbolic", **options}))


# -- against torch.fx itself


UNET = (
    "monai.networks.nets.UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(16, 32, 64, 128, 256),"
    " strides=(2, 2, 2, 2), num_res_units=2)"
)
SEGRESNET = "monai.networks.nets.SegResNet(spatial_dims=3, in_channels=1, out_channels=2, init_filters=8)"


@pytest.mark.parametrize(
    ("target", "inputs", "count"),
    [
        ("zoo.two_inputs.TwoInputs", "(1, 3, 16, 16), (1, 2, 8, 8)", 14),
        ("zoo.resnet.resnet18", "1, 3, 64, 64", 71),
        ("zoo.mobilenet.mobilenet_v2", "1, 3, 64, 64", 155),
        ("zoo.densenet.densenet121", "1, 3, 64, 64", 433),
        (UNET, "1, 1, 32, 32, 32", 93),
        (SEGRESNET, "1, 1, 32, 32, 32", 103),
    ],
)
def test_the_graph_is_that_of_torch_fx(target: str, inputs: str, count: int) -> None:
    if target.startswith("monai"):
        pytest.importorskip("monai")
    made = capture(target, inputs)
    assert made.failure is None
    graph = fx.symbolic_trace(build(target)).graph

    numbers = {each: number for number, each in enumerate(graph.nodes, 1)}
    expected = [(each.op, sorted(numbers[source] for source in each.all_input_nodes)) for each in graph.nodes]
    found = [(each.node.op, sorted(source.number for source in each.sources)) for each in operators(made)]
    assert found == expected
    assert len(found) == count
    calls = [str(each.target) for each in graph.nodes if each.op == "call_module"]
    assert [each.node.target for each in operators(made) if each.node.op == "call_module"] == calls


def build(target: str) -> nn.Module:
    from sphinx_fxgraph.capture.build import build as build_spec

    return build_spec(GraphSpec.parse(target)).model


def test_the_example_shows_every_shape_and_no_tensor_where_there_is_none() -> None:
    made = capture("zoo.two_inputs.TwoInputs", "(1, 3, 16, 16), (1, 2, 8, 8)")
    assert paths(made) == [
        "x", "y", "main.0", "main.1", "skip", "bias", "add", "clamp", "size", "getitem", "interpolate", "sigmoid",
        "add_1", "output",
    ]  # fmt: skip
    shapes = {each.path: [meta.shape for meta in each.node.outputs] for each in operators(made)}
    assert shapes.pop("size") == shapes.pop("getitem") == []
    assert shapes["bias"] == [(1,)]
    assert shapes["skip"] == shapes["add"] == shapes["clamp"] == [(1, 4, 8, 8)]
    assert shapes["interpolate"] == shapes["output"] == [(1, 4, 16, 16)]
    assert node(made, "size").result == "Size([1, 4, 16, 16])"
    assert node(made, "getitem").result == "Size([16, 16])"
    assert node(made, "main.1").inplace
    assert node(made, "interpolate").kwargs == {"size": Value("getitem"), "mode": "bilinear", "align_corners": False}
    assert node(made, "add").where == "TwoInputs.forward:3"
    assert made.output == "f32[1, 4, 16, 16]"


def test_the_record_is_the_same_in_another_folder_process_and_hash_seed(tmp_path: Path) -> None:
    code = """
import sys
from sphinx_fxgraph.capture.capture import record_spec
from sphinx_fxgraph.spec.spec import GraphSpec
print(record_spec(GraphSpec.parse("zoo.densenet.densenet121", "1, 3, 64, 64", tracer="symbolic")).to_json(), end="")
"""
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(DOCS), "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True, encoding="utf-8"
    )
    here = capture("zoo.densenet.densenet121", "1, 3, 64, 64").to_json()
    assert run.stdout == here
    assert str(DOCS.parent) not in here
    assert " at 0x" not in here


# -- the leaf policy


class Scale(nn.Module):
    """Has no children and code of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor.exp()


class Gate(nn.Module):
    """Has no children and decides by a value."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.tanh()
        return y if y.sum() > 0 else x


class Wide(nn.Linear):
    """Of the model's own, with torch's forward."""


class Around(nn.Module):
    """A module with one child."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.inner(x))
        return out


def test_a_bare_leaf_as_root_is_one_node() -> None:
    made = record(nn.BatchNorm2d(3), torch.ones(1, 3, 4, 4))
    assert [each.node.kind for each in operators(made)] == ["input", "BatchNorm2d", "output"]
    made = record(nn.LSTM(3, 4, 2, batch_first=True), torch.ones(1, 5, 3))
    assert made.output == "(f32[1, 5, 4], (f32[2, 1, 4], f32[2, 1, 4]))"
    made = record(torch.jit.script(nn.Linear(4, 2)), X)
    assert [each.node.kind for each in operators(made)] == ["input", "Linear", "output"]


def test_a_module_without_children_is_opened_where_torch_fx_can_follow_it() -> None:
    assert paths(record(Around(Scale()), X)) == ["x", "inner.factor", "inner.exp", "inner.mul", "head", "output"]
    made = record(Around(Gate()), X)
    assert made.failure is None
    assert paths(made) == ["x", "inner", "head", "output"]
    assert node(made, "inner").outputs[0].shape == (2, 4)


def test_a_class_with_the_forward_of_torch_is_a_leaf_and_says_what_it_is() -> None:
    made = record(Around(Wide(4, 4)), X)
    assert (node(made, "inner").kind, node(made, "inner").base, node(made, "inner").detail) == ("Wide", "Linear", "4→4")
    assert node(made, "head").base == ""


def test_a_scripted_child_is_an_opaque_box_with_shapes() -> None:
    made = record(Around(torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))), X)
    assert node(made, "inner").kind == "Sequential"
    assert node(made, "inner").outputs[0].shape == (2, 4)


@pytest.mark.parametrize("pattern", ["Scale", "*.Scale", "inner", "in*"])
def test_leaf_patterns_name_types_and_paths(pattern: str) -> None:
    made = record_model(Around(Scale()), (X,), {}, spec=GraphSpec(target="t", leaf=(pattern,)), tracer="symbolic")
    assert paths(made) == ["x", "inner", "head", "output"]


# -- inputs and outputs


class Nested(nn.Module):
    def forward(self, xs: list[Tensor], maps: dict[str, Any], *rest: Tensor, k: Tensor, flag: bool = True) -> Any:
        total = sum(x for x in xs) + maps["a"]
        for other in rest:
            total = total + other
        return {"total": total * k, "pair": (k, [total])} if flag else total


def test_nested_inputs_and_outputs_keep_their_structure() -> None:
    made = record(Nested(), [X, X], {"a": X, "b": 3}, X, k=X)
    assert made.failure is None
    assert [each.path for each in operators(made) if each.node.op == "placeholder"] == ["xs", "maps", "rest_0", "k"]
    assert node(made, "xs").result == "[f32[2, 4], f32[2, 4]]"
    assert [meta.path for meta in node(made, "maps").outputs] == ["['a']"]
    assert made.output == "{'total': f32[2, 4], 'pair': (f32[2, 4], [f32[2, 4]])}"
    assert [meta.path for meta in node(made, "output").outputs] == ["['total']", "['pair'][0]", "['pair'][1][0]"]


def test_an_argument_without_tensors_is_taken_as_it_is() -> None:
    made = record(Nested(), [X], {"a": X}, k=X, flag=False)
    assert made.output == "f32[2, 4]"


def test_arguments_that_do_not_fit_the_signature_are_the_fault_of_the_inputs() -> None:
    made = record(Nested(), [X])
    assert made.failure is not None
    assert (made.failure.stage, made.failure.message) == (
        "input",
        "Nested.forward: missing a required argument: 'maps'",
    )
    assert made.modules


# -- hooks and state


def test_the_operators_of_a_hook_on_an_inner_module_stand_in_it() -> None:
    inner = nn.Sequential(nn.Linear(4, 4))
    inner.register_forward_hook(lambda _module, _args, out: out * 2)
    assert paths(record(Around(inner), X)) == ["x", "inner.0", "inner.mul", "head", "output"]


class Keeping(nn.Module):
    """Writes to itself while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout())
        self.register_buffer("calls", torch.zeros(()))
        self.seen: Any = None

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.seen = x
        self.extra = random.random()
        out: Tensor = self.inner(x) + torch.ones(4)
        return out


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_the_model_and_the_random_numbers_are_left_as_they_were(mode: str) -> None:
    model = Keeping().train()
    model.inner.eval()
    handle = model.inner.register_forward_hook(lambda _module, _args, _out: None)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    names, modes = sorted(vars(model)), [module.training for module in model.modules()]
    seeds = torch.get_rng_state(), random.getstate()
    x = X.clone()

    made = record_model(model, (x,), {}, spec=GraphSpec(target="t", mode=mode), tracer="symbolic")

    assert made.failure is None
    assert [each.kind for each in (node(made, "constant"), node(made, "add"))] == ["constant", "add"]
    assert model.seen is None
    assert sorted(vars(model)) == names
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), seeds[0])
    assert random.getstate() == seeds[1]
    assert torch.equal(x, X)
    handle.remove()
    assert not model.inner._forward_hooks


def test_a_lazy_model_stays_lazy() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU())
    made = record(model, X)
    assert made.output == "f32[2, 3]"
    assert made.totals.parameters == 15
    assert type(model[0]) is nn.LazyLinear


# -- failures


def test_what_cannot_be_traced_leaves_the_graph_up_to_there_with_file_and_line() -> None:
    made = capture("zoo.broken.Undecided", "f32[1, 4]")
    assert made.failure is not None
    assert (made.failure.stage, made.failure.type, made.failure.file) == ("trace", "TraceError", "zoo/broken.py")
    source = (DOCS / "zoo" / "broken.py").read_text(encoding="utf-8").splitlines()
    assert source[made.failure.line - 1].strip().startswith("if x.abs().max()")
    assert paths(made) == ["x", "abs", "max", "gt"]
    assert node(made, "gt").outputs[0].dtype == "b8"
    assert [module.path for module in made.modules] == ["", "small", "large"]
    assert made.totals.parameters == 20
    assert [source.file for source in made.sources] == ["zoo/broken.py"]


def test_a_graph_that_breaks_off_inside_a_module_is_kept_nested() -> None:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.lin(x)
            return y if y.sum() > 0 else x

    made = record(Around(Inner()), X)
    assert made.failure is not None
    assert paths(made) == ["x", "inner.lin", "inner.sum", "inner.gt"]
    assert made.output == ""


def test_a_model_that_cannot_be_built_is_a_record_with_its_sources() -> None:
    made = capture("zoo.broken.Unbuildable", "f32[1, 4]")
    assert made.failure is not None
    assert (made.failure.stage, made.failure.file) == ("build", "zoo/broken.py")
    assert "cannot be divided" in made.failure.message
    assert [source.file for source in made.sources] == ["zoo/broken.py"]
    assert made.root == ""
    assert operators(made) == []
