"""Whatever the graph: the geometry has no fault, every operator is drawn once, labels fit."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sphinx_fxgraph.layout.graphviz import find_engine
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Body, BodyInput, Node, Record, TensorMeta, join
from sphinx_fxgraph.render import document
from sphinx_fxgraph.render import drawing as compose

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LEGIBILITY = Path(__file__).parents[2] / "benchmarks" / "legibility"
sys.path.insert(0, str(LEGIBILITY))
from geometry import Faults, faults  # noqa: E402 - what the pictures of real models are measured with

KINDS = ("Conv2d", "BatchNorm2d", "ReLU", "add", "cat", "scaled_dot_product_attention", "MyOwn")
SEEDS = range(8)
OPEN = ViewOptions(open=("*",), fold="off")
LOOKS = (ViewOptions(depth=1), OPEN)


def tensor(chance: random.Random) -> tuple[TensorMeta, ...]:
    return (TensorMeta(tuple(chance.choice((1, 8, 512)) for _ in range(chance.randint(0, 4))), "f32"),)


def body(chance: random.Random, name: str, inner: Sequence[Body], inputs: int, least: int = 1) -> Body:
    """Operators and calls, each of which takes some of the values before it, mostly late ones."""
    outer = name == "Net"
    nodes = [Node(f"x{k}", "placeholder", "input", "input", outputs=tensor(chance)) for k in range(inputs * outer)]
    values = [Value(node.name) for node in nodes] or [Value("", k) for k in range(inputs)]
    unused = dict.fromkeys(values)

    def take(count: int) -> tuple[Value, ...]:
        late = values[-4:] if chance.random() < 0.8 else values
        taken = tuple(chance.choice(late) for _ in range(count))
        for value in taken:
            unused.pop(value, None)
        return taken

    for number in range(chance.randint(least, 12)):
        own = f"op{number}" if chance.random() < 0.8 else f"a_{'very_' * chance.randint(1, 6)}long_name_{number}"
        if inner and chance.random() < 0.4:
            called = chance.choice(inner)
            taken = take(len(called.inputs))
            nodes.append(Node(own, "call_module", own, called.type, type=called.type, inputs=taken, body=called.type))
            made = [Value(own, k) for k in range(len(called.outputs))]
        else:
            kind = chance.choice(KINDS)
            taken = take(chance.randint(1, 3))
            nodes.append(Node(own, "call_function", kind, kind, inputs=taken, outputs=tensor(chance)))
            made = [Value(own)]
        values += made
        unused |= dict.fromkeys(made)
    outputs = tuple(unused)
    if outer:
        nodes.append(Node("output", "output", "output", "output", inputs=outputs, outputs=tensor(chance)))
    given = () if outer else tuple(BodyInput(f"in{k}", tensor(chance)) for k in range(inputs))
    return Body(name, given, tuple(nodes), () if outer else outputs)


def nested(seed: int) -> Record:
    chance = random.Random(seed)
    bodies: list[Body] = []
    for number in range(chance.randint(0, 4)):
        bodies.append(body(chance, f"Module{number}", bodies[-2:], chance.choice((1, 1, 1, 2, 3))))
    bodies.append(body(chance, "Net", bodies, chance.randint(1, 3), least=4))
    return Record({}, "symbolic", "Net", {each.type: each for each in bodies})


@pytest.fixture(scope="module")
def jobs() -> list[compose.Job]:
    made = [compose.Job(nested(seed), look) for seed in SEEDS for look in LOOKS]
    assert compose.lay_out(made, find_engine()) == []
    return made


def page_svg(job: compose.Job) -> str:
    return document.page_svg(compose.scene(job), figure="f", title="t", description="d", rows=True)


def drawn(frame: compose.Frame) -> Iterator[str]:
    yield from (each.path for box in frame.boxes for each in box.rows or (box,))
    for inner in frame.frames:
        yield from drawn(inner)


def test_geometry_has_no_fault(jobs: list[compose.Job]) -> None:
    for job in jobs:
        found, _ = faults(page_svg(job))
        assert found == Faults(), job.look


def test_every_operator_is_drawn_once(jobs: list[compose.Job]) -> None:
    for job in jobs:
        if job.look.open:
            walked = [join(path, node.name) for path, _, node in job.record.walk() if not node.body]
            assert Counter(drawn(compose.scene(job))) == Counter(walked)


def test_a_level_without_an_engine_is_drawn_all_the_same() -> None:
    for seed in SEEDS[:4]:
        job = compose.Job(nested(seed), OPEN)
        while missing := job.missing():
            job.layouts |= {key: job.composer.plain(key) for key in missing}
        found, _ = faults(page_svg(job))
        assert found == Faults()
        walked = [join(path, node.name) for path, _, node in job.record.walk() if not node.body]
        assert Counter(drawn(compose.scene(job))) == Counter(walked)
        assert "simpler way" in compose.remark(job)


@pytest.mark.browser
def test_no_label_is_wider_than_its_box(jobs: list[compose.Job], browser: Browser) -> None:
    from browser import overflowing

    for by_font in overflowing(browser, map(page_svg, jobs)):
        assert by_font == {"DejaVu": [], "Liberation": []}


def u_net(depth: int) -> Record:
    """A model that goes down and up again, with a skip on each level."""
    meta = (TensorMeta((1, 8, 16, 16), "f32"),)
    nodes = [Node("x", "placeholder", "input", "input", outputs=meta)]
    for number in range(depth):
        nodes.append(
            Node(f"down{number}", "call_function", "down", "down", inputs=(Value(nodes[-1].name),), outputs=meta)
        )
    for number in reversed(range(depth - 1)):
        taken = (Value(nodes[-1].name), Value(f"down{number}"))
        nodes.append(Node(f"up{number}", "call_function", "up", "up", inputs=taken, outputs=meta))
    nodes.append(Node("output", "output", "output", "output", inputs=(Value(nodes[-1].name),), outputs=meta))
    return Record({}, "symbolic", "Net", {"Net": Body("Net", (), tuple(nodes), ())})


@pytest.mark.parametrize(("depth", "layout", "is_u"), [(5, "auto", True), (3, "auto", False), (5, "column", False)])
def test_skips_that_nest_stand_side_by_side(depth: int, layout: str, *, is_u: bool) -> None:
    job = compose.Job(u_net(depth), ViewOptions(layout=layout, rows="off"))
    assert compose.lay_out([job], find_engine()) == []
    places = {box.path: (box.x, box.y) for box in compose.scene(job).boxes}
    for number in range(depth - 1):
        (left, top), (right, other_top) = places[f"down{number}"], places[f"up{number}"]
        assert (abs(top - other_top) < 1 and left < right) == is_u
    found, _ = faults(page_svg(job))
    assert found == Faults()
