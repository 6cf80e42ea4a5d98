"""The drawing: levels, layout, composition and SVG, on a small record and the real engines."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from conftest import needs

from sphinx_fxgraph.layout import graphviz as layout
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Body, BodyInput, Node, Record, TensorMeta
from sphinx_fxgraph.render import colors, document, looks
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.view.levels import root_level

SVG = "{http://www.w3.org/2000/svg}"


def tensor(*shape: int) -> tuple[TensorMeta, ...]:
    return (TensorMeta(shape, "f32"),)


def op(name: str, kind: str, *inputs: str, outputs: tuple[TensorMeta, ...] = tensor(1, 8), **more: object) -> Node:
    call = str(more.pop("op", "call_function"))
    return Node(name, call, kind, kind, inputs=tuple(map(Value, inputs)), outputs=outputs, **more)  # type: ignore[arg-type]


@pytest.fixture
def record() -> Record:
    """Two equal residual blocks in a row, a second input whose size is asked for, and names that need escaping."""
    block = Body(
        "Block",
        (BodyInput("x", tensor(1, 8)),),
        (op("fc", "Linear", ""), op("act", "ReLU", "fc"), op("add", "add", "act", "")),
        (Value("add"),),
    )
    root = Body(
        "Net",
        (),
        (
            op("x", "input", op="placeholder"),
            op("y", "input", op="placeholder", outputs=tensor(4, 4)),
            op("a->b", "Block", "x", op="call_module", body="Block", outputs=(), type="pkg.Block"),
            op("<q>&'\"", "Block", "a->b", op="call_module", body="Block", outputs=(), type="pkg.Block"),
            op("size", "size", "y", outputs=()),
            op("getitem", "getitem", "size", outputs=()),
            op("view", "view", "<q>&'\"", "getitem", outputs=tensor(8, 1)),
            op("output", "output", "view", op="output", outputs=tensor(8, 1)),
        ),
    )
    return Record({}, "symbolic", "Net", {"Net": root, "Block": block})


@pytest.fixture(params=["graphviz-pure", "dot"])
def engine(request: pytest.FixtureRequest) -> layout.Engine:
    if request.param == "dot":
        return layout.find_engine(needs("dot"))
    return layout.find_engine(shutil.which(request.param, path=str(Path(sys.executable).parent)) or request.param)


def draw(record: Record, engine: layout.Engine, look: ViewOptions = ViewOptions()) -> compose.Frame:  # noqa: B008 - frozen
    job = compose.Job(record, look)
    assert compose.lay_out([job], engine) == []
    return compose.scene(job)


def picture(job: compose.Job) -> str:
    return document.page_svg(compose.scene(job), figure="f", title="t", description="d")


def rectangles(frame: compose.Frame, x: float = 0, y: float = 0) -> list[tuple[str, float, float, float, float]]:
    """Path and left, top, right, bottom of every closed box, from the corner of the picture."""
    found = []
    for box in frame.boxes:
        for drawn in box.rows or (box,):
            left, top = (x + box.x, y + box.y + drawn.y) if box.rows else (x + box.x, y + box.y)
            found.append((drawn.path, left, top, left + drawn.label.width, top + drawn.label.height))
    for inner in frame.frames:
        found += rectangles(inner, x + inner.x, y + inner.y)
    return found


def test_equal_bodies_are_laid_out_once(record: Record, engine: layout.Engine) -> None:
    job = compose.Job(record)
    compose.lay_out([job], engine)
    assert len(job.layouts) == 2
    assert job.dot().count("digraph") == 2


def test_every_operator_is_drawn_once_and_no_box_overlaps_another(record: Record, engine: layout.Engine) -> None:
    boxes = rectangles(draw(record, engine))
    assert sorted(box[0] for box in boxes) == sorted(
        ".".join(part for part in (path, node.name) if part) for path, _, node in record.walk() if not node.body
    )
    for (_, left, top, right, bottom), (_, left2, top2, right2, bottom2) in itertools.combinations(boxes, 2):
        assert right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top


def test_the_main_path_is_one_straight_line_through_all_frames(record: Record, engine: layout.Engine) -> None:
    middles = {path: (left + right) / 2 for path, left, _, right, _ in rectangles(draw(record, engine))}
    spine = ["x", "a->b.fc", "a->b.act", "a->b.add", "<q>&'\".fc", "<q>&'\".act", "<q>&'\".add", "view", "output"]
    assert {round(middles[path], 3) for path in spine} == {round(middles["x"], 3)}


def test_edges_are_weak_where_one_end_holds_no_tensor(record: Record) -> None:
    level = root_level(record, ViewOptions())
    weak = {(level.boxes[e.tail.box].node.name, level.boxes[e.head.box].node.name) for e in level.edges if e.weak}
    assert weak == {("y", "size"), ("size", "getitem"), ("getitem", "view")}


def test_a_closed_module_shows_its_output_shape_and_its_last_name(record: Record, engine: layout.Engine) -> None:
    picture = draw(record, engine, ViewOptions(depth=0))
    assert not picture.frames
    closed = next(drawn for drawn in picture.boxes if drawn.path == "a->b")
    assert (closed.label.kind, closed.label.name, closed.label.shape) == ("Block", "a->b", "1×8 f32")


def test_page_svg_is_well_formed_with_unique_ids_that_start_with_the_figure(
    record: Record, engine: layout.Engine
) -> None:
    root = ET.fromstring(
        document.page_svg(draw(record, engine), figure="fig-net", title="Net <1>", description="a & b")
    )
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert all(str(name).startswith("fig-net-") for name in ids)
    assert "fig-net-a-_x003E_b.fc" in ids
    assert {e.get("data-path") for e in root.iter(f"{SVG}g") if e.get("data-path")} >= {
        "x",
        "a->b",
        "a->b.fc",
        "<q>&'\".add",
    }
    assert root.findtext(f"{SVG}title") == "Net <1>"
    assert not [e for e in root.iter() if e.get("style") or e.tag == f"{SVG}style"]


def test_print_svg_needs_no_style_sheet(record: Record, engine: layout.Engine) -> None:
    root = ET.fromstring(document.print_svg(draw(record, engine), title="Net", description="d").encode())
    assert not [e for e in root.iter() if e.get("class")]
    for element in root.iter(f"{SVG}rect"):
        assert element.get("fill", "").startswith("#")
    for element in root.iter(f"{SVG}text"):
        assert element.get("font-size") or all(span.get("font-size") for span in element)


def test_a_warm_picture_needs_no_engine(record: Record, engine: layout.Engine) -> None:
    job = compose.Job(record)
    compose.lay_out([job], engine)
    again = compose.Job(record, layouts=dict(job.layouts))
    assert again.complete()
    assert compose.lay_out([again], layout.Engine("no-such-program")) == []
    assert picture(again) == picture(job)


def test_a_missing_engine_says_how_to_get_one(bare: str) -> None:
    with pytest.raises(layout.EngineMissingError, match="fxgraph_dot = 'nowhere'"):
        layout.find_engine("nowhere")
    code = "from sphinx_fxgraph.layout.graphviz import find_engine; find_engine()"
    run = subprocess.run([bare, "-c", code], capture_output=True, check=False, encoding="utf-8", env={"PATH": ""})
    assert run.returncode == 1
    assert "EngineMissingError: no Graphviz engine found: run `pip install graphviz-pure`" in run.stderr


def test_a_failing_engine_tells_what_it_said(engine: layout.Engine) -> None:
    with pytest.raises(layout.EngineFailedError, match="status"):
        engine.lay_out(["digraph { a -> "], timeout=20)


def test_an_engine_that_draws_and_complains_is_heard(engine: layout.Engine) -> None:
    coordinates, complaint = engine.lay_out(["digraph { a [shape=nonsense] }"], timeout=20)
    assert "nonsense" in complaint
    assert coordinates[0]["nodes"]


@pytest.mark.parametrize("colours", [colors.LIGHT, colors.DARK], ids=["light", "dark"])
def test_contrast_of_text_is_4_5_and_of_lines_3(colours: colors.Colours) -> None:
    papers = (colours.paper, *colours.frames)
    for fill in (*colours.fills.values(), *papers):
        assert contrast(colours.ink, fill) >= 4.5
        assert contrast(colours.muted, fill) >= 4.5
        assert contrast(colours.highlight, fill) >= 4.5
    assert min(contrast(colours.ink, fill) for fill in colours.shares) >= 4.5
    for paper in papers:
        assert contrast(colours.edge, paper) >= 3
        assert contrast(colours.weak, paper) >= 3
        assert min(contrast(stroke, paper) for stroke in colours.strokes.values()) >= 3


def contrast(one: str, other: str) -> float:
    """WCAG 2.2 contrast ratio of two ``#rrggbb`` colours."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_the_style_sheet_is_made_from_the_palette() -> None:
    sheet = (Path(document.__file__).parents[1] / "static" / "fxgraph.css").read_text(encoding="utf-8")
    assert looks.updated(sheet) == sheet, "run python -m sphinx_fxgraph.render.looks"
