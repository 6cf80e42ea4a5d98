"""What a graph must never leave out without a word: writes through views, numbers read from tensors, chance."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

from random_check import sources  # noqa: E402 - only where torch is
from torch import Tensor, nn  # noqa: E402

from sphinx_fxgraph.capture.capture import record_model  # noqa: E402
from sphinx_fxgraph.capture.tracers.eager import compares_identity  # noqa: E402
from sphinx_fxgraph.record.model import Record  # noqa: E402


def record(forward: Callable[..., Any], *args: Tensor, tracer: str = "auto") -> Record:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin, self.blk, self.norm = nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 3)), nn.Identity()
            self.register_buffer("cache", torch.zeros(2, 4))

    vars_of: Any = Model
    vars_of.forward = forward
    found = record_model(Model(), args, {}, tracer=tracer)
    assert found.failure is None
    return found


def x() -> Tensor:
    return torch.linspace(-1, 1, 8).reshape(2, 4)


def chunks(self: Any, x: Tensor, y: Tensor) -> Tensor:
    a, b = x.chunk(2, 1)
    a.add_(y)
    b.mul_(2)
    return x


def halves(self: Any, x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty(2, 4)
    out[:, :2].copy_(x[:, :2])
    out[:, 2:].copy_(y)
    return out


def outs(self: Any, x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty(2, 4)
    torch.sin(x[:, :2], out=out[:, :2])
    torch.cos(y, out=out[:, 2:])
    return out


def bias(self: Any, x: Tensor, y: Tensor) -> Any:
    self.lin.bias.data.copy_(x[0, :3])
    return self.lin(torch.cat([y, y], 1))


def scale(self: Any, x: Tensor, y: Tensor) -> Tensor:
    number = float(x.abs().max()) / 127
    return (y / number).round() * number


def place(self: Any, x: Tensor, y: Tensor) -> Tensor:
    return y[:, int(x.sum(0).argmax()) % 2]


@pytest.mark.parametrize("tracer", ["auto", "observed"])
@pytest.mark.parametrize("forward", [chunks, halves, outs, bias, scale, place])
def test_both_inputs_reach_the_output(forward: Callable[..., Any], tracer: str) -> None:
    assert sources(record(forward, x(), x()[:, :2].clone(), tracer=tracer)) >= {"x", "y"}


def test_a_number_that_is_read_is_in_no_record() -> None:
    one, other = (record(scale, value, x()[:, :2].clone()) for value in (x(), x() * 3))
    assert one.to_json() == other.to_json()
    assert one.verdict is not None
    assert one.verdict.kind == "path"


def test_an_array_whose_tensor_is_written_later_comes_from_what_was_read() -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        y = torch.from_numpy(x.numpy().copy() + 9)
        z = y * 2
        y[y > 0] = 0.5  # all of it, with other values as well
        return y + z

    for value in (x(), x() * 3):
        found = record(forward, value)
        assert not any(node.op == "get_attr" for _, _, node in found.walk())
        assert sources(found) == {"x"}


def test_what_a_module_takes_has_the_shape_of_the_tensor_taken() -> None:
    def forward(self: Any, x: Tensor) -> Any:
        x[:, :2].add_(1)
        return self.blk(x)

    (given,) = record(forward, x()).bodies["Sequential"].inputs
    assert given.tensors[0].shape == (2, 4)


def compare_here(self: Any, x: Tensor) -> Tensor:
    y = self.norm(x)
    return torch.sin(y) if y is x else torch.cos(y)


def is_same(y: Any, x: Any) -> bool:
    return id(y) == id(x)


def compare_in_a_function(self: Any, x: Tensor) -> Tensor:
    y = self.norm(x)
    return torch.sin(y) if is_same(y, x) else torch.cos(y)


def compare_in_a_decorated_function() -> Callable[..., Any]:
    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def forward(self: Any, x: Tensor) -> Any:
            return function(self, x)

        return forward

    return decorated(compare_here)


def compare_in_a_lambda(self: Any, x: Tensor) -> Tensor:
    y = self.norm(x)
    return torch.sin(y) if any(map(lambda each: each is y, [x])) else torch.cos(y)  # noqa: C417 - as people write it


@pytest.mark.parametrize(
    "forward", [compare_here, compare_in_a_function, compare_in_a_decorated_function(), compare_in_a_lambda]
)
def test_a_model_that_compares_identity_does_what_it_does_without_a_capture(forward: Callable[..., Any]) -> None:
    assert "sin" in {node.kind for _, _, node in record(forward, x()).walk()}


def test_a_hook_that_compares_identity_does_what_it_does_without_a_capture() -> None:
    model = nn.Sequential(nn.Identity(), nn.Linear(4, 4))
    model[0].register_forward_hook(lambda module, args, result: torch.sin(result) if result is args[0] else None)
    assert "sin" in {node.kind for _, _, node in record_model(model, (x(),), {}).walk()}


def test_comparisons_of_what_is_no_tensor_cost_no_second_run() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.Identity()

        def others(self, other: Any) -> bool:  # which no call reaches
            return other is self.norm

        def forward(self, x: Tensor) -> Tensor:
            kept = x.dtype is torch.float32 and type(x) is Tensor and x is not None
            return self.norm(x) if kept else x

    assert not compares_identity(Model())
    assert compares_identity(Model(), "others")


def test_a_generator_that_moves_is_named_with_its_line() -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        return x + 1 if random.random() < 2 else x

    found = record(forward, x())
    assert found.verdict is not None
    assert (found.verdict.kind, found.verdict.line) == ("path", forward.__code__.co_firstlineno + 1)
    assert [(remark.kind, remark.text) for remark in found.remarks] == [("random", "random.random")]


def test_a_read_that_only_the_run_has_is_one_path() -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        try:
            up = bool(x.sum() > -100)
        except Exception:  # noqa: BLE001 - as code that asks whether it is traced
            up = True
        return torch.sin(x) if up else torch.cos(x)

    found = record(forward, x())
    assert found.verdict is not None
    assert found.verdict.kind == "path"


def test_sizes_that_depend_on_values_are_said_to() -> None:
    found = record(lambda self, x: self.lin(x[x[:, 0] > -9]), x())
    assert found.verdict is not None
    assert found.verdict.kind == "sizes"


def test_a_buffer_that_is_bound_anew_is_written() -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        self.cache = x * 3
        return x * 2

    assert {node.name: node.marks for _, _, node in record(forward, x()).walk() if node.marks} == {
        "mul": ("written to cache",)
    }


def test_a_result_that_contains_itself_is_cut() -> None:
    def forward(self: Any, x: Tensor) -> dict[str, Any]:
        result: dict[str, Any] = {"y": self.lin(x)}
        result["me"] = result
        return result

    assert sources(record(forward, x())) >= {"x"}


class Nested(nn.Module):
    """Modules in each other."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.inner: nn.Module = Nested(depth - 1) if depth else nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        return self.inner(x)


def test_modules_nest_as_deep_as_they_run() -> None:
    assert record_model(Nested(150), (x(),), {}).failure is None


class Coder(nn.Module):
    """A module with methods of its own, one of which calls another."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def features(self, x: Tensor) -> Tensor:
        return torch.relu(self.inner(x))

    def encode(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.encode(x)


class Steps(nn.Module):
    """Yields after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor, times: int = 3) -> Any:
        for _ in range(times):
            x = torch.relu(self.inner(x))
            yield x


class Owner(nn.Module):
    """Calls one of them as a function says."""

    def __init__(self, child: nn.Module, call: Callable[[nn.Module, Tensor], Any]) -> None:
        super().__init__()
        self.child, self.call = child, call

    def forward(self, x: Tensor) -> Any:
        return self.call(self.child, x)


def frames(
    child: nn.Module, call: Callable[[Any, Tensor], Any], tracer: str = "auto"
) -> list[tuple[str, str, list[str]]]:
    found = record_model(Owner(child, call), (x(),), {}, tracer=tracer)
    assert found.failure is None
    return [
        (node.target, node.kind, [each.kind for each in found.bodies[node.body].nodes])
        for node in found.bodies["Owner"].nodes
        if node.body
    ]


@pytest.mark.parametrize("tracer", ["auto", "symbolic", "observed"])
def test_a_method_that_another_module_calls_is_a_frame(tracer: str) -> None:
    inside = ["Linear", "relu", "Linear"]
    assert frames(Coder(), lambda child, x: child.encode(x) * 2, tracer) == [("child", "Coder.encode", inside)]
    assert frames(Coder(), lambda child, x: child(x) * 2, tracer) == [("child", "Coder", inside)]


@pytest.mark.parametrize("tracer", ["auto", "symbolic", "observed"])
def test_each_step_of_a_forward_that_yields_is_a_frame(tracer: str) -> None:
    assert frames(Steps(), lambda child, x: sum(child(x)), tracer) == [("child", "Steps", ["Linear", "relu"])] * 3
    found = record_model(Owner(Steps(), lambda child, x: sum(child(x))), (x(),), {}, tracer=tracer)
    assert [[each.name for each in found.bodies[body].inputs] for body in ("Steps", "Steps.2")] == [["x"], ["input"]]


@pytest.mark.parametrize("tracer", ["auto", "observed"])
def test_a_module_under_vmap_is_a_frame_whose_operators_have_the_shapes_that_its_code_sees(tracer: str) -> None:
    call = lambda child, x: torch.vmap(child)(x) * 2  # noqa: E731 - as short as what it is compared with
    assert frames(Coder(), call, tracer) == [("child", "Coder", ["Linear", "relu", "Linear"])]
    found = record_model(Owner(Coder(), call), (x(),), {}, tracer=tracer)
    plain = record_model(Owner(Coder(), lambda child, x: child(x) * 2), (x(),), {}, tracer=tracer)
    assert found.totals.macs == plain.totals.macs
    assert [node.outputs[0].shape for node in found.bodies["Coder"].nodes] == [(4,), (4,), (2,)]
    assert {mark for node in found.bodies["Coder"].nodes for mark in node.marks} == {"vmap"}
    assert found.bodies["Owner"].nodes[-2].outputs[0].shape == (2, 2)


def test_what_vmap_leaves_alone_and_what_it_nests_reaches_the_output() -> None:
    def call(child: Any, x: Tensor) -> Any:
        both = torch.vmap(lambda a, b: {"out": child(a) + b[:2]}, in_dims=(0, None))(x, x[0])
        return both["out"].sum() + torch.vmap(torch.vmap(child))(x[None]).sum()

    found = record_model(Owner(Coder(), call), (x(),), {})
    assert found.failure is None
    assert sources(found) >= {"x"}
    assert [node.kind for node in found.bodies["Owner"].nodes if node.body] == ["Coder", "Coder"]
