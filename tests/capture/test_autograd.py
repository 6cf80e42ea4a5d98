"""The backward graph: of what a training loop hands over, and of a model on a page."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from conftest import needs

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, nn  # noqa: E402 - only where torch is
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from sphinx_fxgraph import autograd_graph  # noqa: E402
from sphinx_fxgraph.capture.capture import record_model, record_spec  # noqa: E402
from sphinx_fxgraph.record.model import Record  # noqa: E402
from sphinx_fxgraph.render.dot import Operator, flatten_record  # noqa: E402
from sphinx_fxgraph.spec.spec import GraphSpec  # noqa: E402

X = torch.ones(2, 4)

reads_saved_tensors = pytest.mark.skipif(
    not hasattr(torch._C._autograd.SavedTensor, "data"), reason="this torch gives a saved tensor only to its hooks"
)


class Block(nn.Module):
    """A residual block whose activation is a function."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(functional.relu(self.first(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.blocks(x)))


def functions(*outputs: Tensor) -> Counter[str]:
    """The names of all backward functions, by torch's own references; what accumulates gradients apart."""
    seen: set[Any] = set()
    ahead = [output.grad_fn for output in outputs]
    while ahead:
        function = ahead.pop()
        if function is not None and function not in seen:
            seen.add(function)
            ahead += [source for source, _ in function.next_functions]
    return Counter(type(function).__name__ for function in seen if not hasattr(function, "variable"))


# -- what a training loop hands over


@dataclass
class Box:
    title: str
    rows: list[str]
    frame: str


class Picture:
    """What stands in the text of a graph."""

    def __init__(self, source: str) -> None:
        self.boxes: dict[str, Box] = {}
        self.edges: list[tuple[str, str, str]] = []
        frames: list[str] = []
        for line in map(str.strip, source.splitlines()):
            if line.startswith("subgraph"):
                frames.append("")
            elif line == "}" and frames:
                frames.pop()
            elif found := re.search(r"label=<<B>(.*?)</B>>", line):
                frames[-1] = found[1]
            elif found := re.match(r"(n\d+) \[label=<(.*)>\]$", line):
                cells = [unescape(re.sub(r"<.*?>", "", cell)) for cell in re.findall(r"<TD.*?>(.*?)</TD>", found[2])]
                self.boxes[found[1]] = Box(cells[0], cells[1:], ".".join(frames))
            elif found := re.match(r"(n\d+) -> (n\d+)(.*)$", line):
                kind = "saved" if "dashed" in found[3] else "view" if "dotted" in found[3] else ""
                self.edges.append((found[1], found[2], kind))

    def box(self, title: str) -> Box:
        (box,) = (box for box in self.boxes.values() if box.title == title)
        return box

    def titles(self) -> Counter[str]:
        return Counter(box.title for box in self.boxes.values())

    def lines(self, kind: str = "") -> Counter[tuple[str, str]]:
        named = ((self.boxes[a].title, self.boxes[b].title) for a, b, k in self.edges if k == kind)
        return Counter(named)


def picture(output: Any, model: nn.Module | None = None, **options: Any) -> Picture:
    return Picture(autograd_graph(output, dict(model.named_parameters()) if model else None, **options).source)


def test_parameters_functions_and_output() -> None:
    model = Net()
    loss = model(X).square().mean()
    seen = picture(loss, model)
    names = dict(model.named_parameters())
    assert seen.titles() == functions(loss) + Counter([*names, "output"])
    assert seen.box("head.weight").rows == ["f32[3, 4]", "AccumulateGrad"]
    assert seen.box("TanhBackward0").rows == ["f32[2, 4]"]
    assert seen.box("output").rows == ["scalar f32"]
    assert seen.lines()["MeanBackward0", "output"] == 1
    assert seen.lines()["head.bias", "AddmmBackward0"] == 1
    assert all(re.fullmatch(r"n\d+", name) for name in seen.boxes)


def test_frames_come_from_the_names_of_parameters() -> None:
    model = Net()
    seen = picture(model(X).sum(), model)
    frames = {(box.title, box.frame) for box in seen.boxes.values()}
    assert ("blocks.1.first.weight", "blocks.1.first") in frames
    assert ("AddmmBackward0", "blocks.0.first") in frames
    assert ("TBackward0", "blocks.1.second") in frames  # a weight transposed
    assert ("ReluBackward0", "blocks.0") in frames  # between the block's two layers
    assert ("AddBackward0", "blocks") in frames  # between two blocks: no name tells which one it stands in
    assert ("TanhBackward0", "") in frames
    assert ("SumBackward0", "") in frames
    assert {box.frame for box in picture(model(X)).boxes.values()} == {""}


@dataclass
class Output:
    loss: Tensor
    hidden: dict[str, list[Tensor]]
    note: str = "no tensor"


@pytest.mark.parametrize(
    ("wrap", "titles"),
    [
        (lambda a, b: a, ["output"]),
        (lambda a, b: (a, b), ["output[0]", "output[1]"]),
        (lambda a, b: {"loss": a, "of": [b]}, ["output['loss']", "output['of'][0]"]),
        (lambda a, b: Output(a, {"h": [b]}), ["output.hidden['h'][0]", "output.loss"]),
    ],
)
def test_what_holds_tensors(wrap: Callable[[Tensor, Tensor], Any], titles: list[str]) -> None:
    model = nn.Linear(4, 3)
    hidden = model(X)
    seen = picture(wrap(hidden.sum(), hidden), model)
    assert sorted(title for title in seen.titles() if title.startswith("output")) == titles


def test_what_has_no_graph() -> None:
    with pytest.raises(TypeError, match="there is no tensor in the output, which is of type dict"):
        autograd_graph({"loss": 3.0})
    weight = nn.Parameter(torch.ones(2))
    seen = picture({"scores": torch.ones(2), "weight": weight})
    assert seen.box("output['scores']").rows == ["f32[2]", "requires no gradient"]
    assert seen.box("output['weight']").rows == ["f32[2]", "a leaf"]


def test_the_base_of_a_view() -> None:
    model = nn.Linear(4, 3)
    hidden = model(X)
    seen = picture((hidden[0], hidden.t()), model)
    assert seen.lines("view") == {("base", "output[0]"): 1, ("base", "output[1]"): 1}
    assert seen.lines()["AddmmBackward0", "base"] == 1
    weight = picture(model.weight.t(), model)
    assert weight.lines("view") == {("weight", "output"): 1}


def test_attributes_on_request() -> None:
    model = nn.Linear(4, 3)
    output = model(X).softmax(-1)[:, 1:]
    assert picture(output, model).box("SoftmaxBackward0").rows == ["f32[2, 3]"]
    rows = picture(output, model, show_attrs=True).box("SoftmaxBackward0").rows
    assert dict(zip(rows[1::2], rows[2::2], strict=True)) == {"dim": "-1", "result": "[saved tensor]"}
    short = picture(output, model, show_attrs=True, max_attr_chars=6).box("SoftmaxBackward0").rows
    assert short[short.index("result") + 1] == "[save…"
    assert "0x" not in autograd_graph(output, show_attrs=True, show_saved=True).source


@reads_saved_tensors
def test_saved_tensors_on_request() -> None:
    model = nn.Conv1d(2, 3, 1)
    output = model(torch.ones(1, 2, 5)).exp()
    assert not picture(output, model).lines("saved")
    assert picture(output, model, show_saved=True).lines("saved") == {
        ("input", "ConvolutionBackward0"): 1,
        ("weight = weight", "ConvolutionBackward0"): 1,
        ("result", "ExpBackward0"): 1,
    }
    output.sum().backward()
    seen = picture(output, model, show_saved=True, show_attrs=True)
    assert seen.box("result").rows == ["freed by backward"]


@reads_saved_tensors
def test_no_hook_of_saved_tensors_is_run() -> None:
    model = nn.Linear(4, 4)

    def unpack(_: Any) -> Tensor:
        raise AssertionError("unpacked")

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: 0, unpack):
        output = model(X).exp()
    assert picture(output, model, show_saved=True, show_attrs=True).box("result").rows == ["packed by a hook"]

    output = checkpoint(lambda x: model(x).exp(), X, use_reentrant=False)
    autograd_graph(output, show_saved=True, show_attrs=True)
    output.sum().backward()  # torch raises here if anything was unpacked before
    assert model.weight.grad is not None


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:  # noqa: ARG004 - torch's signature
        return grads[0] * 2


def test_a_function_of_the_models_own() -> None:
    model = nn.Linear(4, 3)
    seen = picture(Twice.apply(model(X)), model, show_saved=True, show_attrs=True)
    assert seen.lines()["AddmmBackward0", "TwiceBackward"] == 1
    assert seen.lines("saved")["tensors[0]", "TwiceBackward"] == 1


def test_a_graph_deeper_than_the_recursion_limit() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(3 * sys.getrecursionlimit()):
        y = y + 1
    seen = picture(y, show_saved=True)
    assert seen.titles() == functions(y) + Counter(["leaf", "output"])


@reads_saved_tensors
def test_no_two_nodes_are_one() -> None:
    """Wrappers of functions and of saved tensors are made when asked for, and their memory is used again."""
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(50)])
    output = model(X)
    seen = picture(output, model, show_saved=True)
    assert {name: count for name, count in seen.titles().items() if "Backward" in name} == functions(output)
    assert (
        seen.lines("saved").total()
        == sum(1 for name in seen.titles().elements() if name.startswith(("mat1", "mat2")))
        == 50 + 49
    )  # the first layer's input wants no gradient, so it keeps no weight


def test_names_are_text() -> None:
    names = ["a->b", 'x<y&z|{"q"}', r"back\nslash\N", "重み", "c1;]"]
    params = {name: nn.Parameter(torch.ones(2)) for name in names}
    graph = autograd_graph(sum(params.values()), params)
    assert set(names) <= set(Picture(graph.source).titles()) | {r"back\\nslash\\N", r"back\nslash\N"}
    run = subprocess.run([needs("dot"), "-Tsvg"], input=graph.source, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    assert all(name in unescape(run.stdout) for name in names if "<" not in name)


def steps(count: int, look: Callable[[Tensor, nn.Module], Any]) -> list[Tensor]:
    """Train a little model, looking at every batch; all gradients of all steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.Linear(3, 1))
    gradients: list[Tensor] = []
    for _ in range(count):
        loss = model(torch.randn(3, 4)).square().mean()
        look(loss, model)
        model.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            gradients.append(parameter.grad.clone())
            parameter.data.sub_(parameter.grad, alpha=0.1)
    return gradients


def test_a_training_loop_goes_on_as_if_nobody_looked() -> None:
    looked: list[Any] = []

    def look(loss: Tensor, model: nn.Module) -> None:
        before = [parameter.grad for parameter in model.parameters()]
        autograd_graph(loss, params=dict(model.named_parameters()), show_attrs=True, show_saved=True)
        assert all(a is b.grad for a, b in zip(before, model.parameters(), strict=True))
        looked.append(weakref.ref(loss))

    seen = steps(5, look)
    alone = steps(5, lambda loss, model: None)
    assert all(torch.equal(a, b) for a, b in zip(seen, alone, strict=True))
    assert [loss() for loss in looked] == [None] * 5  # freed at the end of the step, without the garbage collector


def test_graphviz_renders_the_graph_of_a_loss(tmp_path: Path) -> None:
    needs("dot")
    looked: list[str] = []

    def look(loss: Tensor, model: nn.Module) -> None:
        graph = autograd_graph(loss, params=dict(model.named_parameters()), show_attrs=True, show_saved=True)
        looked.append(graph.render(tmp_path / "graph_epoch_0_batch_0", format="png", cleanup=True))

    steps(1, look)
    assert Path(looked[0]).read_bytes().startswith(b"\x89PNG")


def test_memory_is_flat_over_a_thousand_steps() -> None:
    counts: list[int] = []

    def look(loss: Tensor, model: nn.Module) -> None:
        autograd_graph(loss, dict(model.named_parameters()))
        counts.append(len(gc.get_objects()) if len(counts) in (99, 999) else 0)

    gc.disable()  # what is freed is freed at once, not sooner or later
    try:
        steps(1000, look)
    finally:
        gc.enable()
    assert counts[999] - counts[99] < 100 + 900 * 4  # the gradients that `steps` itself keeps


# -- a model on a page


def record(model: nn.Module, *args: Any, spec: GraphSpec | None = None, **kwargs: Any) -> Record:
    made = record_model(model, args, kwargs, spec=spec, tracer="autograd")
    assert Record.from_json(made.to_json()) == made
    return made


def by_path(made: Record) -> dict[str, Operator]:
    return {operator.path: operator for operator in flatten_record(made)}


def test_every_function_in_the_call_that_made_it() -> None:
    made = record(Net(), X)
    assert made.failure is None
    assert list(by_path(made)) == [
        "blocks.0.first.weight", "blocks.0.first.TBackward0", "blocks.0.first.bias", "blocks.0.first.AddmmBackward0",
        "blocks.0.ReluBackward0",
        "blocks.0.second.weight", "blocks.0.second.TBackward0", "blocks.0.second.MmBackward0",
        "blocks.0.AddBackward0",
        "blocks.1.first.weight", "blocks.1.first.TBackward0", "blocks.1.first.bias", "blocks.1.first.AddmmBackward0",
        "blocks.1.ReluBackward0",
        "blocks.1.second.weight", "blocks.1.second.TBackward0", "blocks.1.second.MmBackward0",
        "blocks.1.AddBackward0",
        "TanhBackward0",
        "head.weight", "head.TBackward0", "head.bias", "head.AddmmBackward0",
        "output",
    ]  # fmt: skip
    residual = by_path(made)["blocks.1.AddBackward0"]
    assert (residual.node.kind, residual.node.target) == ("AddBackward0", "AddBackward0")
    assert residual.node.outputs[0].shape == (2, 4)
    assert [source.path for source in residual.sources] == ["blocks.0.AddBackward0", "blocks.1.second.MmBackward0"]
    second = made.bodies[{node.name: node.body for node in made.bodies["Sequential"].nodes}["1"]]
    assert second.inputs[0].name == "x"
    assert (made.totals.parameters, made.totals.macs, made.totals.activation_bytes) == (87, None, None)
    assert made.output == "f32[2, 3]"


def test_modules_that_are_called_again_or_share_a_parameter() -> None:
    class Again(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.tied = nn.Linear(4, 4, bias=False)
            self.tied.weight = self.layer.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.tied(self.layer(self.layer(x)))

    operators = by_path(record(Again(), X))
    assert [operators[f"{path}.weight"].node.target for path in ("layer", "layer@2", "tied")] == ["layer.weight"] * 3
    assert {source.path for source in operators["layer@2.AddmmBackward0"].sources} == {
        "layer.AddmmBackward0",
        "layer@2.bias",
        "layer@2.TBackward0",
    }


class Mixed(nn.Module):
    """Of what makes graphs hard to follow: writing in place, views, a frozen part, several outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor, *, shift: Tensor) -> dict[str, Any]:
        h = self.norm(x) * self.scale
        h[:, 0] = 0
        h += self.frozen(x)
        left, right = h.split(2, dim=1)
        with torch.no_grad():
            note = h.mean()
        return {"left": left, "rest": [Twice.apply(right), shift], "note": note}


def test_the_functions_are_those_of_torch() -> None:
    model, shift = Mixed().train(), torch.ones(2)
    returned = model(X, shift=shift)
    made = record(model, X, shift=shift, spec=GraphSpec.parse("torch.nn.ReLU", "1", mode="train"))
    kinds = Counter(op.node.kind for op in by_path(made).values() if op.node.op == "call_function")
    assert kinds == functions(returned["left"], returned["rest"][0])
    assert made.output == "{'left': f32[2, 2], 'rest': [f32[2, 2], f32[2]], 'note': f32[]}"
    split = by_path(made)["SplitBackward0"].node
    assert [(meta.path, meta.shape) for meta in split.outputs] == [("[0]", (2, 2)), ("[1]", (2, 2))]


def test_the_mode_is_that_of_the_spec() -> None:
    def kinds(mode: str) -> set[str]:
        spec = GraphSpec.parse("torch.nn.Dropout", "2, 4", mode=mode, leaf="Linear")
        made = record(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), X, spec=spec)
        assert made.notes == ("a backward graph opens every module, so leaf patterns change nothing",)
        return {operator.node.kind for operator in by_path(made).values()}

    assert kinds("train") - kinds("eval") == {"MulBackward0"}


def test_inputs_stand_in_where_no_parameter_wants_a_gradient() -> None:
    made = record(nn.Softmax(-1), X)
    assert list(by_path(made)) == ["input", "SoftmaxBackward0", "output"]
    assert made.notes == ("no parameter requires a gradient, so the inputs do",)
    assert not X.requires_grad


def test_an_output_without_a_gradient() -> None:
    class Picks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x).argmax(-1)

    failure = record(Picks(), X).failure
    assert failure is not None
    assert failure.stage == "trace"
    assert failure.message == "nothing that the model returns depends on a tensor that requires a gradient"


def test_a_forward_pass_that_fails() -> None:
    class Fails(Net):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).reshape(5)

    failure = record(Fails(), X).failure
    assert failure is not None
    assert failure.message == "shape '[5]' is invalid for input of size 6"
    assert failure.file.endswith("test_autograd.py")
    failure = record(Net(), X, X).failure
    assert failure is not None
    assert failure.stage == "input"


def test_the_model_is_left_as_it_was() -> None:
    model = Net()
    model.blocks.register_forward_hook(lambda module, args, output: output * 2)
    before = {name: dict(vars(module)) for name, module in model.named_modules()}
    made = record(model, X)
    assert "blocks.MulBackward0" in by_path(made)
    assert {name: dict(vars(module)) for name, module in model.named_modules()} == before
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not model.head._forward_hooks
    assert not model.head._forward_pre_hooks


def test_a_model_of_any_size() -> None:
    made = record_spec(GraphSpec.parse("torch.nn.Linear(200000, 400000)", "8, 200000", tracer="autograd"))
    assert made.failure is None
    assert made.totals.parameters == 200_000 * 400_000 + 400_000
    assert [operator.node.kind for operator in flatten_record(made)] == [
        "parameter",
        "TBackward0",
        "parameter",
        "AddmmBackward0",
        "output",
    ]
    assert made.to_json() == record_spec(GraphSpec.from_dict(made.spec)).to_json()
