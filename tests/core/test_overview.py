"""The default view: rows, what is open, what closed modules say, panels, and what is left out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from bs4 import BeautifulSoup

from sphinx_fxgraph.layout.graphviz import find_engine
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Body, BodyInput, Node, Record, TensorMeta
from sphinx_fxgraph.render import document, drawing
from sphinx_fxgraph.render.picture import input_names
from sphinx_fxgraph.render.scene import Frame
from sphinx_fxgraph.view import fonts, labels, levels
from sphinx_fxgraph.view.level import Box, Level


def tensor(*shape: int) -> tuple[TensorMeta, ...]:
    return (TensorMeta(shape, "f32"),)


IMAGE = tensor(1, 8, 16, 16)


def op(name: str, kind: str, *inputs: str | Value, outputs: tuple[TensorMeta, ...] = IMAGE, **more: object) -> Node:
    call = str(more.pop("op", "call_module"))
    values = tuple(value if isinstance(value, Value) else Value(value) for value in inputs)
    return Node(name, call, kind, kind, inputs=values, outputs=outputs, **more)  # type: ignore[arg-type]


def module(name: str, body: str, *inputs: str, kind: str = "Block") -> Node:
    return op(name, kind, *inputs, outputs=(), body=body, type=f"pkg.{kind}")


def body(name: str, *nodes: Node, given: tuple[TensorMeta, ...] = IMAGE, inputs: int = 1) -> Body:
    return Body(name, tuple(BodyInput(f"in{k}", given) for k in range(inputs)), nodes, (Value(nodes[-1].name),))


def chain(*kinds: str, given: str = "", outputs: tuple[TensorMeta, ...] = IMAGE) -> tuple[Node, ...]:
    names = [f"{kind.lower()}{number}" for number, kind in enumerate(kinds)]
    return tuple(
        op(name, kind, before, outputs=outputs)
        for (before, name), kind in zip(itertools.pairwise([given, *names]), kinds, strict=True)
    )


def model(*nodes: Node, **bodies: Body) -> Record:
    """A model with one image as input, whose output is the result of its last node."""
    ends = (op("x", "input", op="placeholder"), op("output", "output", nodes[-1].name, op="output"))
    return Record({}, "symbolic", "Net", {"Net": Body("Net", (), (ends[0], *nodes, ends[1])), **bodies})


def boxes(level: Level) -> Iterator[Box]:
    for box in level.boxes:
        yield box
        if box.inner:
            yield from boxes(box.inner)


def root(record: Record, **look: object) -> Level:
    return levels.root_level(record, ViewOptions(**look))  # type: ignore[arg-type]


def svg(record: Record, *, paper: bool = False, **look: object) -> BeautifulSoup:
    job = drawing.Job(record, ViewOptions(**look), paper=paper)  # type: ignore[arg-type]
    assert drawing.lay_out([job], find_engine()) == []
    picture = drawing.scene(job)
    if paper:
        return BeautifulSoup(document.print_svg(picture, title="t", description="d"), "xml")
    return BeautifulSoup(document.page_svg(picture, figure="f", title="t", description="d", rows=True), "xml")


BLOCK = body("Block", *chain("Conv2d", "BatchNorm2d", "ReLU"), op("add", "add", "relu2", "", op="call_function"))


def blocks(count: int) -> tuple[Node, ...]:
    names = [f"b{number}" for number in range(count)]
    return tuple(module(name, "Block", before) for before, name in itertools.pairwise(["", *names]))


# -- rows


def test_a_straight_stretch_is_one_box_whose_rows_are_nodes() -> None:
    page = svg(model(*chain("Conv2d", "BatchNorm2d", "ReLU", given="x")))
    (stack,) = page.select("g.fxg-rows")
    rows = stack.select("g.fxg-op.fxg-row")
    assert [row["data-path"] for row in rows] == ["conv2d0", "batchnorm2d1", "relu2"]
    assert [row["id"] for row in rows] == ["f-conv2d0", "f-batchnorm2d1", "f-relu2"]
    assert [row.select_one("a")["href"] for row in rows] == ["#f-row-conv2d0", "#f-row-batchnorm2d1", "#f-row-relu2"]
    assert all(row.select_one("title") for row in rows)
    assert ["fxg-matmul" in rows[0]["class"], "fxg-norm" in rows[1]["class"], "fxg-act" in rows[2]["class"]] == [
        True
    ] * 3
    assert stack.get_text().count("1×8×16×16 f32") - str(stack.select("title")).count("1×8×16×16 f32") == 1


def test_a_row_says_its_shape_if_the_next_has_another() -> None:
    nodes = (*chain("Conv2d", "ReLU", given="x"), op("pool", "MaxPool2d", "relu1", outputs=tensor(1, 8, 8, 8)))
    page = svg(model(*nodes))
    shapes = [[text.get_text() for text in row.select("text.fxg-shape")] for row in page.select("g.fxg-row")]
    assert shapes == [[], ["1×8×16×16 f32"], ["1×8×8×8 f32"]]


def test_only_the_first_row_takes_several_values() -> None:
    add = op("add", "add", "relu1", "x", op="call_function")
    nodes = (*chain("Conv2d", "ReLU", given="x"), add, op("relu", "ReLU", "add"))
    stacks = [[row.node.name for row in box.rows] for box in boxes(root(model(*nodes))) if box.rows]
    assert stacks == [["conv2d0", "relu1"], ["add", "relu"]]


def test_edges_join_the_rows_at_the_ends_of_a_box() -> None:
    page = svg(model(*chain("Conv2d", "ReLU", given="x")))
    ends = {(edge["data-from"], edge["data-to"]) for edge in page.select("path.fxg-edge")}
    assert ends == {("x", "conv2d0"), ("relu1", "output")}


@pytest.mark.parametrize("length", [8, 9, 20])
def test_a_box_has_at_most_eight_rows(length: int) -> None:
    found = [
        len(box.rows)
        for box in boxes(
            root(model(*chain(*["ReLU", "Tanh"] * (length // 2), *["ReLU"] * (length % 2), given="x")), fold="off")
        )
        if box.rows
    ]
    assert sum(found) == length
    assert max(found) <= 8
    assert max(found) - min(found) <= 2


def test_rows_off_draws_a_box_for_each_operator() -> None:
    page = svg(model(*chain("Conv2d", "ReLU", given="x")), rows="off")
    assert not page.select(".fxg-rows")
    assert len(page.select("g.fxg-op")) == 4


# -- what is open


def test_the_first_view_is_within_its_limits_and_the_rest_is_closed() -> None:
    stages = [Body(f"S{k}", (BodyInput("x", IMAGE),), blocks(6), (Value("b5"),)) for k in range(6)]
    names = [f"layer{k}" for k in range(6)]
    nodes = [
        module(name, f"S{k}", before, kind="Sequential")
        for k, (before, name) in enumerate(itertools.pairwise(["x", *names]))
    ]
    record = model(*nodes, Block=BLOCK, **{stage.type: stage for stage in stages})
    for look in ({}, {"panels": "no"}):
        page = svg(record, **look).svg
        assert page is not None
        assert float(page["height"]) <= 900
        assert float(page["width"]) <= 760
    opened = svg(record, depth=2).svg
    assert opened is not None
    assert float(opened["height"]) > 900


def test_alike_siblings_are_all_open_or_one_is_the_example_of_its_kind() -> None:
    wide = body(
        "Wide",
        *(node for k in range(6) for node in (op(f"a{k}", "add", f"a{k - 1}" if k else "", "", op="call_function"),)),
    )
    names = [f"m{k}" for k in range(8)]
    record = model(*(module(name, "Wide", before) for before, name in itertools.pairwise(["x", *names])), Wide=wide)
    found = [box for box in boxes(root(record, fold="off", panels="no")) if box.node.kind == "Block"]
    assert [bool(box.inner) for box in found] in ([True] * 8, [False] * 8, [True] + [False] * 7)
    if sum(bool(box.inner) for box in found) == 1:
        assert found[0].example
        assert "the others are closed" in svg(record, fold="off", panels="no").get_text()


def test_a_closed_wrapper_says_what_it_holds_and_how_it_changes_sizes() -> None:
    half = tensor(1, 16, 8, 8)
    down = body("Down", *chain("Conv2d", "ReLU", outputs=half))
    same = body("Same", *chain("Conv2d", "ReLU", outputs=half), given=half)
    stage = Body("Stage", (BodyInput("x", IMAGE),), (module("0", "Down", ""), module("1", "Same", "0")), (Value("1"),))
    record = model(module("layer1", "Stage", "x", kind="Sequential"), Down=down, Same=same, Stage=stage)
    (label,) = (box.label for box in drawn(record, depth=0) if box.label.closed)
    assert (label.kind, label.detail, label.name, label.shape) == ("Block ×2", "8→16, ½", "layer1", "1×16×8×8 f32")


def drawn(record: Record, **look: object) -> tuple[drawing.Drawn, ...]:
    job = drawing.Job(record, ViewOptions(**look))  # type: ignore[arg-type]
    drawing.lay_out([job], find_engine())
    return drawing.scene(job).boxes


def test_a_stage_of_unequal_blocks_is_one_box_that_opens_to_them() -> None:
    shortcut = module("shortcut", "Same", "", kind="Shortcut")
    first = body("First", shortcut, *BLOCK.nodes[:-1], op("add", "add", "relu2", "shortcut", op="call_function"))
    nodes = (
        module("b0", "First", "x"),
        module("b1", "Block", "b0"),
        module("b2", "Block", "b1"),
        *chain("Linear", given="b2"),
    )
    record = model(*nodes, First=first, Block=BLOCK, Same=body("Same", *chain("Conv2d", "Tanh")))
    view = levels.overview(record, ViewOptions(panels="no"))
    (stage,) = (box for box in boxes(view.root) if box.stage)
    assert stage.stage is not None
    assert (stage.node.kind, stage.stage.count, stage.stage.difference) == ("Block", 3, "first with shortcut")
    assert stage.names == ("b0", "b1", "b2")
    inside = stage.inner or view.closed_levels()[stage.node.body]
    assert [box.node.name for box in inside.boxes] == ["b0", "b1", "b2"]
    assert not [box for box in boxes(root(record, fold="off")) if box.stage]


def test_the_operators_of_a_helper_function_are_one_box() -> None:
    helper = tuple(
        op(f"h{k}", kind, f"h{k - 1}" if k else "conv", op="call_function", where="paste_masks:12")
        for k, kind in enumerate(("mul", "add", "sub", "exp", "log", "abs", "neg"))
    )
    record = model(op("conv", "Conv2d", "x"), *helper, op("end", "Linear", "h6"))
    labels = {box.node.kind: box.node.detail for box in boxes(root(record))}
    assert labels["paste_masks"] == "7 operators"
    assert "paste_masks" not in {box.node.kind for box in boxes(root(record, depth=1))}


# -- panels


def panelled() -> Record:
    return model(
        *(module(f"b{k}", "Block", f"b{k - 1}" if k else "x") for k in range(2)),
        op("head", "Conv2d", "b1", macs=10),
        Block=WEIGHTY,
    )


WEIGHTY = body(
    "Block",
    op("conv", "Conv2d", "", macs=1000, parameters=tensor(8, 8, 3, 3)),
    op("add", "add", "conv", "", op="call_function"),
    op("relu", "ReLU", "add"),
)


def test_each_kind_of_block_is_drawn_once_and_letters_lead_there_and_back() -> None:
    page = svg(panelled())
    (panel,) = page.select("g.fxg-panel")
    assert (panel["data-type"], panel["id"]) == ("pkg.Block", "f--panel-a")
    assert "(a)Block×2" in panel.get_text()
    assert [op["id"] for op in panel.select("g.fxg-op")] == ["f-b0.conv", "f-b0.add", "f-b0.relu"]
    letters = page.select("g.fxg-closed a.fxg-see")
    assert [letter["href"] for letter in letters] == ["#f--panel-a"] * 2
    back = panel.select("a")[-1]["href"]
    assert page.select_one(f'[id="{back[1:]}"]') is letters[0]
    ids = [part["id"] for part in page.select("[id]")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("names", [("x", "skip"), ("hidden_states", "attention_mask"), ("a" * 40, "b" * 40)])
def test_names_of_a_panels_inputs_stand_free_of_each_other(names: tuple[str, str]) -> None:
    boxes = []
    frame = Frame(
        "", None, 2, 0, 0, 180, 90, 8, (), (), (), (), (), inputs=tuple(zip((60.0, 150.0), names, strict=True))
    )
    for x, name, is_right in input_names(frame):
        width = fonts.mono(name, labels.NAME_SIZE)
        boxes.append((x, x + width) if is_right else (x - width, x))
    lefts, rights = zip(*sorted(boxes), strict=True)
    assert all(left > right for left, right in zip(lefts, (0, *rights), strict=False))
    assert rights[-1] < 180


def test_panels_are_on_paper_too_and_no_leaves_them_out() -> None:
    assert "(a)" in svg(panelled(), paper=True).get_text()
    assert not svg(panelled(), panels="no").select("g.fxg-panel")
    assert not svg(panelled(), depth=3).select("g.fxg-panel")


# -- what is left out, what is shared


def test_guards_and_unused_results_are_left_out_and_counted() -> None:
    guard = (
        op("dim", "dim", "x", op="call_method", outputs=()),
        op("eq", "eq", "dim", op="call_function", outputs=()),
        op("assert", "assert", "eq", op="call_function", outputs=()),
        op("unused", "mul", "x", op="call_function", marks=("dead",)),
    )
    record = model(*guard, op("conv", "Conv2d", "x"))
    job = drawing.Job(record)
    assert [box.node.name for box in boxes(job.composer.root)] == ["x", "conv", "output"]
    assert job.left_out == 4
    shown = {box.node.name for box in boxes(root(record, nontensor="show", rows="off"))}
    assert {"dim", "eq", "assert", "unused"} <= shown


def test_an_input_that_only_a_guard_reads_has_no_line_into_the_module() -> None:
    inner = body(
        "Inner",
        op("size", "size", Value("", 1), op="call_method", outputs=()),
        op("assert", "assert", "size", op="call_function", outputs=()),
        op("conv", "Conv2d", Value("", 0)),
        op("relu", "ReLU", "conv"),
        inputs=2,
    )
    record = model(op("mask", "Tanh", "x"), module("m", "Inner", "x", "mask"), Inner=inner)
    (box,) = (box for box in boxes(root(record, depth=1)) if box.node.name == "m")
    assert [value.node for value in box.node.inputs] == ["x"]


def test_each_call_says_with_which_it_shares_its_weights() -> None:
    weight = tensor(4, 4)
    nodes = (
        op("fc", "Linear", "x", parameters=weight),
        op("fc@2", "Linear", "fc", parameters=weight),
        op("act", "ReLU", "fc@2"),
        op("act@2", "ReLU", "act"),
    )
    said = {box.node.name: box.shared for box in boxes(root(model(*nodes), rows="off"))}
    assert (said["fc"], said["fc@2"], said["act@2"]) == ("shared by 2 calls", "shared with fc", "")


def test_many_results_of_one_closed_module_leave_a_frame_together() -> None:
    many = Body(
        "Many",
        (BodyInput("x", IMAGE),),
        chain("Conv2d", "ReLU", "Tanh"),
        (Value("conv2d0"), Value("relu1"), Value("tanh2")),
    )
    outer = Body(
        "Outer", (BodyInput("x", IMAGE),), (module("many", "Many", ""),), tuple(Value("many", k) for k in range(3))
    )
    nodes = (
        module("outer", "Outer", "x", kind="Outer"),
        op("cat", "cat", *(Value("outer", k) for k in range(3)), op="call_function"),
    )
    level = root(model(*nodes, Many=many, Outer=outer), depth=1)
    (box,) = (box for box in boxes(level) if box.inner)
    assert box.inner is not None
    assert (box.inner.outputs, box.inner.outs) == (1, (0, 0, 0))


def test_selections_of_one_result_are_one_box() -> None:
    parts = [op(f"part{k}", "getitem", "split", op="call_function", outputs=tensor(1, k + 1, 4)) for k in range(5)]
    split = op("split", "split", "x", op="call_function", outputs=tensor(1, 1, 4) * 5)
    record = model(split, *parts, op("cat", "cat", *(part.name for part in parts), op="call_function"))
    folded = next(box for box in root(record).boxes if box.node.kind == "getitem")
    assert folded.run
    assert folded.run.count == 5
    assert folded.names == tuple(part.name for part in parts)
    assert folded.tensors[0].shape == (1, "1…5", 4)


def test_a_default_view_that_would_be_too_wide_opens_less() -> None:
    wide = [op(f"branch{k}", "Conv2d", "") for k in range(6)]
    join = op("cat", "cat", *(each.name for each in wide), op="call_function")
    record = model(
        module("stem", "Wide", "x", kind="Wide"),
        module("head", "Block", "stem"),
        Wide=body("Wide", *wide, join),
        Block=BLOCK,
    )
    picture = svg(record).svg
    assert picture
    assert float(str(picture["width"])) <= 760
