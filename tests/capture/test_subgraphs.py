"""Which bodies are found in a model, what they share and what they are called."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, nn  # noqa: E402 - only where torch is
from torch.nn import functional  # noqa: E402

from sphinx_fxgraph.capture.capture import record_model  # noqa: E402
from sphinx_fxgraph.capture.formatting import kind_of  # noqa: E402
from sphinx_fxgraph.record.arguments import Value  # noqa: E402
from sphinx_fxgraph.record.model import Body, Node, Record  # noqa: E402
from sphinx_fxgraph.render.dot import flatten_record  # noqa: E402
from sphinx_fxgraph.render.summary import describe  # noqa: E402
from sphinx_fxgraph.view.annotations import category  # noqa: E402

X = torch.ones(1, 3, 8)


def record(model: nn.Module, *args: Any, **kwargs: Any) -> Record:
    made = record_model(model, args, kwargs)
    assert made.failure is None
    assert Record.from_json(made.to_json()) == made
    return made


def names(body: Body) -> list[str]:
    return [node.name for node in body.nodes]


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.register_buffer("scale", torch.ones(1))

    def forward(self, hidden: Tensor, mask: Tensor | None = None, *, position: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.query(hidden) * self.scale + position
        scores = scores if mask is None else scores + mask
        return scores * self.scale, scores.mean()


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = Norm()
        self.attention = Attention()

    def forward(self, hidden: Tensor, mask: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
        out, weight = self.attention(self.norm(hidden), mask, position=position)
        return functional.relu(hidden + out) + torch.ones(8), weight


class Model(nn.Module):
    """Equal blocks in a list, one input for all of them, a tied embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.layers = nn.ModuleList(Block() for _ in range(3))
        self.norm = Norm()
        self.position = nn.Parameter(torch.ones(8))

    def forward(self, ids: Tensor, mask: Tensor) -> dict[str, Any]:
        x = self.embedding(ids)
        weights = []
        for layer in self.layers:
            x, weight = layer(x, mask, position=self.position)
            weights.append(weight)
        return {"logits": functional.linear(self.norm(x), self.embedding.weight), "weight": weights[0]}


@pytest.fixture(scope="module")
def model() -> Record:
    return record(Model(), torch.ones(1, 3, dtype=torch.int64), torch.ones(3, 1))


def test_equal_blocks_are_one_body_named_by_their_class(model: Record) -> None:
    assert list(model.bodies) == ["Model", "Block", "Norm", "Attention"]
    root = model.bodies[model.root]
    assert [node.body for node in root.nodes if node.name.startswith("layers.")] == ["Block"] * 3
    assert names(root) == [
        "ids", "mask", "embedding", "position", "layers.0", "layers.1", "layers.2", "norm", "embedding.weight",
        "linear", "output",
    ]  # fmt: skip
    assert {module.path: module.body for module in model.modules if module.body} == {
        "": "Model",
        "norm": "Norm",
        **{f"layers.{number}": "Block" for number in range(3)},
        **{f"layers.{number}.norm": "Norm" for number in range(3)},
        **{f"layers.{number}.attention": "Attention" for number in range(3)},
    }


def test_a_body_reads_like_a_function(model: Record) -> None:
    block = model.bodies["Block"]
    assert [entry.name for entry in block.inputs] == ["hidden", "mask", "position"]
    assert [entry.tensors[0].shape for entry in block.inputs] == [(1, 3, 8), (3, 1), (8,)]
    assert names(block) == ["norm", "attention", "add", "relu", "constant", "add_1"]
    attention = block.by_name["attention"]
    assert model.arguments(block, attention) == "norm, mask, position=position"
    assert attention.inputs == (Value("norm"), Value("", 1), Value("", 2))
    assert model.arguments(block, block.by_name["add"]) == "hidden, attention[0]"
    assert block.outputs == (Value("add_1"), Value("attention", 1))
    layer = model.bodies["Model"].by_name["layers.1"]
    assert model.arguments(model.bodies["Model"], layer) == "layers.0[0], mask, position=position"
    assert layer.result == "(f32[1, 3, 8], f32[])"
    assert layer.where == "Model.forward:5"


def test_every_body_that_uses_a_parameter_or_buffer_has_a_node_for_it(model: Record) -> None:
    assert model.bodies["Norm"].by_name["weight"].target == "weight"
    scale = model.bodies["Attention"].by_name["scale"]
    assert (scale.kind, scale.target) == ("buffer", "scale")
    assert names(model.bodies["Attention"]).count("scale") == 1
    tied = model.bodies["Model"].by_name["embedding.weight"]
    assert (tied.kind, tied.outputs[0].shape) == ("parameter", (10, 8))


def test_unrolled_operators_have_unique_paths_and_arguments_in_them(model: Record) -> None:
    operators = flatten_record(model)
    assert len({operator.path for operator in operators}) == len(operators) == model.operators
    found = {operator.path: operator for operator in operators}
    assert found["layers.1.add"].args == "layers.0.add_1, layers.1.attention.mul_1"
    assert found["layers.2.attention.query"].node.target == "layers.2.attention.query"


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(8, 8), Norm())
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.block(x))
        return functional.relu(self.relu(self.block(x)))


def test_a_module_called_twice_is_two_nodes_with_one_body() -> None:
    made = record(Twice(), X)
    root = made.bodies["Twice"]
    assert names(root) == ["x", "block", "relu", "block@2", "relu@2", "relu_1", "output"]
    assert root.by_name["block"].body == root.by_name["block@2"].body == "Sequential"
    assert root.by_name["block@2"].target == "block"
    targets = {operator.path: operator.node.target for operator in flatten_record(made)}
    assert targets["block@2.0"] == "block.0"
    assert targets["block@2.1.weight"] == "block.1.weight"


def test_blocks_of_other_shapes_are_other_bodies() -> None:
    made = record(nn.Sequential(*(nn.Sequential(nn.Linear(size, size + 1)) for size in (8, 9, 10))), X)
    assert list(made.bodies) == ["Sequential", "Sequential.2", "Sequential.3", "Sequential.4"]
    assert made.root == "Sequential"


class Same(nn.Module):
    """Returns what it is given."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Through(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shortcut = nn.Sequential(nn.Sequential(), Same())
        self.conv = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(x) + self.shortcut(x)
        return out


def test_a_call_that_returns_its_input_stays_on_the_way_of_its_users() -> None:
    made = record(Through(), X)
    root = made.bodies["Through"]
    assert names(root) == ["x", "conv", "shortcut", "add", "output"]
    assert root.by_name["add"].inputs == (Value("conv"), Value("shortcut"))
    assert made.bodies["Same"].outputs == (Value("", 0),)
    assert [meta.shape for meta in made.metas(root, Value("shortcut"))] == [(1, 3, 8)]
    assert [operator.path for operator in flatten_record(made)] == ["x", "conv", "add", "output"]


class Growing(nn.Module):
    """Takes a list and returns it with one more."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, xs: list[Tensor]) -> list[Tensor]:
        xs.append(self.lin(xs[-1]))
        return xs


class Lists(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Growing(), Growing()

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat(self.b(self.a([x])))


def test_inputs_in_a_list_are_named_by_their_place() -> None:
    made = record(Lists(), X)
    root = made.bodies["Lists"]
    assert [entry.name for entry in made.bodies["Growing.2"].inputs] == ["xs[0]", "xs[1]"]
    assert made.arguments(root, root.by_name["b"]) == "[a[0], a[1]]"
    assert [operator.args for operator in flatten_record(made) if operator.path == "cat"] == ["[x, a.lin, b.lin]"]


class Leaking(nn.Module):
    """Hands a value on without returning it, and takes one without being given it."""

    def __init__(self) -> None:
        super().__init__()
        self.maker, self.taker = Maker(), Taker()

    def forward(self, x: Tensor) -> Tensor:
        y = self.maker(x)
        self.taker.hint = self.maker.hint
        return self.taker(y) + self.maker.hint


class Maker(nn.Module):
    hint: Tensor

    def forward(self, x: Tensor) -> Tensor:
        self.hint = x.sin()
        return x.cos()


class Taker(nn.Module):
    hint: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return x * self.hint


def test_values_that_go_around_the_arguments_are_inputs_and_outputs_too() -> None:
    made = record(Leaking(), X)
    root = made.bodies["Leaking"]
    assert made.bodies["Maker"].outputs == (Value("cos"), Value("sin"))
    assert [entry.name for entry in made.bodies["Taker"].inputs] == ["x", "input"]
    assert root.by_name["taker"].inputs == (Value("maker", 0), Value("maker", 1))
    assert made.arguments(made.bodies["Taker"], made.bodies["Taker"].by_name["mul"]) == "x, input"
    assert made.arguments(root, root.by_name["add"]) == "taker, maker[1]"


class Elsewhere(nn.Module):
    """A child that belongs to another part of the model."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self._norm = [norm]
        self.lin = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self._norm[0](self.lin(x))
        return out


def test_a_module_that_stands_elsewhere_is_named_from_the_root() -> None:
    shared = nn.LayerNorm(8)

    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tools = nn.ModuleDict({"norm": shared})
            self.block = Elsewhere(shared)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.block(x)
            return out

    made = record(Root(), X)
    node = made.bodies["Elsewhere"].by_name["norm"]
    assert node.target == "/tools.norm"
    assert [operator.node.target for operator in flatten_record(made) if operator.path == "block.norm"] == [
        "tools.norm"
    ]


class Wasteful(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x.sin().cos()
        y = x + 1
        y.mul_(2)
        torch._assert(x.shape[0] == 1, "one")
        return y


def test_operators_that_nothing_uses_are_marked() -> None:
    made = record(Wasteful(), X)
    dead = [node.name for node in made.bodies["Wasteful"].nodes if "dead" in node.marks]
    assert dead == ["sin", "cos"]
    assert made.bodies["Wasteful"].by_name["mul_"].inplace


def test_details_say_what_tells_one_operator_from_another() -> None:
    class Many(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(4, 8, 7, stride=2, padding=3),
                nn.Conv2d(8, 8, 3, groups=4, padding=1),
                nn.ConvTranspose2d(8, 8, (1, 3), stride=(1, 2)),
                nn.MaxPool2d(3, 2),
                nn.AdaptiveAvgPool2d((1, None)),
                nn.Dropout(0.25),
                nn.Upsample(scale_factor=2),
                nn.Flatten(),
            )
            self.embedding = nn.Embedding(9, 4)
            self.conv = nn.Conv1d(4, 4, 3)

        def forward(self, x: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
            out = self.layers(x)
            mixed = torch.cat([out, out], 1).clamp(0, 1).transpose(0, 1)
            return functional.dropout(mixed, 0.5), self.conv(self.embedding(ids).permute(0, 2, 1))[:, 0].softmax(dim=-1)

    made = record(Many(), torch.ones(1, 4, 32, 32), torch.ones(1, 5, dtype=torch.int64))
    found = {operator.path: operator.node.detail for operator in flatten_record(made)}
    assert [found[f"layers.{number}"] for number in range(8)] == [
        "7×7 s2", "3×3 g4", "1×3 s1×2", "3×3 s2", "→1×n", "p=0.25", "×2 nearest", "dim=1",
    ]  # fmt: skip
    assert (found["embedding"], found["conv"]) == ("9→4", "k3")
    assert (found["cat"], found["clamp"], found["transpose"], found["permute"]) == ("dim=1", "0, 1", "0, 1", "0, 2, 1")
    assert (found["dropout"], found["getitem"], found["softmax"]) == ("p=0.5", ":, 0", "dim=-1")


class Differing(nn.Module):
    """Three blocks of the same operators and shapes, of which one drops more, and one adds another number."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Dropping(0.1, 1), Dropping(0.2, 1), Dropping(0.1, 1.0), Dropping(0.1, 1)])

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


class Dropping(nn.Module):
    def __init__(self, share: float, number: float) -> None:
        super().__init__()
        self.drop, self.number = nn.Dropout(share), number

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(x) + self.number


def test_blocks_that_differ_in_a_setting_or_an_argument_are_other_bodies() -> None:
    record = record_model(Differing(), (torch.ones(2, 3),), {}, tracer="observed")
    bodies = [node.body for node in record.bodies[record.root].nodes if node.op == "call_module"]
    assert bodies == ["Dropping", "Dropping.2", "Dropping.3", "Dropping"]
    assert [record.bodies[name].nodes[0].detail for name in bodies[:2]] == ["p=0.1", "p=0.2"]
    nodes = [(record.bodies[name], record.bodies[name].nodes[1]) for name in bodies[:3]]
    assert [record.arguments(*each) for each in nodes] == [
        "drop, 1",
        "drop, 1",
        "drop, 1.0",
    ]


@pytest.mark.parametrize("tracer", ["observed", "export"])
@pytest.mark.parametrize(
    ("call", "detail"),
    [
        (lambda x: x.std(False), "unbiased=False"),
        (lambda x: x.diff(2), "n=2"),
        (lambda x: x.std(1, False), "dim=1"),
        (lambda x: x.max(1)[0], "dim=1"),
        (lambda x: x.chunk(2, 1)[0], "dim=1"),
        (lambda x: x.topk(2)[0], "k=2"),
        (lambda x: torch.cat([x, x], 1), "dim=1"),
        (lambda x: x.flatten(1), "dim=1"),
        (lambda x: x.unsqueeze(0), "dim=0"),
    ],
)
def test_a_label_names_arguments_as_the_schema_of_the_operator_does(call: Any, detail: str, tracer: str) -> None:
    class Called(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return call(x)

    record = record_model(Called(), (torch.ones(4, 4),), {}, tracer=tracer)
    assert record.bodies[record.root].nodes[1].detail.replace("[1]", "1") == detail


def test_the_norm_of_a_degree_has_no_dimension() -> None:
    class Norm(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.norm(2)

    record = record_model(Norm(), (torch.ones(4, 4),), {})
    assert record.bodies[record.root].by_name["norm"].detail == "p=2"


def test_a_label_that_cannot_be_made_does_not_hide_the_error_of_the_model() -> None:
    failure = record_model(nn.Upsample(), (torch.ones(1, 1, 2, 2),), {}).failure
    assert failure is not None
    assert failure.message == "either size or scale_factor should be defined"


def test_every_in_place_method_and_python_operator_has_a_category() -> None:
    methods = [name for name in dir(torch.Tensor) if name.endswith("_") and name[0] != "_" and name[-2] != "_"]
    operators = ["and_", "or_", "xor", "invert", "iand", "ior", "ixor", "lshift", "rshift", "setitem", "imod", "ipow"]
    kinds = {name: kind_of(name) for name in (*methods, *operators)}
    found = {name: category(Node(kind, "call_method", name, kind)) for name, kind in kinds.items()}
    assert [name for name, of in found.items() if of == "other"] == []
    assert found["relu_"] == "act"
    assert found["and_"] == found["__iand__".strip("_")] == "math"


def test_a_parametrized_convolution_is_a_convolution_with_a_remark() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 8, 3))
            self.b = nn.Conv1d(8, 8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x))

    record = record_model(Net(), (torch.ones(1, 8, 16),), {})
    a, b = record.bodies[record.root].nodes[1:3]
    assert (a.kind, a.type, a.detail, category(a)) == (b.kind, b.type, b.detail, "matmul")
    assert (a.marks, b.marks) == (("weight by WeightNorm",), ())
    assert "2 convolutions" in describe(record)


def test_arguments_are_data_where_names_are_numbers_or_keywords() -> None:
    class Numbers(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.clamp(1 - self[1](self[0](x)), min=0, max=1)

    record = record_model(Numbers(nn.Linear(4, 4), nn.Linear(4, 4)), (torch.ones(1, 4),), {})
    body = record.bodies[record.root]
    (difference,) = (node for node in body.nodes if Value("1") in node.inputs)
    assert difference.args in ((1, Value("1")), (Value("1"), 1))  # torch.sub or Tensor.__rsub__
    assert dict(body.by_name["clamp"].kwargs) == {"min": 0, "max": 1}
    assert [operator.kwargs for operator in flatten_record(record) if operator.node.kind == "clamp"] == ["min=0, max=1"]
