"""Names of dimensions: labels of inputs, and open sizes wherever they stand."""

from __future__ import annotations

import pytest
from msgspec import structs
from test_drawing import draw, op, tensor

from sphinx_fxgraph.layout.graphviz import find_engine
from sphinx_fxgraph.option_types import Dimensions
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.arguments import Size, Value
from sphinx_fxgraph.record.model import Body, BodyInput, Record, TensorMeta
from sphinx_fxgraph.render import document, summary
from sphinx_fxgraph.view.annotations import named


def open_tensor(*shape: int | str) -> tuple[TensorMeta, ...]:
    return (TensorMeta(shape, "f32"),)


@pytest.fixture
def record() -> Record:
    """Two inputs of which one has an open size, which goes through a module."""
    half = open_tensor("s0", 8)
    block = Body(
        "Block",
        (BodyInput("x", half),),
        (op("view", "view", "", args=(Value(""), Size("s0"), 8), outputs=half),),
        (Value("view"),),
    )
    root = Body(
        "Net",
        (),
        (
            op("x", "input", op="placeholder", outputs=half),
            op("y", "input", op="placeholder", outputs=tensor(3, 4, 5)),
            op("block", "Block", "x", op="call_module", body="Block", outputs=()),
            op("output", "output", "block", "y", op="output", outputs=half),
        ),
    )
    return Record({}, "export", "Net", {"Net": root, "Block": block})


def test_an_open_size_has_its_name_everywhere_and_a_fixed_one_at_its_input(record: Record) -> None:
    shown = named(record, Dimensions().read("batch features, N T C"))
    assert summary.shapes(shown) == "batch×features=8, N=3×T=4×C=5 → batch×8"
    (view,) = shown.bodies["Block"].nodes
    assert (view.args, view.outputs[0].shape) == ((Value(""), Size("batch"), 8), ("batch", 8))
    assert shown.bodies["Block"].inputs[0].tensors[0].shape == ("batch", 8)
    picture = document.page_svg(
        draw(record, find_engine(), ViewOptions(dims=Dimensions().read("N C"))), figure="f", title="", description=""
    )
    assert "N×C=8 f32" in picture
    assert "s0" not in picture


def test_one_group_of_names_is_for_all_inputs_that_have_as_many_dimensions(record: Record) -> None:
    assert summary.shapes(named(record, Dimensions().read("N T C"))) == "s0×8, N=3×T=4×C=5 → s0×8"
    assert named(record, ()) is record
    failed = structs.replace(record, root="", bodies={})
    assert named(failed, Dimensions().read("N")) == failed


@pytest.mark.parametrize("text", ["", "1 2", "N, C-", " , "])
def test_what_is_no_name_is_told_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="for example N C H W"):
        Dimensions().read(text)
