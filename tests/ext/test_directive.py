"""What an author can write, and what is said where it is wrong. Nothing is captured here."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sphinx_fxgraph.sphinxext.domain import fx_domain

if TYPE_CHECKING:
    from sphinx.testing.util import SphinxTestApp


class Reader:
    """Reads one page without writing any."""

    def __init__(self, folder: Path, make_app: Callable[..., SphinxTestApp]) -> None:
        self.folder = folder
        self._make_app = make_app

    def __call__(
        self, text: str, suffix: str = ".rst", **settings: object
    ) -> tuple[list[dict[str, object]], list[str]]:
        """The specs that a page shows, and the warnings."""
        conf = "extensions = ['sphinx_fxgraph', 'myst_parser']\nshow_warning_types = True\n"
        self.folder.joinpath("conf.py").write_text(conf, encoding="utf-8")
        for old in self.folder.glob("index.*"):
            old.unlink()
        self.folder.joinpath(f"index{suffix}").write_text(text, encoding="utf-8")
        return self.again(freshenv=True, **settings)

    def again(self, freshenv: bool = False, **settings: object) -> tuple[list[dict[str, object]], list[str]]:
        app = self._make_app("dummy", srcdir=self.folder, freshenv=freshenv, confoverrides=settings)
        app.build()
        warnings = re.sub(r"\x1b\[[\d;]*m", "", app.warning.getvalue()).splitlines()
        specs = [use.spec.to_dict() for use in fx_domain(app.env).all_uses()]
        app.cleanup()  # Sphinx warns of what another application has registered in this process
        return specs, [line.rpartition("/")[2] for line in warnings]


@pytest.fixture
def read(tmp_path: Path, make_app: Callable[..., SphinxTestApp]) -> Reader:
    folder = tmp_path / "docs"
    folder.mkdir()
    return Reader(folder, make_app)


def directive(*lines: str, target: str = "zoo.Net") -> str:
    return "\n   ".join([f".. fxgraph:: {target}", *lines]) + "\n"


def test_capture_options_are_the_spec_and_the_rest_is_not(read: Reader) -> None:
    specs, warnings = read(
        directive(
            ":inputs: 1, 3, 8, 8",
            ":leaf: zoo.Block, layer1.*",
            ":mode: train",
            ":seed: 3",
            ":timeout: 20",
            ":caption: *One* net",
            ":alt: A net",
            ":align: left",
            ":class: wide",
            ":height: 400",
            ":depth: 2",
            ":open: layer1, layer2.*",
            ":fold: off",
            ":nontensor: hide",
            ":direction: lr",
            ":table: name, Output Shape",
            ":expect: error",
        )
    )
    assert warnings == []
    assert specs == [
        {
            "inputs": "f32[1, 3, 8, 8]",
            "leaf": ["layer1.*", "zoo.Block"],
            "mode": "train",
            "seed": 3,
            "target": "zoo.Net",
            "timeout": 20,
        }
    ]


def test_a_long_target_goes_on_over_lines(read: Reader) -> None:
    specs, warnings = read(".. fxgraph:: zoo.Net(depth=2,\n   width=3)\n   :inputs: 1, 4\n")
    assert warnings == []
    assert specs == [{"inputs": "f32[1, 4]", "target": "zoo.Net(depth=2, width=3)"}]


def test_the_body_is_python_that_makes_the_model(read: Reader) -> None:
    specs, warnings = read(".. fxgraph::\n   :mode: train\n\n   model = zoo.Net()\n   inputs = torch.zeros(1)\n")
    assert warnings == []
    assert specs == [{"code": "model = zoo.Net()\ninputs = torch.zeros(1)", "mode": "train"}]


def test_myst_says_the_same(read: Reader) -> None:
    written, _ = read(directive(":inputs: x=f32[1, 4]", ":caption: A net"))
    specs, warnings = read("```{fxgraph} zoo.Net\n:inputs: x=f32[1, 4]\n:caption: A net\n```\n", ".md")
    assert warnings == []
    assert specs == written


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (":hieght: 4", "unknown option 'hieght'; did you mean height?"),
        (":unheard-of: 4", "unknown option 'unheard-of'; there are align, alt, caption,"),
        (":height: tall", "height: 'tall' is no height; for example 400px or 60vh"),
        (":align: middle", "align: 'middle' is none of left, center, right"),
        (":depth: -1", "depth: "),
        (":direction: up", "direction: 'up' is none of TB, LR"),
        (":table: name, shape", "table: no column 'shape'; there are name, op, target,"),
        (":class: §", "class: "),
    ],
)
def test_a_wrong_look_is_told_and_the_model_shown(read: Reader, option: str, message: str) -> None:
    specs, warnings = read("Page\n====\n\n" + directive(":inputs: 1, 4", option))
    assert specs == [{"inputs": "f32[1, 4]", "target": "zoo.Net"}]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"index.rst:4: WARNING: {message}")
    assert warnings[0].endswith("[fxgraph.option]")


@pytest.mark.parametrize(
    ("options", "message", "subtype"),
    [
        ([":mode: trian"], "mode: 'trian' is none of eval, train", "option"),
        ([":seed: one"], "seed: 'one' is no whole number", "option"),
        ([":inputs: f32[1, 4"], "inputs, column 4: '[' is never closed; for example", "input"),
        ([":inputs: f33[1]", ":mode: trian"], "inputs, ", "input"),
    ],
)
def test_a_wrong_spec_is_told_and_nothing_captured(
    read: Reader, options: list[str], message: str, subtype: str
) -> None:
    specs, warnings = read("Page\n====\n\n" + directive(*options))
    assert specs == []
    assert len(warnings) == 1
    assert warnings[0].startswith(f"index.rst:4: WARNING: {message}")
    assert warnings[0].endswith(f"[fxgraph.{subtype}]")


def test_what_is_wrong_is_told_in_every_build(read: Reader) -> None:
    _, first = read(directive(":hieght: 4"))
    _, second = read.again()
    assert len(first) == 1
    assert second == first
    _, mended = read(directive(":height: 4"))
    assert mended == []
    assert read.again()[1] == []


def test_outside_of_a_docstring_the_argument_is_needed(read: Reader) -> None:
    specs, warnings = read("Page\n====\n\n.. fxgraph::\n   :inputs: 1, 4\n")
    assert specs == []
    assert len(warnings) == 1
    assert warnings[0].startswith("index.rst:4: WARNING: which model? Outside of a docstring")


@pytest.mark.parametrize(
    ("description", "target"),
    [
        (".. py:class:: Net", "pkg.models:Net"),
        (".. py:class:: Outer.Net", "pkg.models:Outer.Net"),
        (".. py:function:: net(depth=2)", "pkg.models:net"),
        (".. py:class:: Net\n\n   .. py:method:: forward(x)", "pkg.models:Net"),
        (".. py:method:: Net.forward(x)", "pkg.models:Net"),
    ],
)
def test_in_a_description_what_is_described_is_meant(read: Reader, description: str, target: str) -> None:
    depth = (len(description.splitlines()[-1]) - len(description.splitlines()[-1].lstrip())) + 3
    text = f".. py:module:: pkg.models\n\n{description}\n\n" + "".join(
        " " * depth + line + "\n" for line in (".. fxgraph::", "   :inputs: 1, 4")
    )
    specs, warnings = read(text)
    assert warnings == []
    assert specs == [{"inputs": "f32[1, 4]", "target": target}]


def test_after_a_description_nothing_is_meant_any_more(read: Reader) -> None:
    specs, warnings = read(".. py:class:: pkg.Net\n\n   A net.\n\n.. fxgraph::\n")
    assert specs == []
    assert "which model?" in warnings[0]


def test_defaults_by_target_give_what_the_page_leaves_out(read: Reader) -> None:
    defaults = {
        "zoo.*": {"inputs": "1, 3, 8, 8", "mode": "train", "table": "none"},
        "zoo.big*": {"inputs": "1, 3, 64, 64"},
    }
    text = "\n".join(
        [directive(), directive(target="zoo.big(2)"), directive(":mode: eval"), directive(target="other.Net")]
    )
    specs, warnings = read(text, fxgraph_defaults=defaults)
    assert warnings == []
    assert specs == [
        {"inputs": "f32[1, 3, 8, 8]", "mode": "train", "target": "zoo.Net"},
        {"inputs": "f32[1, 3, 64, 64]", "mode": "train", "target": "zoo.big(2)"},
        {"inputs": "f32[1, 3, 8, 8]", "target": "zoo.Net"},
        {"target": "other.Net"},
    ]


def test_a_page_that_is_gone_shows_nothing(read: Reader) -> None:
    read("Page\n====\n\n.. toctree::\n\n   other\n")
    other = read.folder / "other.rst"
    other.write_text(":orphan:\n\n" + directive(), encoding="utf-8")
    assert read.again()[0] == [{"target": "zoo.Net"}]
    other.unlink()
    assert read.again()[0] == []
