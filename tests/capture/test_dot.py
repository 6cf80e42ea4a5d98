"""The classic DOT of the whole model: right, escaped, and drawn by real engines without a complaint."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path
from xml.etree import ElementTree as ET

import graphviz
import pytest
from conftest import needs
from msgspec.structs import replace

from sphinx_fxgraph.record.arguments import Tuple, Value
from sphinx_fxgraph.record.model import Body, BodyInput, Node, Record, TensorMeta
from sphinx_fxgraph.render.dot import model_digraph

PURE = shutil.which("graphviz-pure", path=sysconfig.get_path("scripts")) or shutil.which("graphviz-pure")
SVG = "{http://www.w3.org/2000/svg}"
F = (TensorMeta((1, 4), "f32"),)

HOSTILE = ["a->b", "x<y&z|{q}", 'quo"te\\n', "back\\N\\G", "<b>bold</b>", "日本語", " ", "a,a->a", "{'a': (None, 1)}"]


def draw(command: str, graph: graphviz.Digraph) -> tuple[ET.Element, str]:
    """The SVG that an engine draws, and what it says on standard error."""
    run = subprocess.run([command, "-Tsvg"], input=graph.source.encode(), capture_output=True, check=True)
    return ET.fromstring(run.stdout), run.stderr.decode()


def by_title(svg: ET.Element, kind: str) -> dict[str, ET.Element]:
    found = {}
    for group in svg.iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        if group.get("class") == kind and title is not None:
            found[title.text or ""] = group
    return found


def texts(group: ET.Element) -> list[str]:
    return ["".join(text.itertext()).strip() for text in group.iter(f"{SVG}text")]


@pytest.fixture
def record() -> Record:
    """Two inputs, a block that is called twice, arithmetic on a size."""
    x, y = (Node(name, "placeholder", name, "input", outputs=F) for name in "xy")
    block = Body(
        "pkg.Block",
        inputs=(BodyInput("value", F),),
        nodes=(
            Node("0", "call_module", "0", "Linear", args=(Value(""),), inputs=(Value(""),), outputs=F),
            Node("add", "call_function", "operator.add", "add", args=(Value("0"), 0, Value("")),
                 inputs=(Value("0"), Value("")), outputs=F, inplace=True),
        ),
        outputs=(Value("add"),),
    )  # fmt: skip
    first = Node("block", "call_module", "block", "Block", body="Block", args=(Value("x"),), inputs=(Value("x"),))
    second = Node(
        "block@2", "call_module", "block", "Block", body="Block", args=(Value("block"),), inputs=(Value("block"),)
    )
    size = Node("size", "call_method", "size", "size", args=(Value("y"),), inputs=(Value("y"),), result="Size([1, 4])")
    view = Node("view", "call_method", "view", "view", args=(Value("block@2"), Value("size")), kwargs={"size": "size"},
                inputs=(Value("block@2"), Value("size")), outputs=F)  # fmt: skip
    out = Node(
        "output", "output", "output", "output", args=(Tuple((Value("view"),)),), inputs=(Value("view"),), outputs=F
    )
    root = Body("pkg.Net", nodes=(x, y, first, second, size, view, out))
    return Record(spec={}, tracer="symbolic", root="Net", bodies={"Net": root, "Block": block})


def hostile() -> Record:
    nodes = tuple(
        Node(name, "call_module", name, name, args=(name,), kwargs={"k": name}, result=name, inputs=(Value("x"),))
        for name in HOSTILE
    )
    frames = tuple(
        Node(f"frame {name}", "call_module", name, name, body="inner", inputs=(Value("x"),)) for name in HOSTILE
    )
    inner = Body("Inner", (BodyInput("x", F),), (Node("y\n\x1b", "call_method", "t", "t", inputs=(Value(""),)),))
    x = Node("x", "placeholder", "x", "input", outputs=F)
    return Record({}, "symbolic", "root", {"root": Body("Root", (), (x, *nodes, *frames)), "inner": inner})


def test_every_operator_is_a_table_of_name_target_arguments_and_result(record: Record) -> None:
    svg, complaint = draw(needs("dot"), model_digraph(record))
    assert complaint == ""
    nodes = by_title(svg, "node")
    assert sorted(nodes) == [f"n{number}" for number in range(1, 10)]
    assert texts(nodes["n3"]) == [
        "block.0", "Linear", "target", "block.0", "args", "x", "result", "f32[1, 4]",
    ]  # fmt: skip
    assert texts(nodes["n6"]) == [
        "block@2.add", "add", "target", "operator.add", "args", "block@2.0, 0, block.add", "result", "f32[1, 4]",
        "note", "in place",
    ]  # fmt: skip
    assert texts(nodes["n8"])[4:8] == ["args", "block@2.add, size", "kwargs", "size='size'"]
    assert texts(nodes["n5"])[:4] == ["block@2.0", "Linear", "target", "block.0"]
    clusters = by_title(svg, "cluster")
    assert [texts(cluster) for cluster in clusters.values()] == [["block", "Block"], ["block@2", "Block"]]


def test_edges_are_dashed_and_light_grey_exactly_where_no_tensor_flows(record: Record) -> None:
    svg, _ = draw(needs("dot"), model_digraph(record))
    edges = {title.replace("->", " "): group.find(f"{SVG}path") for title, group in by_title(svg, "edge").items()}
    assert sorted(edges) == ["n1 n3", "n1 n4", "n2 n7", "n3 n4", "n4 n5", "n4 n6", "n5 n6", "n6 n8", "n7 n8", "n8 n9"]
    weak = {title for title, path in edges.items() if path is not None and path.get("stroke-dasharray")}
    assert weak == {"n2 n7", "n7 n8"}
    assert {path.get("stroke") for title, path in edges.items() if path is not None and title in weak} == {"lightgrey"}


def test_whatever_the_model_is_called_stands_there_as_text() -> None:
    svg, complaint = draw(needs("dot"), model_digraph(hostile()))
    assert complaint == ""
    shown = [text for group in by_title(svg, "node").values() for text in texts(group)]
    for name in HOSTILE:
        assert name.strip() in shown
    assert "frame x<y&z|{q}.y�" in shown  # the name's control characters
    assert any("<b>bold</b>" in " ".join(texts(group)) for group in by_title(svg, "cluster").values())


@pytest.mark.skipif(PURE is None, reason="graphviz-pure is not installed")
def test_the_engine_that_comes_with_the_package_draws_it_too(record: Record) -> None:
    assert PURE is not None
    svg, complaint = draw(PURE, model_digraph(record))
    assert complaint == ""
    assert len(by_title(svg, "node")) == 9
    svg, complaint = draw(PURE, model_digraph(hostile()))
    # Its font metrics are built in and have no CJK; it says so once and takes the width of a space.
    assert all("width of non-ASCII character" in line for line in complaint.splitlines() if line)
    assert len(by_title(svg, "node")) == 1 + 2 * len(HOSTILE)


def test_operators_that_were_not_reached_are_not_said_to_hold_no_tensor(record: Record) -> None:
    root = record.bodies["Net"]
    nodes = tuple(
        replace(node, outputs=(), result="") if node.name in ("view", "output") else node for node in root.nodes
    )
    partial = replace(record, bodies={**record.bodies, "Net": replace(root, nodes=nodes)})
    weak = [line.split("[")[0].strip() for line in model_digraph(partial).source.splitlines() if "dashed" in line]
    assert weak == ["n2 -> n7", "n7 -> n8"]


def test_a_model_without_a_graph_is_an_empty_picture() -> None:
    assert "n1" not in model_digraph(Record(spec={}, tracer="symbolic")).source


@pytest.mark.torch
def test_model_graph_of_a_real_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    needs("dot")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    from zoo.two_inputs import TwoInputs

    from sphinx_fxgraph import model_graph

    graph = model_graph(TwoInputs(), (torch.ones(1, 3, 16, 16), torch.ones(1, 2, 8, 8)))
    assert isinstance(graph, graphviz.Digraph)
    written = graph.render(tmp_path / "two", format="svg", quiet=False)
    svg = ET.parse(written).getroot()
    assert len(by_title(svg, "node")) == 14
    tables = {texts(group)[0]: texts(group) for group in by_title(svg, "node").values()}
    assert tables["interpolate"][2:6] == ["target", "torch.nn.functional.interpolate", "args", "clamp"]
    assert "Size([16, 16])" in tables["getitem"]
    assert graph.source.count("style=dashed") == 3
