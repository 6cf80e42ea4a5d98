"""A capture gives the same bytes in every process, in every folder and on every machine."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.cleaning import clean_text, cleaned
from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta, Verdict

ROOTS = ["/home/me/project/", "/venv/lib/python3.11/site-packages/"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("<pkg.Thing object at 0x7f3a5c0b1d90> is odd", "<pkg.Thing object> is odd"),
        ("<function Net.forward at 0x7f3a5c0b1d90>", "<function Net.forward>"),
        ("/home/me/project/a b.py, /else where/home/me/project/c.py", "a b.py, /else where/home/me/project/c.py"),
        ("weak at 0x7f3a; to 'Net' at 0x7f3b", "weak; to 'Net'"),
        ("pointer 0x7f3a5c0b1d90, mask 0xff", "pointer 0x…, mask 0xff"),
        ("no entry with id=140245123456789", "no entry with id=…"),
        ("object (140035623527568)is not tracked", "object (…)is not tracked"),
        ("[Errno 2] No such file: '/home/me/project/data/w.pt'", "[Errno 2] No such file: 'data/w.pt'"),
        ("[Errno 2] No such file: '/data sets/of me/w.pt'", "[Errno 2] No such file: '…/w.pt'"),
        ("/venv/lib/python3.11/site-packages/timm/layers/norm.py:12: bad", "timm/layers/norm.py:12: bad"),
        ("cannot read C:\\\\Users\\\\me\\\\w.pt", "cannot read …/w.pt"),
        ("cannot read C:\\Users\\me\\w.pt", "cannot read …/w.pt"),
        ("(/tmp/tmpab12cd_x/weights.pt)", "(…/weights.pt)"),
        ("made /tmp/tmpab12cd_x", "made …/tmp…"),
        ("weight=tensor([0.1, 0.2], grad_fn=<Some>), bias=None", "weight=tensor(…), bias=None"),
        ("Parameter containing: tensor([[1., 2.], [3., 4.]])", "Parameter containing: tensor(…)"),
        ("scale=array([1, 2], dtype=int64)", "scale=array(…)"),
        ("keys={'b', 'a', 'c'}, table={'b': 1, 'a': 2}", "keys={'a', 'b', 'c'}, table={'b': 1, 'a': 2}"),
    ],
)
def test_what_depends_on_the_process_or_the_machine_is_taken_out(text: str, clean: str) -> None:
    assert clean_text(text, ROOTS) == clean
    assert clean_text(clean, ROOTS) == clean


@pytest.mark.parametrize(
    "text",
    [
        "in_channels=3, kernel_size=(3, 3), stride=1/2",
        "b c (h p1) (w p2) -> b (h w) (p1 p2 c)",
        "see https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html",
        "Expected 3/4 inputs; a / b",
        "tensor of shape f32[1, 3]",
        "temporary tmp and tmpdir",
        "number 1234567890123, 9223372036854775807, 0.12345678901234",
        "{'a': {'b': 1}}, {1, 2}",
        "/backbone.conv",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert clean_text(text, ROOTS) == text


def test_symbols_are_numbered_in_the_order_of_their_appearance() -> None:
    def record(one: str, two: str) -> Record:
        given, joined = TensorMeta((one, 4), "f32"), TensorMeta((f"{two} + {one}", 4), "f32")
        nodes = (
            Node("x", "placeholder", "x", "input", outputs=(given,)),
            Node("cat", "call_function", "torch.cat", "cat", inputs=(Value("x"),), outputs=(joined,)),
            Node("size", "call_method", "size", "size", inputs=(Value("cat"),), result=f"Size([{two} + {one}, 4])"),
        )
        verdict = Verdict("path", f"{two} decides")
        return Record(spec={}, tracer="", root="Net", bodies={"Net": Body("Net", nodes=nodes)}, verdict=verdict)

    clean = cleaned(record("s77", "s27"))
    assert clean == cleaned(record("s5", "s6")) == cleaned(clean) == record("s0", "s1")


def test_a_text_of_other_people_is_cleaned_wherever_it_stands() -> None:
    odd = "<Thing object at 0x7f3a5c0b1d90>"
    node = Node("x", "call_module", "x", "X", config=odd, detail=odd, result=odd, marks=(odd,))
    record = Record(
        spec={"code": odd},
        tracer="",
        root="Net",
        bodies={"Net": Body("Net", nodes=(node,))},
        output=odd,
        verdict=Verdict("path", odd),
        failure=Failure("probe", "E", odd, node="x"),
        notes=(odd,),
    )
    text = cleaned(record).to_json()
    assert text.count("0x7f3a5c0b1d90") == 1  # what the author of the page has written


NET = """
    import tempfile
    import torch
    from torch import nn

    class Thing:
        pass

    class Odd(nn.Linear):
        def __init__(self):
            super().__init__(4, 4)
            self.thing, self.names = Thing(), {"alpha", "beta", "gamma", "delta", "epsilon"}

        def extra_repr(self):
            return f"{self.thing}, {self.names}, {self.weight[:1]}, {__file__}"

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.odd = Odd()
            for name in {"first", "second", "third"} if False else ("first", "second"):
                self.add_module(name, nn.Linear(4, 4))

        def forward(self, x):
            return self.second(self.first(self.odd(x))), Thing()

    class Failing(Net):
        def forward(self, x):
            raise ValueError(f"{Thing()} in {__file__} of {tempfile.mkdtemp()}: {self.odd.weight}, {self.odd.names}")

    class Building(nn.Module):
        def __init__(self):
            open(__file__ + ".missing")

    class Nested(nn.Module):
        def forward(self, x):
            rows = torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged)
            return rows.sin().to_padded_tensor(0.0)
    """
SPECS = """
    import sys
    from pathlib import Path
    from sphinx_fxgraph.spec.spec import GraphSpec
    from sphinx_fxgraph.worker.pool import capture

    torch_first = sys.argv[2]
    targets = ["net.Net", "net.Failing", "net.Building", "net.Nested"]
    specs = [GraphSpec.parse(target, "2, 4", tracer=tracer) for target in targets for tracer in ("auto", "export")]
    if torch_first == "reversed":
        specs.reverse()
    records = dict(capture(specs, sys_path=[sys.argv[1], *sys.path], confdir=sys.argv[1]))
    for spec in sorted(records, key=lambda spec: spec.id):
        print(records[spec].to_json())
    """


@pytest.mark.torch
def test_two_captures_in_two_folders_give_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "capture.py"
    script.write_text(textwrap.dedent(SPECS), encoding="utf-8")
    found = []
    for seed, folder, order in (("1", "one/src", "as they are"), ("2", "another place/lib", "reversed")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "net.py").write_text(textwrap.dedent(NET), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(script), str(tmp_path / folder), order],
            env={**os.environ, "PYTHONHASHSEED": seed, "TMPDIR": str(tmp_path)},
            capture_output=True,
            check=True,
            encoding="utf-8",
        )
        found.append(done.stdout)
    assert found[0] == found[1]
    assert str(tmp_path) not in found[0]
    assert "tensor([" not in found[0]
    assert found[0].count('"failure"') >= 4


def test_names_in_code_that_look_like_temporary_files_stay() -> None:
    torch = pytest.importorskip("torch")
    from sphinx_fxgraph.capture.capture import record_model

    model = torch.nn.Sequential()
    model.add_module("tmp_weights", torch.nn.Linear(4, 4))
    model.add_module("tmpfeatures", torch.nn.Linear(4, 4))
    found = record_model(model, (torch.ones(1, 4),), {})
    targets = [node.target for _, _, node in found.walk() if node.op == "call_module"]
    assert targets == ["tmp_weights", "tmpfeatures"]
