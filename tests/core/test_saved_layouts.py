"""Coordinates that come from a file: they give the very same picture, or none."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sphinx_fxgraph.cache.store import Store
from sphinx_fxgraph.layout import graphviz as layout
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Body, BodyInput, Node, Record, TensorMeta
from sphinx_fxgraph.render import document
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.spec.spec import GraphSpec

SPEC = GraphSpec.parse("pkg.Net", "1, 8")
TENSOR = (TensorMeta((1, 8), "f32"),)


def op(name: str, *inputs: str, op: str = "call_function", body: str = "", outputs: int = 1) -> Node:
    values = tuple(map(Value, inputs))
    return Node(name, op, name, name, body=body, inputs=values, outputs=TENSOR * outputs)


BLOCK = Body("Block", (BodyInput("x", TENSOR),), (op("fc", ""), op("add", "fc", "")), (Value("add"),))
NODES = op("x", op="placeholder"), op("a", "x", op="call_module", body="Block", outputs=0), op("split", "a", outputs=2)
RECORD = Record(
    SPEC.to_dict(), "symbolic", "Net", {"Net": Body("Net", (), (*NODES, op("out", "split"))), "Block": BLOCK}
)


def picture(job: compose.Job) -> str:
    return document.page_svg(compose.scene(job), figure="f", title="t", description="d")


@pytest.fixture(scope="module")
def drawn() -> compose.Job:
    job = compose.Job(RECORD)
    assert compose.lay_out([job], layout.find_engine()) == []
    return job


def test_they_give_the_same_picture_without_an_engine(drawn: compose.Job, tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.put_drawing(SPEC, drawn.dot(), drawn.used(), "dot")
    kept = compose.Job(RECORD, layouts=store.layouts(SPEC))
    assert picture(kept) == picture(drawn)
    assert not store.put_drawing(SPEC, kept.dot(), kept.used(), "dot")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda level: level["nodes"].clear(),
        lambda level: level["nodes"].pop("n0"),
        lambda level: level["edges"].update({"99": [0.0] * 8}),
        lambda level: level["edges"].update({"x": [0.0] * 8}),
        lambda level: level["edges"].update({"0": [0.0, 1.0, 2.0]}),
        lambda level: level.update(notes={"-1": [0.0, 0.0]}),
    ],
)
def test_those_of_another_level_are_a_miss(drawn: compose.Job, spoil: Callable[[dict[str, Any]], object]) -> None:
    layouts = copy.deepcopy(dict(drawn.used()))
    for level in layouts.values():
        spoil(level)
    job = compose.Job(RECORD, layouts=layouts)
    assert not job.complete()
    compose.lay_out([job], layout.find_engine())
    assert picture(job) == picture(drawn)
