"""The record as text: the same in, the same out, and nothing torn or hostile gets in."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from msgspec import structs
from older import older_json

from sphinx_fxgraph.record.arguments import (
    MOST_CHARACTERS,
    Argument,
    Dict,
    List,
    Name,
    Object,
    Size,
    Slice,
    Text,
    Tuple,
    Value,
    format_call,
    leaves,
    values_in,
)
from sphinx_fxgraph.record.diff import compare
from sphinx_fxgraph.record.header import SCHEMA, Failure, RecordError, Source
from sphinx_fxgraph.record.json_schema import json_schema
from sphinx_fxgraph.record.model import Body, BodyInput, Module, Node, Record, Remark, TensorMeta, Totals, Verdict

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
    remarks=(Remark("random", "torch.rand", "pkg/net.py", 7),),
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
    for field in structs.fields(Record):
        if field.name != "schema":
            assert getattr(RECORD, field.name) != getattr(Record(spec={}, tracer=""), field.name)


@pytest.mark.parametrize("text", [HOSTILE, "{{x}}", "]]>", "%s", "\\", '"', "名前", "\ufeff", "a" * 100_000])
def test_any_text_comes_back_unchanged(text: str) -> None:
    node = structs.replace(linear("fc", ""), args=(text,), config=text, detail=text, target=text)
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
    turned = structs.replace(
        RECORD,
        bodies=dict(reversed(list(RECORD.bodies.items()))),
        spec=dict(reversed(list(RECORD.spec.items()))),
    )
    assert turned.to_json() == RECORD.to_json()


def test_each_node_has_a_line_so_that_a_diff_shows_it_alone() -> None:
    body = RECORD.bodies["Block"]
    wider = structs.replace(body.nodes[0], detail="4→8")
    changed = structs.replace(
        RECORD, bodies={**RECORD.bodies, "Block": structs.replace(body, nodes=(wider, *body.nodes[1:]))}
    )
    before, after = RECORD.to_json().splitlines(), changed.to_json().splitlines()
    assert len(before) == len(after)
    assert [json.loads(new.strip().rstrip(","))["detail"] for old, new in zip(before, after, strict=True) if old != new]


def lines(record: Record, start: str) -> list[Any]:
    """The entries of a list in the text of a record, read one line at a time."""
    text = record.to_json().splitlines()
    first = next(number for number, line in enumerate(text, 1) if line.strip() == start)
    entries = itertools.takewhile(lambda line: not line.strip().startswith("]"), text[first:])
    return [json.loads(line.strip().rstrip(",")) for line in entries]


CONV = "torch.nn.modules.conv.Conv2d"
WEIGHT, BIAS = TensorMeta((8, 4, 3, 3), "f32", "weight"), TensorMeta((8,), "f32", "bias", "cuda")


def test_what_the_rest_of_a_node_tells_is_not_written_and_is_read_all_the_same() -> None:
    nodes = (
        Node("conv", "call_module", "conv", "Conv2d", CONV, args=(Value(""),), inputs=(Value(""),)),
        Node("conv@2", "call_module", "conv", "Conv2d", CONV, inputs=(Value("conv"),), parameters=(WEIGHT, BIAS)),
        Node("add_1", "call_function", "operator.add", "add", args=(Value("conv"), 1), inputs=(Value("conv"),)),
        Node("other", "call_module", "other", "Conv2d", "mine.Conv2d"),
        Node("none", "call_method", "size", "size", inputs=(Value("add_1", 0), Value("", 0))),
    )
    inputs = (BodyInput("x", (X,)), BodyInput("both", (X, X)), BodyInput("none"), BodyInput("", (X,)))
    record = Record(spec={}, tracer="symbolic", bodies={"Net": Body("pkg.Net", inputs, nodes)})
    assert Record.from_json(record.to_json()) == record
    first, second, third, fourth, _ = lines(record, '"nodes":[')
    assert first == {"name": "conv", "type": "Conv2d"}
    assert second["parameters"] == ["f32[8, 4, 3, 3] weight", msgspec.to_builtins(BIAS) | {"shape": [8]}]
    assert third == {"name": "add_1", "target": "operator.add", "args": ["$conv", 1]}
    assert fourth == {"name": "other", "type": "mine.Conv2d", "args": []}
    assert record.to_json().count(CONV) == 1


ARGUMENTS = (
    *(None, True, False, 0, -1, 2**70, 1.0, 1e-5, "", "$", "a 'word'", HOSTILE),
    *(Value(""), Value("lstm", 1), Name("torch.float32"), Name("..."), Name("inf"), Size("2*s0"), Text("f32[3]")),
    *(Slice(), Slice(None, Value("n"), 2), List(), List((1, 1.0, True)), Tuple(("$", "n")), Tuple((Value("n"),))),
    Dict((("key", Value("n")), (0, List((Value("n"), Dict()))))),
    Object("Size", (List((1, Size("s0"))),), (("x", Value("n")), ("y", None))),
)


@pytest.mark.parametrize("argument", ARGUMENTS, ids=repr)
def test_any_argument_comes_back_with_its_type_and_its_values(argument: Argument) -> None:
    inputs = values_in((argument,), (argument,))
    node = Node("f", "call_function", "f", "f", args=(argument,), kwargs={"k": argument}, inputs=inputs)
    nodes = (Node("n", "call_function", "n", "n"), Node("lstm", "call_module", "", "", body="Two"), node)
    outputs = (Value(""), Value(""))
    bodies = {"B": Body("B", (BodyInput("x"),), nodes), "Two": Body("Two", (BodyInput("x"),), outputs=outputs)}
    record = Record(spec={}, tracer="symbolic", root="B", bodies=bodies)
    again = Record.from_json(record.to_json())
    assert repr(again) == repr(record)  # 1, 1.0 and True are equal
    assert '"inputs":["$' not in record.to_json()


def test_arguments_are_written_as_python_writes_them() -> None:
    def text(*args: Argument, **kwargs: Argument) -> str:
        return format_call(args, kwargs, lambda value: value.node or "x")

    assert text(Value(""), 1, dim=Value("n")) == "x, 1, dim=n"
    assert text(Tuple((Slice(), Slice(0, Value("n")), Slice(None, None, 2), Name("...")))) == "(:, 0:n, ::2, ...)"
    assert text(Tuple((1,)), List((1.5, "a")), Dict((("k", True),))) == "(1,), [1.5, 'a'], {'k': True}"
    assert text(Object("Out", (), (("logits", Value("fc")),))) == "Out(logits=fc)"
    assert len(text("word " * 100)) == MOST_CHARACTERS


def test_arguments_nested_without_end_are_refused() -> None:
    argument: Argument = 1
    for _ in range(200):
        argument = List((argument,))
    record = Record(
        spec={}, tracer="", bodies={"B": Body("B", nodes=(Node("n", "call_method", "", "", args=(argument,)),))}
    )
    with pytest.raises(RecordError, match="levels"):
        Record.from_json(record.to_json())


def family(*modules: Module) -> Record:
    """Two blocks of one body, and these modules."""
    conv = Node("conv", "call_module", "conv", "Conv2d", CONV, parameters=(WEIGHT,), inputs=(Value(""),))
    blocks = tuple(Node(name, "call_module", name, "Block", "Block", body="Block") for name in ("a", "list.b"))
    bodies = {"Net": Body("Net", nodes=blocks), "Block": Body("Block", (BodyInput("x", (X,)),), (conv,))}
    return Record(spec={}, tracer="symbolic", root="Net", bodies=bodies, modules=modules)


NET, LIST = Module("", "Net", "Net"), Module("list", "torch.nn.ModuleList")
BLOCKS = (Module("a", "Block", "Block"), Module("list.b", "Block", "Block"))
CONVS = tuple(Module(f"{block.path}.conv", CONV, "", 288, 288, 0, 1152) for block in BLOCKS)


def test_modules_that_are_the_same_below_another_are_not_listed_again() -> None:
    record = family(NET, BLOCKS[0], CONVS[0], LIST, BLOCKS[1], CONVS[1], Module("c", CONV))
    assert Record.from_json(record.to_json()) == record
    listed = lines(record, '"modules":[')
    assert [entry["path"] for entry in listed] == ["", "a", "a.conv", "list", "list.b", "c"]
    assert listed[1:3] == [
        {"path": "a", "body": "Block"},
        {"path": "a.conv", "type": "Conv2d", "parameters": 288, "bytes": 1152},
    ]
    assert listed[4] == {"path": "list.b", "body": "Block", "same": "a"}


def test_leaf_modules_of_one_configuration_share_an_entry() -> None:
    def conv(name: str, config: str, **more: Any) -> Node:
        return Node(name, "call_module", name, "Conv2d", CONV, config=config, parameters=(WEIGHT,), **more)

    same = (conv("a", "4, 8"), conv("b", "4, 8", macs=3), conv("b@2", "4, 8", outputs=(X,)))
    bodies = {"Net": Body("pkg.Net", (), same), "Sub": Body("pkg.Sub", (), (conv("a", "4, 8"), conv("c", "4, 9")))}
    record = Record(spec={}, tracer="symbolic", bodies=bodies)
    assert Record.from_json(record.to_json()) == record
    plain = json.loads(record.to_json())
    ((name, entry),) = plain["leaves"].items()
    assert entry == {"type": "Conv2d", "config": "4, 8", "parameters": ["f32[8, 4, 3, 3] weight"]}
    assert plain["bodies"]["Net"]["nodes"][1] == {"name": "b", "leaf": name, "args": [], "macs": 3}
    assert [node.get("leaf") for node in plain["bodies"]["Sub"]["nodes"]] == [name, None]


def test_a_change_of_one_leaf_module_leaves_the_lines_of_the_others() -> None:
    def text(*configs: str) -> list[str]:
        nodes = [Node(f"n{k}", "call_module", "", "", "T", config=config) for k, config in enumerate(configs)]
        return Record(spec={}, tracer="", bodies={"Net": Body("Net", nodes=tuple(nodes))}).to_json().splitlines()

    before, after = text("a", "a", "b", "b", "c", "c"), text("a", "a", "x", "x", "c", "c")
    assert len(set(before) - set(after)) == 3  # two nodes and their entry


def test_a_line_of_the_forward_of_a_body_is_a_number() -> None:
    places = ("Net.forward:12", "Net.forward:0", "Net.forward", "Net.helper:3", "Other.forward:4", "12", ":5", "")
    nodes = tuple(Node(f"n{k}", "call_function", "", "", where=where) for k, where in enumerate(places))
    record = Record(spec={}, tracer="", bodies={"Net": Body("pkg.Net", nodes=nodes)})
    assert Record.from_json(record.to_json()) == record
    assert [line.get("where") for line in lines(record, '"nodes":[')] == [12, *places[1:-1], None]


FROZEN = structs.replace(CONVS[1], trainable=0)


@pytest.mark.parametrize(
    "modules",
    [
        (LIST, BLOCKS[1], CONVS[1], BLOCKS[0], CONVS[0], NET),  # registered in another order than called
        (NET, CONVS[0], BLOCKS[0], BLOCKS[1], CONVS[1]),
        (NET, BLOCKS[0], CONVS[0], BLOCKS[1]),  # nothing below the second
        (NET, BLOCKS[0], BLOCKS[1], CONVS[1]),
        (NET, BLOCKS[0], CONVS[0], BLOCKS[1], FROZEN),
        (NET, BLOCKS[0], CONVS[0], BLOCKS[1], CONVS[1], Module("list.b.more", "Block", "Block")),
        (NET, BLOCKS[0], CONVS[0], Module("a.again", "Block", "Block"), BLOCKS[1], CONVS[1]),
        (Module("a", "Other", "Block", 3, 3, 4, 9), BLOCKS[0], BLOCKS[0]),
        (NET, Module("a", "Block"), Module("list.b", "Block", "Net")),
        *[(NET, BLOCKS[0], Module(path, "T"), BLOCKS[0], CONVS[0]) for path in (".", "a..b", ".a", "a.", "a.a", "..")],
    ],
)
def test_any_modules_come_back_in_their_order(modules: tuple[Module, ...]) -> None:
    record = family(*modules)
    assert Record.from_json(record.to_json()) == record


@pytest.mark.parametrize("text", ["", "$", "f32[1, 4] a", ".", "T.", "a@2", "a_1", "call_module"])
def test_a_text_that_looks_like_an_abbreviation_comes_back_as_it_was(text: str) -> None:
    meta = TensorMeta((1, "s0, 1"), text or "f", text, text)
    inputs = (BodyInput("x", (X, meta)), BodyInput("y", (TensorMeta((2, "2", text), "f32"),)))
    node = Node(
        text or "n", "call_method", text, text, text, text, text, args=(text,), kwargs={text: text}, config=text
    )
    both = structs.replace(node, name="n2", inputs=(Value(""), Value("", 1)), outputs=(meta,), parameters=(meta, X))
    bodies = {"B": Body(text, inputs, (node, both)), "C": Body("p.T", inputs, (both,), (Value("", 1), Value("n2")))}
    bodies |= {text: Body("T")}
    record = Record(
        spec={}, tracer="symbolic", root="B", bodies=bodies, modules=(Module(text, text), Module("n2", text))
    )
    assert Record.from_json(record.to_json()) == record


def test_a_small_file_that_stands_for_an_endless_list_of_modules_is_refused() -> None:
    modules = [{"path": "m0", "type": "T"}, {"path": "m0.a", "type": "T"}]
    for number in range(1, 60):
        last = f"m{number - 1}"
        modules += [{"path": f"m{number}", "type": "T"}]
        modules += [{"path": f"m{number}.{side}", "type": "T", "same": last} for side in "ab"]
    plain = {"schema": SCHEMA, "spec": {}, "tracer": "", "modules": modules}
    with pytest.raises(RecordError, match="more than 500,000 modules"):
        Record.from_json(json.dumps(plain))


def test_the_digest_is_of_the_architecture_and_not_of_what_made_it() -> None:
    assert structs.replace(RECORD, made_by={"python": "3.13.0"}).digest == RECORD.digest
    assert structs.replace(RECORD, output="f32[1, 5]").digest != RECORD.digest


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
        Record.from_json(structs.replace(RECORD, schema=SCHEMA + 1).to_json())
    for schema in range(1, SCHEMA):
        older = Record.from_json(older_json(RECORD, schema))
        assert older == structs.replace(RECORD, schema=schema)


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
        (
            {"bodies": {"Net": Body("T", nodes=(linear("a", ""),) * 2, inputs=(BodyInput("x"),))}},
            "two nodes",
        ),
    ],
)
def test_references_that_lead_nowhere_or_in_circles_are_refused(change: dict[str, object], message: str) -> None:
    text = structs.replace(RECORD, **change).to_json()  # type: ignore[arg-type]
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


@pytest.mark.parametrize("name", ["$", "a:1", ":", "a b", "1", "$a:2"])
def test_a_node_may_have_any_name(name: str) -> None:
    two = Body("Two", (BodyInput("x"),), outputs=(Value(""), Value("")))
    nodes = (
        Node(name, "call_module", "two", "Two", "Two", "", "", "Two", args=(1,)),
        Node("f", "call_function", "f", "f", args=(Value(name, 1), Value(name), name), inputs=(Value(name),)),
    )
    record = Record(spec={}, tracer="", bodies={"Net": Body("Net", nodes=nodes, outputs=(Value(name, 1),)), "Two": two})
    assert Record.from_json(record.to_json()) == record


def test_records_that_earlier_versions_committed_are_read_and_compare_equal() -> None:
    """Each file was written by the version that had its schema."""
    folder = Path(__file__).with_name("records")
    for path in folder.glob("*.json"):
        old = Record.from_json(path.read_bytes())
        assert path.stem.endswith(f"-schema{old.schema}")
        again = Record.from_json(old.to_json())
        assert repr(again) == repr(structs.replace(old, schema=SCHEMA))
        assert compare(old, again).changes == ()


def test_a_record_that_an_earlier_version_wrote_has_its_arguments_as_data() -> None:
    """The file was written by the version before arguments were data, from torchvision's ResNet-50."""
    old = Record.from_json(Path(__file__).with_name("records").joinpath("resnet50-schema3.json").read_bytes())
    assert (old.schema, old.operators, old.totals.parameters) == (3, 177, 25_557_032)
    block = old.bodies["Bottleneck"]
    assert block.by_name["add"].args == (Value("bn3"), Value("downsample"))
    assert dict(block.by_name["conv2"].kwargs) == {}
    texts = [leaf for _, _, node in old.walk() for arg in node.args for leaf in leaves(arg) if isinstance(leaf, Text)]
    assert texts == []


def test_the_json_schema_in_the_docs_is_of_today_and_fits_records() -> None:
    docs = Path(__file__).parents[2] / "docs" / "design" / "record.schema.json"
    schema = json.loads(docs.read_text(encoding="utf-8"))
    assert schema == json.loads(json.dumps(json_schema())), (
        "write it again: python -m sphinx_fxgraph.record.json_schema"
    )
    validator = jsonschema.Draft202012Validator(schema)
    committed = Record.from_json(Path(__file__).with_name("records").joinpath("vit_b_16-schema4.json").read_bytes())
    every_argument = tuple(argument for argument in ARGUMENTS if argument != 2**70)
    node = Node("f", "call_function", "f", "f", args=every_argument, where="B.forward:3")
    arguments = Record(spec={}, tracer="", bodies={"B": Body("B", nodes=(node,))})
    for record in (RECORD, committed, arguments, family(NET, BLOCKS[0], CONVS[0], BLOCKS[1], CONVS[1])):
        validator.validate(json.loads(record.to_json()))
    for wrong in ({"bodies": {"B": {}}}, {"modules": [{"type": "T"}]}, {"leaves": {"T.1": {"macs": "3"}}}):
        assert not validator.is_valid(json.loads(RECORD.to_json()) | wrong)
