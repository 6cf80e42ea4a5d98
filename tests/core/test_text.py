"""What a record says in words and rows."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.record.model import Body, BodyInput, Module, Node, Record, TensorMeta, Totals, Verdict
from sphinx_fxgraph.render.node_table import node_rows
from sphinx_fxgraph.render.summary import describe, facts, outline
from sphinx_fxgraph.units import Units

SMALL = TensorMeta((1, 8), "f32")
SCALAR = TensorMeta((), "i64")


def op(name: str, op_: str, kind: str, *inputs: Value | str, **fields: Any) -> Node:
    values = tuple(value if isinstance(value, Value) else Value(value) for value in inputs)
    return Node(
        name, op_, fields.pop("target", name), kind, args=values, inputs=values, **{"outputs": (SMALL,)} | fields
    )


def call(name: str, body: str, *inputs: Value | str) -> Node:
    return op(name, "call_module", body, *inputs, body=body, outputs=())


LINEAR = op(
    "fc",
    "call_module",
    "Linear",
    Value(""),
    type="torch.nn.modules.linear.Linear",
    detail="8→8",
    config="in_features=8, out_features=8",
    parameters=(TensorMeta((8, 8), "f32", "weight"), TensorMeta((8,), "f32", "bias")),
    macs=64,
)

BLOCK = Body(
    "pkg.net.Block",
    (BodyInput("x", (SMALL,)),),
    (LINEAR, op("add", "call_function", "add", "fc", Value(""), target="operator.add")),
    (Value("add"),),
)
"""A residual block."""

NET = Record(
    spec={"target": "pkg.net.Net"},
    tracer="symbolic",
    root="Net",
    bodies={
        "Block": BLOCK,
        # Two blocks in a row; the second output is the input, passed straight through.
        "Stage": Body(
            "torch.nn.modules.container.Sequential",
            (BodyInput("input", (SMALL,)),),
            (call("0", "Block", Value("")), call("1", "Block", "0")),
            (Value("1"), Value("")),
        ),
        "Net": Body(
            "pkg.net.Net",
            nodes=(
                op("x", "placeholder", "input"),
                op("n", "placeholder", "input", outputs=(SCALAR,)),
                call("stage", "Stage", "x"),
                op("size", "call_method", "size", "stage", outputs=(), result="Size([1, 8])"),
                op("sum", "call_function", "add", "stage", Value("stage", 1), "size", target="torch.add"),
                op("scale", "get_attr", "parameter", target="scale"),
                op(
                    "output",
                    "output",
                    "output",
                    "sum",
                    "scale",
                    outputs=(replace(SMALL, path="['out']"), replace(SMALL, path="['aux']", dtype="f64")),
                ),
            ),
        ),
    },
    modules=(
        Module("", "pkg.net.Net", "Net"),
        Module("stage", "torch.nn.modules.container.Sequential", "Stage"),
        Module("stage.0", "pkg.net.Block", "Block", parameters=0),
        Module("stage.0.fc", "torch.nn.modules.linear.Linear", parameters=72, trainable=72),
        Module("stage.1", "pkg.net.Block", "Block"),
        Module("stage.1.fc", "torch.nn.modules.linear.Linear", parameters=72, trainable=72),
    ),
    totals=Totals(parameters=11_689_512, trainable=11_689_512, macs=1_814_073_344),
    verdict=Verdict("same"),
)

FAILED = Record(
    spec={"target": "pkg.net.Net"},
    tracer="symbolic",
    failure=Failure("build", "ValueError", "3 heads do not divide 10", "pkg/net.py", 7),
)


def test_facts() -> None:
    assert facts(NET) == (
        "10 ops",
        "11,689,512 parameters",
        "1.81 GMACs",
        "1×8, scalar → 1×8, 1×8",
        "same graph for every input value",
    )


def test_facts_tell_trainable_parameters_apart() -> None:
    frozen = replace(NET, totals=replace(NET.totals, trainable=1000, macs=None), verdict=Verdict("path"))
    assert facts(frozen)[1:3] == ("11,689,512 parameters (1,000 trainable)", "1×8, scalar → 1×8, 1×8")
    assert facts(frozen)[-1] == "one path, as run"


def test_the_facts_say_why_a_graph_is_one_path_and_where() -> None:
    verdict = Verdict("path", "a branch asks for a value. See the documentation of torch.fx", "zoo/branch.py", 23)
    told = facts(Record(spec={}, tracer="observed", verdict=verdict))
    assert told == ("one path, as run (zoo/branch.py:23: a branch asks for a value)",)


def test_only_what_is_known_is_a_fact() -> None:
    assert facts(FAILED) == ()
    net = NET.bodies["Net"]
    partial = replace(
        NET,
        bodies={**NET.bodies, "Net": replace(net, nodes=net.nodes[:-1])},
        totals=Totals(parameters=144, trainable=144),
        verdict=None,
        failure=Failure("probe", "RuntimeError", "it does not fit", node="sum"),
    )
    assert facts(partial) == ("144 parameters",)
    assert describe(partial).endswith("144 parameters; failed at sum: it does not fit")


def test_many_inputs_are_counted() -> None:
    nodes = (*(op(f"x{number}", "placeholder", "input") for number in range(6)), op("output", "output", "output", "x0"))
    record = Record(spec={}, tracer="symbolic", root="Net", bodies={"Net": Body("Net", nodes=nodes)})
    assert facts(record)[-1] == "1×8, 1×8, 1×8, 1×8, … (6 tensors) → 1×8"


def test_facts_tell_dtypes_apart_and_name_what_is_tied() -> None:
    mixed = replace(NET, totals=replace(NET.totals, dtypes={"f32": 11_000_000, "bf16": 689_512}))
    assert facts(mixed)[1] == "11,689,512 parameters (689,512 bf16, 11,000,000 f32)"
    half = replace(NET, totals=replace(NET.totals, dtypes={"bf16": 11_689_512}))
    assert facts(half)[1] == "11,689,512 parameters (bf16)"
    tied = replace(NET, ties={"stage.1.fc.weight": "stage.0.fc.weight", "buffer": "other"})
    assert facts(tied)[1] == "11,689,512 parameters (stage.1.fc.weight is stage.0.fc.weight)"


def test_facts_as_a_project_writes_numbers() -> None:
    counted = replace(NET, totals=replace(NET.totals, extra_macs=4_992_512))
    assert facts(counted, Units("SI"))[1:3] == ("11.7 M parameters", "1.81 GMACs")
    assert facts(counted, Units("grouped"))[2] == "1,814,073,344 MACs"
    assert facts(counted, Units("auto", "all"))[2] == "1.82 GMACs with norms and pooling"


def test_description() -> None:
    # The sum in the root takes a tensor and the same tensor after two blocks: with theirs, three.
    assert describe(NET) == ("10 ops, 1×8, scalar → 1×8, 1×8, 2 linear layers, 3 residual adds, 11,689,512 parameters")
    assert describe(FAILED) == "failed: 3 heads do not divide 10"


def test_a_sum_of_two_inputs_is_not_residual() -> None:
    nodes = (
        op("x", "placeholder", "input"),
        op("y", "placeholder", "input"),
        op("conv", "call_module", "MyConv", "x", base="Conv2d"),
        op("add", "call_function", "add", "conv", "y"),
        op("output", "output", "output", "add"),
    )
    record = Record(spec={}, tracer="symbolic", root="Net", bodies={"Net": Body("Net", nodes=nodes)})
    assert describe(record) == "5 ops, 1×8, 1×8 → 1×8, 1 convolution"


def test_rows_are_grouped_by_body() -> None:
    groups = node_rows(NET)
    assert [(group.heading, group.paths) for group in groups] == [
        ("Net", ("",)),
        ("stage.0 Block ×2", ("stage.0", "stage.1")),
    ]
    assert [[row.path for row in group.rows] for group in groups] == [
        ["x", "n", "size", "sum", "scale", "output"],
        ["stage.0.fc", "stage.0.add"],
    ]


def test_a_row() -> None:
    fc, add = node_rows(NET)[1].rows
    assert (fc.name, fc.op, fc.kind, fc.detail) == ("fc", "call_module", "Linear", "8→8")
    assert (fc.target, fc.arguments, fc.config) == ("stage.0.fc", "x", "in_features=8, out_features=8")
    assert (fc.input_shape, fc.output_shape, fc.dtype, fc.parameters, fc.macs) == ("1×8", "1×8", "f32", 72, 64)
    assert (add.target, add.input_shape, add.parameters, add.macs) == ("operator.add", "1×8, 1×8", None, None)


def test_a_tied_parameter_counts_where_it_is_registered_first() -> None:
    tied = replace(NET, ties={"stage.0.fc.bias": "first.bias"})
    row = node_rows(tied)[1].rows[0]
    assert (row.parameters, row.tied) == (64, (("bias", "first.bias"),))


def test_a_row_without_tensors_and_one_with_two() -> None:
    rows = {row.name: row for row in node_rows(NET)[0].rows}
    assert (rows["size"].output_shape, rows["size"].dtype) == ("", "")
    assert rows["sum"].input_shape == "1×8, 1×8"  # the size among the arguments is no tensor
    assert (rows["output"].output_shape, rows["output"].dtype) == ("['out'] 1×8, ['aux'] 1×8", "f32, f64")


def test_connections_lead_into_and_out_of_bodies() -> None:
    rows = {row.path: row for group in node_rows(NET) for row in group.rows}
    assert rows["stage.0.fc"].connected == (("stage.0.add", "add"),)
    # Into the first block, and straight through the stage to the sum.
    assert rows["x"].connected == (("stage.0.fc", "stage.0.fc"), ("stage.0.add", "stage.0.add"), ("sum", "sum"))
    # Out of the block into the next.
    assert rows["stage.0.add"].connected == (("stage.1.fc", "stage.1.fc"), ("stage.1.add", "stage.1.add"))
    assert rows["sum"].connected == (("output", "output"),)
    assert rows["output"].connected == ()


def test_symbolic_sizes() -> None:
    weight = TensorMeta(("s0", 8), "f32", "weight")
    nodes = (
        op("x", "placeholder", "input", outputs=(TensorMeta(("s0", 8), "f32"),)),
        op("fc", "call_module", "Linear", "x", parameters=(weight,)),
    )
    record = Record(spec={}, tracer="export", root="Net", bodies={"Net": Body("Net", nodes=nodes)})
    x, fc = node_rows(record)[0].rows
    assert x.output_shape == "s0×8"
    assert fc.parameters is None


def test_outline() -> None:
    assert outline(NET).splitlines() == [
        "Net",
        "  x        input       1×8 f32",
        "  n        input       scalar i64",
        "  stage    Stage       1×8 f32, 1×8 f32",
        "    0      Block       1×8 f32",
        "      fc   Linear 8→8  1×8 f32",
        "      add  add         1×8 f32",
        "    1      Block       1×8 f32  as stage.0",
        "  size     size        Size([1, 8])",
        "  sum      add         1×8 f32",
        "  scale    parameter   1×8 f32",
        "  output   output      ['out'] 1×8 f32, ['aux'] 1×8 f64",
    ]


def test_outline_without_a_graph_is_that_of_the_modules() -> None:
    lines = outline(replace(NET, root="", bodies={})).splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "Net",
        "stage Sequential",
        "0 Block",
        "fc Linear 72 parameters",
        "1 Block",
        "fc Linear 72 parameters",
    ]
    assert [len(line) - len(line.lstrip()) for line in lines] == [0, 2, 4, 6, 4, 6]


def test_nothing_is_known() -> None:
    assert outline(FAILED) == ""
    assert node_rows(FAILED) == []
