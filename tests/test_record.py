"""The record as text: the same in, the same out, and nothing torn or hostile gets in."""

from __future__ import annotations

import dataclasses
import json

import pytest

from sphinx_fxgraph.record import (
    SCHEMA,
    Body,
    BodyInput,
    Failure,
    Module,
    Node,
    Record,
    RecordError,
    Source,
    TensorMeta,
    Totals,
    Value,
    Verdict,
)

X = TensorMeta((1, 4), "f32")
HOSTILE = "</script><b>&amp;\"'\\N{x|y}\x00\x1b\u2028\n∀×"


def linear(name: str, takes: str) -> Node:
    return Node(name, "call_module", name, "Linear", inputs=(Value(takes),), outputs=(X,))


def block(name: str, takes: str, body: str = "Block") -> Node:
    return Node(name, "call_module", name, "Block", body=body, inputs=(Value(takes),))


RECORD = Record(
    spec={"inputs": "f32[1, 4]", "target": "pkg.Net"},
    tracer="symbolic",
    root="Net",
    bodies={
        "Net": Body(
            "pkg.Net",
            nodes=(
                Node("x", "placeholder", "x", "input", outputs=(X,)),
                block("first", "x"),
                block("second", "first"),
                Node("output", "output", "output", "output", inputs=(Value("second"),)),
            ),
            outputs=(Value("second"),),
        ),
        "Block": Body(
            "pkg.Block",
            inputs=(BodyInput("x", (X,)),),
            nodes=(linear("fc", ""), Node("size", "call_method", "size", "size", inputs=(Value("fc"),))),
            outputs=(Value("fc"), Value("size"), Value("")),
        ),
    },
    modules=(Module("first", "pkg.Block", "Block", 20, 20), Module("second", "pkg.Block", "Block", 20, 20, 1)),
    ties={"second.fc.weight": "first.fc.weight"},
    totals=Totals(40, 40, 1, 164, 32, None),
    output="f32[1, 4]",
    verdict=Verdict("path", "it has an if", "pkg/net.py", 12),
    failure=Failure("probe", "RuntimeError", HOSTILE, "pkg/net.py", 3, "first.fc", transient=True),
    notes=("a note",),
    sources=(Source("pkg/net.py", "0" * 64),),
    distributions={"torch": "2.13.0"},
    made_by={"python": "3.11.7"},
)


def nested(depth: int) -> Record:
    """Bodies that each hold the next one."""
    bodies = {f"b{n}": Body("T", nodes=(Node("n", "call_module", "n", "T", body=f"b{n + 1}"),)) for n in range(depth)}
    return Record(spec={}, tracer="symbolic", root="b0", bodies=bodies | {f"b{depth}": Body("T")})


def test_a_record_comes_back_from_its_text_as_it_was() -> None:
    assert Record.from_json(RECORD.to_json()) == RECORD
    assert Record.from_json(RECORD.to_json().encode()) == RECORD


def test_every_field_of_the_record_is_in_the_round_trip() -> None:
    for field in dataclasses.fields(Record):
        if field.name != "schema":
            assert getattr(RECORD, field.name) != getattr(Record(spec={}, tracer=""), field.name)


@pytest.mark.parametrize("text", [HOSTILE, "{{x}}", "]]>", "%s", "\\", '"', "名前", "\ufeff", "a" * 100_000])
def test_any_text_comes_back_unchanged(text: str) -> None:
    node = dataclasses.replace(linear("fc", ""), args=text, config=text, detail=text, target=text)
    record = Record(
        spec={"target": text},
        tracer="symbolic",
        root=text,
        bodies={text: Body(text, inputs=(BodyInput(text),), nodes=(node,))},
        ties={text: text},
        notes=(text,),
    )
    assert Record.from_json(record.to_json()) == record


def test_a_lone_surrogate_does_not_keep_a_record_from_being_written() -> None:
    record = Record(spec={}, tracer="symbolic", failure=Failure("build", "OSError", "no file '\udcff.pt'"))
    again = Record.from_json(record.to_json().encode("utf-8"))
    assert again.failure is not None
    assert again.failure.message == "no file '?.pt'"


def test_the_text_does_not_depend_on_the_order_in_which_a_record_was_put_together() -> None:
    turned = dataclasses.replace(
        RECORD,
        bodies=dict(reversed(list(RECORD.bodies.items()))),
        spec=dict(reversed(list(RECORD.spec.items()))),
    )
    assert turned.to_json() == RECORD.to_json()


def test_each_node_has_a_line_so_that_a_diff_shows_it_alone() -> None:
    body = RECORD.bodies["Block"]
    wider = dataclasses.replace(body.nodes[0], detail="4→8")
    changed = dataclasses.replace(
        RECORD, bodies={**RECORD.bodies, "Block": dataclasses.replace(body, nodes=(wider, *body.nodes[1:]))}
    )
    before, after = RECORD.to_json().splitlines(), changed.to_json().splitlines()
    assert len(before) == len(after)
    assert [json.loads(new.strip().rstrip(","))["detail"] for old, new in zip(before, after, strict=True) if old != new]


def test_what_the_rest_of_a_node_tells_is_not_written_and_is_read_all_the_same() -> None:
    weight, bias = TensorMeta((8, 4, 3, 3), "f32", "weight"), TensorMeta((8,), "f32", "bias", "cuda")
    conv = "torch.nn.modules.conv.Conv2d"
    nodes = (
        Node("conv", "call_module", "conv", "Conv2d", conv, inputs=(Value(""),), args="x", where="Net.forward:1"),
        Node("conv@2", "call_module", "conv", "Conv2d", conv, inputs=(Value("conv"),), parameters=(weight, bias)),
        Node("cat", "call_function", "torch.cat", "cat", args="[conv, x], 1", inputs=(Value("conv"), Value(""))),
        Node("other", "call_module", "other", "Conv2d", "mine.Conv2d", args="()", where="helper:3"),
        Node("none", "call_method", "size", "size", inputs=(Value("cat", 0), Value("", 0))),
    )
    modules = (Module("conv", conv, parameters=8, trainable=8), Module("other", "mine.Conv2d", parameters=8))
    record = Record(
        spec={},
        tracer="symbolic",
        bodies={"Net": Body("pkg.Net", (BodyInput("x", (X,)),), nodes)},
        modules=modules,
    )
    text = record.to_json()
    assert Record.from_json(text) == record
    first, second, third = text.splitlines()[7:10]
    assert json.loads(first.rstrip(",")) == {"inputs": [""], "name": "conv", "type": "Conv2d", "where": ":1"}
    assert json.loads(second.rstrip(","))["parameters"] == [
        ["f32", [8, 4, 3, 3], "weight"],
        ["f32", [8], "bias", "cuda"],
    ]
    assert json.loads(third.rstrip(","))["args"] == "[⋯], 1"
    assert text.count(conv) == 1


def test_the_digest_is_of_the_architecture_and_not_of_what_made_it() -> None:
    assert dataclasses.replace(RECORD, made_by={"python": "3.13.0"}).digest == RECORD.digest
    assert dataclasses.replace(RECORD, output="f32[1, 5]").digest != RECORD.digest


@pytest.mark.parametrize("end", range(0, len(RECORD.to_json()) - 1, 97))
def test_a_torn_record_is_refused(end: int) -> None:
    with pytest.raises(RecordError):
        Record.from_json(RECORD.to_json()[:end])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "[" * 200_000,
        '{"tracer": "symbolic"}',
        '{"spec": {}, "tracer": 3}',
        '{"spec": {}, "tracer": "symbolic", "totals": {"parameters": 1e99}}',
        '{"spec": {}, "tracer": "symbolic", "modules": [{"path": "a"}]}',
        '{"spec": {"a": NaN}, "tracer": "symbolic"}',
        b"\xff\xfe{\x00}\x00",
        b"\x80\x04\x95",  # a pickle
    ],
)
def test_foreign_text_is_refused(text: str | bytes) -> None:
    with pytest.raises(RecordError):
        Record.from_json(text)


def test_a_record_of_a_later_version_is_refused_and_an_older_one_is_read() -> None:
    with pytest.raises(RecordError, match="newer"):
        Record.from_json(dataclasses.replace(RECORD, schema=SCHEMA + 1).to_json())
    older = dataclasses.replace(RECORD, schema=SCHEMA - 1)
    assert Record.from_json(older.to_json()) == older


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"root": "Nothing"}, "no body 'Nothing'"),
        ({"bodies": {"Net": Body("T", nodes=(block("a", "", body="Nothing"),), inputs=(BodyInput("x"),))}}, "no body"),
        ({"bodies": {"Net": Body("T", nodes=(block("a", "", body="Net"),), inputs=(BodyInput("x"),))}}, "itself"),
        ({"bodies": {"Net": Body("T", nodes=(linear("a", "b"), linear("b", "a")))}}, "no such value"),
        ({"bodies": {"Net": Body("T", nodes=(linear("a", ""),))}}, "no such value"),
        ({"bodies": {"Net": Body("T", outputs=(Value("a"),))}}, "no such value"),
        ({"bodies": {"Net": Body("T", outputs=(Value("", -1),), inputs=(BodyInput("x"),))}}, "no such value"),
        ({"bodies": {"Net": Body("T", nodes=(Node("a", "", "", ""), Node("a", "", "", "")))}}, "two nodes"),
    ],
)
def test_references_that_lead_nowhere_or_in_circles_are_refused(change: dict[str, object], message: str) -> None:
    text = dataclasses.replace(RECORD, **change).to_json()  # type: ignore[arg-type]
    with pytest.raises(RecordError, match=message):
        Record.from_json(text)


def test_a_small_file_that_stands_for_an_endless_graph_is_refused() -> None:
    bodies = {
        f"b{n}": Body("T", nodes=tuple(Node(f"n{k}", "call_module", "", "", body=f"b{n + 1}") for k in range(100)))
        for n in range(10)
    }
    record = Record(spec={}, tracer="symbolic", root="b0", bodies={**bodies, "b10": Body("T")})
    with pytest.raises(RecordError, match="operators"):
        Record.from_json(record.to_json())


@pytest.mark.parametrize("depth", [300, 5000])
def test_a_nest_deeper_than_any_model_is_refused(depth: int) -> None:
    with pytest.raises(RecordError):
        Record.from_json(nested(depth).to_json())


def test_a_deep_nest_is_read_and_walked() -> None:
    record = Record.from_json(nested(150).to_json())
    assert len(list(record.walk())) == 150


def test_operators_count_repeated_bodies_each_time() -> None:
    assert RECORD.operators == 2 + 2 * 2
    assert [path for path, _, node in RECORD.walk() if node.name == "fc"] == ["first", "second"]


def test_the_tensors_of_a_value_are_found_through_the_bodies_they_come_from() -> None:
    net = RECORD.bodies["Net"]
    assert RECORD.metas(net, Value("second", 0)) == (X,)
    assert RECORD.metas(net, Value("second", 1)) == ()
    assert RECORD.metas(net, Value("second", 2)) == (X,)  # straight through both blocks
