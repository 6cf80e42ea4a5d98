"""The grammar of target and inputs, the capture options, and the id of a spec."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sphinx_fxgraph.errors import SpecError
from sphinx_fxgraph.spec.parser import parse_inputs, parse_target
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.spec.syntax import Arguments, Call, Dict, List, Literal, Name, Tensor, Tuple

RESNET = "torchvision.models.resnet18(weights=None)"


def f32(*shape: int) -> Tensor:
    return Tensor("f32", shape)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("torchvision.models.resnet18", Name(None, "torchvision.models.resnet18")),
        ("zoo.nets:UNet", Name("zoo.nets", "UNet")),
        ("zoo.nets:UNet.small()", Call(Name("zoo.nets", "UNet.small"))),
        (
            'timm.create_model("resnet18", pretrained=False)',
            Call(
                Name(None, "timm.create_model"),
                Arguments((Literal("resnet18"),), (("pretrained", Literal(value=False)),)),
            ),
        ),
        (
            "transformers.BertModel(transformers.BertConfig(num_hidden_layers=2))",
            Call(
                Name(None, "transformers.BertModel"),
                Arguments(
                    (Call(Name(None, "transformers.BertConfig"), Arguments((), (("num_hidden_layers", Literal(2)),))),)
                ),
            ),
        ),
        (
            'a.Net({"depth": [1, -2.5]}, (), act=b.c:ReLU, cfg={"net": b.c:make()})',
            Call(
                Name(None, "a.Net"),
                Arguments(
                    (Dict(((Literal("depth"), List((Literal(1), Literal(-2.5)))),)), Tuple(())),
                    (("act", Name("b.c", "ReLU")), ("cfg", Dict(((Literal("net"), Call(Name("b.c", "make"))),)))),
                ),
            ),
        ),
        ("a.Net('x:y, [', \"it's\")", Call(Name(None, "a.Net"), Arguments((Literal("x:y, ["), Literal("it's"))))),
        ("a.Net(\n    2,  # width: twice\n    float('inf'),\n)", parse_target('a.Net(2, float("inf"))')),
    ],
)
def test_target(text: str, tree: object) -> None:
    assert parse_target(text) == tree
    assert parse_target(str(tree)) == tree


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", Arguments()),
        ("1, 3, 224, 224", Arguments((f32(1, 3, 224, 224),))),
        ("(1, 3, 16, 16)", Arguments((f32(1, 3, 16, 16),))),
        ("(1,3,16,16), (1,2,8,8)", Arguments((f32(1, 3, 16, 16), f32(1, 2, 8, 8)))),
        ("(5,), ()", Arguments((f32(5), f32()))),
        ("bf16[2,5]", Arguments((Tensor("bf16", (2, 5)),))),
        ("b8[1,128], f32[], f32 [ ]", Arguments((Tensor("b8", (1, 128)), f32(), f32()))),
        ("x=f32[2,5], lengths=i64[2]", Arguments((), (("x", f32(2, 5)), ("lengths", Tensor("i64", (2,)))))),
        ("[f32[3,480,640], f32[3,300,300]]", Arguments((List((f32(3, 480, 640), f32(3, 300, 300))),))),
        ('{"pixel_values": f32[1,3]}', Arguments((Dict(((Literal("pixel_values"), f32(1, 3)),)),))),
        ("(f32[1,2], f32[1,2])", Arguments((Tuple((f32(1, 2), f32(1, 2))),))),
        ("f32[2,5], 3", Arguments((f32(2, 5), Literal(3)))),
        ("f32[2,5], (3,)", Arguments((f32(2, 5), Tuple((Literal(3),))))),
        ("1, 2, mode=None", Arguments((Literal(1), Literal(2)), (("mode", Literal(None)),))),
        ("[1, 2]", Arguments((List((Literal(1), Literal(2))),))),
        ("pkg.docs:make_batch()", Call(Name("pkg.docs", "make_batch"))),
        ("pkg.docs:make_batch(), 3", Arguments((Call(Name("pkg.docs", "make_batch")), Literal(3)))),
        ("torch.randn(2, 3)", Call(Name(None, "torch.randn"), Arguments((Literal(2), Literal(3))))),
    ],
)
def test_inputs(text: str, arguments: object) -> None:
    assert parse_inputs(text) == arguments
    assert parse_inputs(str(arguments)) == arguments


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("i64[3] < 30522", 0, 30522),
        ("i64[3] <= 9", 0, 10),
        ("5 <= i64[3] < 9", 5, 9),
        ("4 < i64[3] < 9", 5, 9),
        ("9 > i64[3]", 0, 9),
        ("9 > i64[3] >= -5", -5, 9),
        ("u8[3] < 256", 0, 256),
        ("f32[3] < 1", 0.0, 1.0),
        ("-1 <= f32[3] <= 1", -1.0, 1.0),
    ],
)
def test_range_of_values(text: str, low: float, high: float) -> None:
    arguments = parse_inputs(f"x={text}")
    assert isinstance(arguments, Arguments)
    tensor = dict(arguments.kwargs)["x"]
    assert isinstance(tensor, Tensor)
    assert (tensor.shape, tensor.low, tensor.high) == ((3,), low, high)
    assert parse_inputs(str(arguments)) == arguments


# What authors get wrong: the option's text, the column it must name, and what the message must say or show.
WRONG_INPUTS = [
    ("f32[1,3,224,224", 4, "'[' is never closed"),
    ("f32[1,3), f32[2]", 4, "'[' is closed by ')'"),
    ("f32[1,3]]", 9, "']' closes nothing"),
    ("1) + g(2", 2, "')' closes nothing"),
    ("f32[2], 'abc", 9, "string is never closed"),
    ("float32[1,3]", 1, "f32[1, 3]"),
    ("f32[2], torch.LongTensor[1,3]", 9, "i64[1, 3]"),
    ("q7[2]", 1, "f32, f64, f16, bf16, i64"),
    ("x: f32[1,3]", 2, "x=f32[2, 5]"),
    ("x:f32[1,3]", 2, "x=f32[2, 5]"),
    ("f32(1,3)", 1, "square brackets"),
    ("f32[], f32[], f32", 15, "f32 has no shape"),
    ("f32[1 3]", 5, "comma"),
    ("1x3x224x224", 1, "f32[1, 3, 224, 224]"),
    ("f32[-1,3]", 5, "whole number from 0 up, not '-1'"),
    ("1, -3", 4, "whole number from 0 up, not '-3'"),
    ("f32[1,3.5]", 7, "'3.5'"),
    ("f32[N,3]", 5, "'N'"),
    ("f32[True]", 5, "'True'"),
    ("x=f32[1], f32[2]", 17, "behind one with a keyword"),
    ("x=1, x=2", 6, "x= is given twice"),
    ("f32[1], lambda x: x", 17, "lambda"),
    ('f"{x}"', 1, "f-string"),
    ("[i for i in a.b]", 1, "comprehension"),
    ("*a.b", 1, "write the values out"),
    ("**a.b", 1, "write the keywords out"),
    ("{1, 2}", 1, "write a list"),
    ("{a.b: 1}", 2, "keys"),
    ("f32[1] * 2", 1, "arithmetic"),
    ("f32[1][0]", 1, "only a dtype"),
    ("(1,3), 5", 8, "tuples of integers"),
    ("((1,2), (3,4))", 1, "(f32[1, 3], f32[1, 2])"),
    ("true", 1, "written True"),
    ("f32[2], batch", 9, "'batch' names no package"),
    ("pkg.make().images", 1, ":submodule: images"),
    ("i64[3] <", 9, "syntax"),
    ("i64[3] >= 5", 1, "upper limit"),
    ("i64[3] < 2.5", 10, "a whole number"),
    ("b8[3] < 1", 1, "b8 has no range"),
    ("u8[3] < 257", 1, "from 0 to 255"),
    ("9 <= i64[3] < 5", 1, "between 9 and 5"),
    ("3 < i64[3] > 4", 1, "one lower and one upper"),
    ("f32[3] == 1", 1, "one lower and one upper"),
    ("f32[3] < i64[3]", 1, "gives one tensor its range"),
    ("...", 1, "no value"),
    ("“a”", 1, "invalid character"),
]


@pytest.mark.parametrize(("text", "column", "words"), WRONG_INPUTS)
def test_wrong_inputs(text: str, column: int, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        GraphSpec.parse("pkg.Net", text)
    message = str(caught.value)
    assert message.startswith(f"inputs, column {column}: ")
    assert words in message
    assert "for example" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("resnet18", 1, "pkg.module.resnet18"),
        ("pkg.Net(depth=2", 8, "'(' is never closed"),
        ("pkg.Net(depth=2))", 17, "')' closes nothing"),
        ("pkg.Net weights", 1, "for example"),
        ("pkg.Net, 3", 10, "one expression"),
        ("pkg.nets[0]", 1, "no subscript"),
        ("pkg.Net().encoder.layer", 1, ":submodule: encoder.layer"),
        ("pkg.make()()", 1, "result of a call"),
        ("lambda: 3", 7, "lambda"),
        ("'pkg.Net'", 1, "a dotted name"),
        ("docs/zoo/net.py:Net", 10, "not its file"),
        ("docs/zoo/net", 1, "pkg.module"),
        ("pkg.mod: Net", 8, "without spaces"),
        ("pkg:mod:Net", 8, "one module and one name"),
        ("pkg.mod:", 8, "one module and one name"),
        ("pkg.Net(a=3, 5)", 15, "behind one with a keyword"),
        ("pkg.Net(width=64*2)", 15, "arithmetic"),
        ("pkg.Net(act=relu)", 13, '"relu"'),
    ],
)
def test_wrong_target(text: str, column: int, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        GraphSpec.parse(text)
    message = str(caught.value)
    assert message.startswith(f"target, column {column}: ")
    assert words in message
    assert "for example" in message


def test_place_in_several_lines() -> None:
    with pytest.raises(SpecError, match=r"^inputs, line 3, column 5: "):
        parse_inputs('x=f32[],\r\n  é="ü",\r\n  y=float16[2]')


def test_missing_target() -> None:
    with pytest.raises(SpecError, match=r"target: missing.*torchvision\.models\.resnet18"):
        GraphSpec.parse("  ")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("mode", "evla", "did you mean eval?"),
        ("tracer", "fx", "auto, symbolic, observed, export, autograd"),
        ("device", "cuda", "auto, meta, cpu, fake"),
        ("dtype", "float16", "did you mean f16?"),
        ("dtype", "torch.bfloat16", "did you mean bf16?"),
        ("dtype", "i64", "f32, f64"),
        ("network", "perhaps", "no, yes"),
        ("seed", "-1", "whole number"),
        ("timeout", "2min", "90, in seconds"),
        ("method", "encode()", "encode"),
        ("submodule", "layer1 . 0", "layer1.0.conv1"),
        ("tracr", "symbolic", "did you mean tracer?"),
    ],
)
def test_wrong_option(option: str, value: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        GraphSpec.parse(RESNET, **{option: value})
    assert option in str(caught.value)
    assert words in str(caught.value)


def test_spelling_does_not_change_the_id() -> None:
    one = GraphSpec.parse(RESNET, "1,3,224,224", leaf="b.*,a.*", seed="0", mode="eval", network="no")
    two = GraphSpec.parse("torchvision.models . resnet18( weights = None )", "f32[1, 3, 224,224]", leaf=("a.*", "b.*"))
    assert one == two
    assert one.id == two.id
    assert one.inputs == "f32[1, 3, 224, 224]"


@pytest.mark.parametrize(
    "options",
    [
        {"inputs": "f32[1, 3, 224, 225]"},
        {"target": RESNET.replace("None", '"None"')},
        {"method": "features"},
        {"submodule": "layer1.0"},
        {"mode": "train"},
        {"tracer": "symbolic"},
        {"leaf": "layer1"},
        {"dtype": "bf16"},
        {"device": "cpu"},
        {"seed": "1"},
        {"timeout": "90"},
        {"network": "yes"},
    ],
)
def test_every_option_changes_the_id_and_round_trips(options: dict[str, str]) -> None:
    spec = GraphSpec.parse(**{"target": RESNET, "inputs": "1, 3, 224, 224"} | options)
    assert spec.id != GraphSpec.parse(RESNET, "1, 3, 224, 224").id
    assert GraphSpec.from_dict(spec.to_dict()) == spec
    assert list(spec.to_dict()) == sorted(spec.to_dict())


def test_id_is_the_same_in_every_process() -> None:
    code = f"from sphinx_fxgraph.spec.spec import GraphSpec; print(GraphSpec.parse({RESNET!r}, '1,3', leaf='b, a').id)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == GraphSpec.parse(RESNET, "1,3", leaf="a b").id


@pytest.mark.parametrize(
    ("target", "label"),
    [
        (RESNET, "resnet18"),
        ("zoo.nets:UNet", "UNet"),
        ('timm.create_model("resnet50", pretrained=False)', "resnet50"),
        ('efficientnet_pytorch.EfficientNet.from_name("efficientnet-b0")', "efficientnet-b0"),
        ("transformers.AutoModel.from_config(transformers.BertConfig())", "AutoModel"),
        ("pkg.get_model(depth=3)", "get_model"),
    ],
)
def test_label(target: str, label: str) -> None:
    assert GraphSpec.parse(target).label == label


CODE = """
    from zoo import UNet

    model = UNet(2)
    inputs = (1,)
"""


def test_code_stands_for_the_target() -> None:
    spec = GraphSpec.parse(code=CODE)
    assert spec.label == "UNet"
    assert spec.code == "\nfrom zoo import UNet\n\nmodel = UNet(2)\ninputs = (1,)"  # lines count from the body's first
    assert GraphSpec.from_dict(spec.to_dict()) == spec


def test_code_may_set_the_inputs_alone() -> None:
    spec = GraphSpec.parse("pkg.Net", code="inputs = (1,)")
    assert (spec.target, spec.code) == ("pkg.Net", "inputs = (1,)")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"code": "model = Net(\n"}, "code, line 1: "),
        ({"code": "x = 1\nmodel == Net()\n"}, "sets neither model nor inputs"),
        ({"code": "inputs = 3"}, "target: missing"),
        ({"code": CODE, "inputs": "f32[2]"}, "the code sets inputs too"),
    ],
)
def test_wrong_code(arguments: dict[str, str], words: str) -> None:
    with pytest.raises(SpecError) as caught:
        GraphSpec.parse(**arguments)
    assert words in str(caught.value)
