"""Shares of the whole: in tooltips, and as shades with their percentage."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from sphinx_fxgraph.layout import graphviz
from sphinx_fxgraph.options import COLORS, ViewOptions
from sphinx_fxgraph.render import document
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.render.colors import Shares, format_percent, shade
from sphinx_fxgraph.units import Units

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import Tensor, nn  # noqa: E402 - only where torch is

from sphinx_fxgraph.capture.capture import record_model  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.fc(x))


class Net(nn.Module):
    """Four blocks of 64 parameters each, which fold; a scale of 64, and a head of 80: 400 in all."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(4)))
        self.scale = nn.Parameter(torch.ones(8, 8))
        self.head = nn.Linear(8, 10, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(x) * self.scale)


@pytest.fixture(scope="module")
def job() -> compose.Job:
    job = compose.Job(record_model(Net(), (torch.ones(8, 8),), {}), ViewOptions(depth=1), inside=True)
    compose.lay_out([job], graphviz.find_engine(""))
    return job


def boxes(text: str) -> dict[str, ET.Element]:
    return {found.attrib["data-path"]: found for found in ET.fromstring(text).iter(f"{SVG}g") if found.get("data-path")}


def said(box: ET.Element) -> list[str]:
    return [text.text or "" for text in box.findall(f"{SVG}text") if text.get("class") == "fxg-percent"]


def page(job: compose.Job, colour: str) -> dict[str, ET.Element]:
    shares = Shares(job.record, colour=colour)
    return boxes(document.page_svg(compose.scene(job), figure="f", title="t", description="d", shares=shares))


def test_tooltips_tell_the_share_of_each_number(job: compose.Job) -> None:
    found = {path: box.findtext(f"{SVG}title") or "" for path, box in page(job, "kind").items()}
    assert "80 parameters (20 %) · 640 MACs (24 %) · 320 B of activations (12 %)" in found["head"].splitlines()
    assert "256 parameters (64 %)" in found["blocks"]
    assert not [box for box in page(job, "kind").values() if said(box)]


def test_a_run_has_the_share_of_all_its_members(job: compose.Job) -> None:
    found = page(job, "params")
    assert said(found["blocks.0"]) == ["64 %"]
    assert said(found["blocks"]) == ["64 %"]
    assert said(found["head"]) == ["20 %"]
    assert said(found["scale"]) == ["16 %"]


def test_every_shaded_box_says_its_share(job: compose.Job) -> None:
    for colour in COLORS:
        for box in page(job, colour).values():
            classes = box.attrib["class"].split()
            shades = [name for name in classes if name.startswith("fxg-share-")]
            assert bool(shades) == ("fxg-shaded" in classes)
            if shades and shades != ["fxg-share-0"]:
                assert len(said(box)) == 1


def test_the_inside_of_a_closed_module_has_shares_too(job: compose.Job) -> None:
    shares = Shares(job.record, colour="params")
    (name, inside), *_ = compose.insides(job).items()
    drawn = document.inside_svg(inside, figure="f", shares=shares.inside(name))["svg"]
    assert re.search(r'data-path="fc".*16 %', str(drawn))


def test_print_has_shades_and_their_legend(job: compose.Job) -> None:
    text = document.print_svg(compose.scene(job), title="t", description="d", shares=Shares(job.record, colour="macs"))
    assert "class=" not in text
    assert {"no MACs", "≥20 %", "24 %"} <= {found.text for found in ET.fromstring(text.encode()).iter(f"{SVG}text")}


@pytest.mark.parametrize(
    ("percent", "text", "step"),
    [(0.0, "0 %", 0), (0.04, "<0.1 %", 1), (1.0, "1.0 %", 2), (9.96, "10 %", 4), (25.0, "25 %", 6)],
)
def test_percentages(percent: float, text: str, step: int) -> None:
    assert (format_percent(percent), shade(percent)) == (text, step)


def test_numbers_in_tooltips_are_written_as_the_project_writes_them() -> None:
    model = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 500))
    job = compose.Job(record_model(model, (torch.ones(2, 8),), {}), ViewOptions())
    compose.lay_out([job], graphviz.find_engine(""))
    shares = Shares(job.record, Units("SI", "all"))
    found = boxes(document.page_svg(compose.scene(job), figure="f", title="t", description="d", shares=shares))
    assert "80 MACs (1.0 %)" in (found["0"].findtext(f"{SVG}title") or "")
    assert "4.50 k parameters (100 %) · 8.00 kMACs (99 %)" in (found["1"].findtext(f"{SVG}title") or "")
