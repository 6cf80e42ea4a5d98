"""What has changed from one architecture to another, told and drawn. Real models, captured in this process."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
from msgspec import structs
from older import older_json

from sphinx_fxgraph import model_record
from sphinx_fxgraph.layout.graphviz import find_engine
from sphinx_fxgraph.record.diff import compare, sentence
from sphinx_fxgraph.record.diff_graph import merge
from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.record.model import Record, join
from sphinx_fxgraph.render import document
from sphinx_fxgraph.render import drawing as compose

torch = pytest.importorskip("torch")
from sphinx_fxgraph.capture.capture import record_model  # noqa: E402 - only where torch is

nn = torch.nn

pytestmark = pytest.mark.torch


class Block(nn.Module):
    def __init__(self, width: int, kernel: int, act: Callable[[], nn.Module], drop: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, kernel, padding=kernel // 2)
        self.act = act()
        self.drop = nn.Dropout() if drop else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.act(self.conv(x))
        return x + (y if self.drop is None else self.drop(y))


class Net(nn.Module):
    def __init__(
        self,
        width: int = 8,
        depth: int = 4,
        kernel: int = 3,
        act: Callable[[], nn.Module] = nn.ReLU,
        drop: bool = False,
        gate: bool = False,
        start: int = 1,
        names: str = "blocks",
    ) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3)
        self.names = names
        setattr(self, names, nn.Sequential(*(Block(width, kernel, act, drop and n % 2 == 0) for n in range(depth))))
        self.gate = gate
        self.start = start
        self.fc = nn.Linear(width, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.stem(image)
        if self.gate:
            x = x * torch.sigmoid(x)
        x = getattr(self, self.names)(x)
        return self.fc(torch.flatten(x.mean((2, 3)), self.start))


@functools.cache
def record(**options: object) -> Record:
    return model_record(Net(**options), torch.zeros(1, 3, 16, 16)).record  # type: ignore[arg-type]


def changes(*, before: dict[str, object] | None = None, **after: object) -> list[str]:
    return [f"{change.kind} {sentence(change)}" for change in compare(record(**before or {}), record(**after)).changes]


def test_equal_architectures_have_no_difference() -> None:
    difference = compare(record(), structs.replace(record(), made_by={"torch": "9"}, sources=()))
    assert difference.facts == difference.changes == ()


def test_blocks_that_are_added_are_told_once_with_their_parameters() -> None:
    assert changes(depth=6) == ["added blocks.4 … blocks.5  Block  1×8×14×14 f32  +584 parameters  ×2"]
    assert changes(before={"depth": 6}) == ["removed blocks.4 … blocks.5  Block  1×8×14×14 f32  −584 parameters  ×2"]
    facts = {fact.name: (fact.before, fact.after) for fact in compare(record(), record(depth=6)).facts}
    assert facts["parameters"] == ("2,650", "3,818")
    assert set(facts) == {"operators", "parameters", "MACs"}


def test_a_setting_that_differs_is_told_once_for_all_equal_blocks() -> None:
    assert changes(kernel=5) == ["changed blocks.0.conv  Conv2d  3×3 → 5×5  +1,024 parameters  ×4"]


def test_an_exchanged_module_is_one_change() -> None:
    assert changes(act=nn.GELU) == ["changed blocks.0.act  GELU  ReLU → GELU  ×4"]


def test_an_operator_inserted_between_others_is_the_only_change() -> None:
    assert changes(drop=True) == ["added blocks.0.drop  Dropout  p=0.5 · 1×8×14×14 f32  ×2"]
    assert changes(before={"drop": True}) == ["removed blocks.0.drop  Dropout  p=0.5 · 1×8×14×14 f32  ×2"]
    assert changes(gate=True) == ["added sigmoid  sigmoid  1×8×14×14 f32", "added mul  mul  1×8×14×14 f32"]


def test_what_is_reshaped_is_told_with_both_shapes() -> None:
    told = changes(width=16)
    assert "changed stem  Conv2d  8 · 1×8×14×14 f32 → 16 · 1×16×14×14 f32  +224 parameters" in told
    assert "changed blocks.0.add  add  1×8×14×14 f32 → 1×16×14×14 f32  ×4" in told
    assert "changed blocks.1 … blocks.3  Block  1×8×14×14 f32 → 1×16×14×14 f32  ×3" in told
    assert not [line for line in told if not line.startswith("changed")]


def test_an_argument_that_differs_is_told_though_the_shape_does_not() -> None:
    assert changes(start=-1) == ["changed flatten  flatten  dim=1 → dim=-1"]


def test_a_module_under_another_name_is_the_same_module() -> None:
    assert changes(names="body") == ["changed body (was blocks)  Sequential  blocks → body"]


def test_a_failure_is_a_fact_and_a_model_without_graph_has_no_changes() -> None:
    failed = Record(spec={}, tracer="auto", failure=Failure("build", "ValueError", "no width"))
    difference = compare(record(), failed)
    assert difference.changes == ()
    assert "  failure: none → no width" in list(difference.lines())


def test_lines_bear_a_sign_each() -> None:
    lines = list(compare(record(drop=True), record(gate=True, kernel=5)).lines())
    assert {line[:2] for line in lines} == {"  ", "+ ", "~ ", "− "}


# -- in one drawing


OPTIONS: list[dict[str, object]] = [
    {},
    {"depth": 6},
    {"kernel": 5},
    {"act": nn.GELU},
    {"drop": True},
    {"gate": True},
    {"width": 16},
    {"names": "body"},
    {"names": "body", "drop": True},
    {"gate": True, "drop": True, "depth": 2, "act": nn.Identity},
]


@pytest.mark.parametrize("before", OPTIONS)
@pytest.mark.parametrize("after", OPTIONS)
def test_a_merged_graph_is_a_record_with_each_change_marked(
    before: dict[str, object], after: dict[str, object]
) -> None:
    both = merge(record(**before), record(**after))
    assert Record.from_json(both.to_json()) == both
    marks = {join(path, node.name): node.marks for path, _, node in both.walk()}
    found = compare(record(**before), record(**after)).changes
    assert any(marks.values()) == bool(found)
    for change in found:
        assert change.kind in marks[change.drawn or change.path]


def test_what_is_gone_stays_between_its_neighbours() -> None:
    both = merge(record(gate=True), record())
    body = both.bodies[both.root]
    assert [(node.name, node.marks) for node in body.nodes[1:4]] == [
        ("stem", ()),
        ("sigmoid", ("removed",)),
        ("mul", ("removed",)),
    ]


def test_the_drawing_says_in_words_and_by_class_what_differs() -> None:
    job = compose.Job(merge(record(drop=True), record(gate=True, kernel=5)))
    assert not compose.lay_out([job], find_engine())
    drawing = document.page_svg(compose.scene(job), figure="f", title="t", description="d")
    for text in ("+ sigmoid", "− Dropout", "~ Conv2d", "3×3 → 5×5", "~ Block"):
        assert f">{text}<" in drawing
    for name in ("fxg-added", "fxg-removed", "fxg-changed"):
        assert name in drawing


class Sized(nn.Module):
    def __init__(self, squared: bool) -> None:
        super().__init__()
        self.squared = squared

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.squared:
            x = x * x.dim()
        y = x.sum(dim=1)
        return y * x.dim()


def test_the_name_of_a_keyword_is_not_the_name_of_a_node() -> None:
    before, after = (record_model(Sized(squared), (torch.ones(2, 2, 2),), {}) for squared in (False, True))
    assert not [change for change in compare(before, after).changes if change.operator == "sum"]


class Added(nn.Module):
    def __init__(self, looks: bool) -> None:
        super().__init__()
        self.looks = looks

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.relu(y)
        z += x
        if self.looks and x.sum() > 100:
            z = z * 2
        return z


def test_one_operator_is_one_however_it_was_traced() -> None:
    args = torch.ones(2, 2), torch.ones(2, 2)
    before, after = (record_model(Added(looks), args, {}) for looks in (False, True))
    assert before.tracer != after.tracer
    assert not [change for change in compare(before, after).changes if change.operator == "add"]


def test_arguments_of_an_older_record_are_compared_where_they_are_certain() -> None:
    new = record_model(Sized(False), (torch.ones(2, 2, 2),), {})
    old = Record.from_json(older_json(new, 2))
    assert compare(old, new).changes == ()
