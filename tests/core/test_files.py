"""A picture as a file of each kind."""

from __future__ import annotations

import json
import struct
import sys
import xml.etree.ElementTree as ET

import pytest
from bs4 import BeautifulSoup

from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Body, BodyInput, Node, Record, TensorMeta
from sphinx_fxgraph.render import export
from sphinx_fxgraph.render.export import ConverterMissingError

F = (TensorMeta((1, 8), "f32"),)


def op(name: str, kind: str, call: str, *inputs: str, body: str = "") -> Node:
    outputs = () if body else F
    return Node(name, call, kind, kind, inputs=tuple(map(Value, inputs)), outputs=outputs, body=body)


BLOCK = Body("Block", (BodyInput("x", F),), (op("act", "ReLU", "call_module", ""),), (Value("act"),))
NET = Body(
    "Net",
    (),
    (
        op("x", "input", "placeholder"),
        op("a<b", "Block", "call_module", "x", body="Block"),
        op("output", "output", "output", "a<b"),
    ),
)
RECORD = Record({}, "symbolic", "Net", {"Net": NET, "Block": BLOCK})


def written(suffix: str, look: ViewOptions = ViewOptions()) -> bytes:  # noqa: B008 - frozen
    return export.content(suffix, RECORD, look, "pkg.Net <1>")


def test_svg_is_a_picture_by_itself() -> None:
    root = ET.fromstring(written(".svg", ViewOptions(direction="LR")))
    assert float(root.get("width", 0)) > float(root.get("height", 0))
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "pkg.Net <1>"


def test_pdf_and_png_show_it() -> None:
    pytest.importorskip("cairosvg")
    assert written(".pdf").startswith(b"%PDF-")
    png = written(".png")
    width, height = struct.unpack(">II", png[16:24])
    root = ET.fromstring(written(".svg"))
    assert (width, height) == (2 * float(root.get("width", 0)), 2 * float(root.get("height", 0)))


def test_a_figure_for_print_has_the_width_of_a_column() -> None:
    whole = ET.fromstring(export.content(".svg", RECORD, ViewOptions(), "n"))
    width, height = float(whole.attrib["width"]), float(whole.attrib["height"])
    small = ET.fromstring(export.content(".svg", RECORD, ViewOptions(), "n", width=width / 2))
    assert [float(small.attrib[name]) for name in ("width", "height")] == pytest.approx([width / 2, height / 2])
    assert small.attrib["viewBox"] == whole.attrib["viewBox"]
    # A wider figure has room beside the picture, and letters of the same size.
    wide = ET.fromstring(export.content(".svg", RECORD, ViewOptions(), "n", width=export.length("6.8in")))
    left, top, across, along = map(float, wide.attrib["viewBox"].split())
    assert [float(wide.attrib[name]) for name in ("width", "height")] == pytest.approx([across, along])
    assert (top, across, along, left + across / 2) == pytest.approx((0, 652.8, height, width / 2))
    assert [export.length(text) for text in ("25.4mm", "2.54cm", "72pt", "96px")] == pytest.approx([96] * 4)
    for wrong in ("3.3", "wide", "0in", "-1in"):
        with pytest.raises(ValueError, match=r"3\.3in"):
            export.length(wrong)


def test_where_nothing_converts_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)  # as Python itself notes what cannot be imported
    with pytest.raises(ConverterMissingError, match=r"pip install 'sphinx-fxgraph\[print\]'"):
        written(".pdf")


def test_json_and_dot_have_all_of_it() -> None:
    assert json.loads(written(".json"))["bodies"]
    assert written(".dot").startswith(b"digraph")


def test_html_is_one_file_in_which_closed_modules_can_be_opened() -> None:
    page = BeautifulSoup(written(".html", ViewOptions(depth=0)), "lxml")
    assert page.title
    assert page.title.text == "pkg.Net <1>"
    assert not page.select("[src], link")
    assert page.select_one("g.fxg-closed[data-path='a<b']")
    assert "Block" in json.loads(page.select_one("script.fxg-insides").text)  # type: ignore[union-attr]
    assert page.select_one("figure .fxg-facts")
    assert [row["id"] for row in page.select("table.fxg-nodes tbody tr[id]")] == [
        "fx-row-x",
        "fx-row-output",
        "fx-row-a_x003C_b.act",
    ]
    assert [cell.text for cell in page.select("table.fxg-stages tbody td")][:3] == ["a<b", "Block", "1×8"]
