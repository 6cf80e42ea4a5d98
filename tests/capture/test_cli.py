"""The command line, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def run(*arguments: str, cwd: Path = DOCS, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m sphinx_fxgraph`` in a folder, by default the one where `zoo` is."""
    command = [sys.executable, "-P", "-m", "sphinx_fxgraph", *arguments]
    env = os.environ | {"PYTHONPATH": str(DOCS.parent), "PYTHONIOENCODING": "utf-8"} | environment
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, check=False, encoding="utf-8")


@pytest.mark.torch
def test_show() -> None:
    done = run("show", "zoo.two_inputs.TwoInputs", "--inputs", "f32[1,3,16,16], f32[1,2,8,8]")
    assert (done.returncode, done.stderr) == (0, "")
    facts, _, *lines = done.stdout.splitlines()
    assert (
        facts
        == "14 ops · 93 parameters · 7.68 kMACs · 1×3×16×16, 1×2×8×8 → 1×4×16×16 · same graph for every input value"
    )
    words = [line.split() for line in lines]
    assert ["skip", "Conv2d", "3×3", "1×4×8×8", "f32"] in words
    header = next(line for line in lines if line.startswith("  name "))
    row = next(line for line in lines if line.startswith("  skip ") and "call_module" in line)
    for column, cell in {
        "op": "call_module",
        "output shape": "1×4×8×8 f32",
        "MACs": "4,608",
        "connected to": "add",
    }.items():
        assert row[header.index(column) :].startswith(cell)


@pytest.mark.torch
def test_show_a_failure() -> None:
    done = run("show", "zoo.broken.Misfit", "--inputs", "f32[1, 4]")
    assert done.returncode == 1
    assert "  head     Linear 16→2  failed" in done.stdout.splitlines()
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("sphinx-fxgraph: probe failed: zoo/broken.py:")
    assert "mat1 and mat2 shapes cannot be multiplied" in done.stderr


@pytest.mark.torch
def test_show_takes_the_capture_options() -> None:
    done = run("show", "zoo.two_inputs.TwoInputs", "--inputs", "1,3,4,4", "--submodule", "main", "--dtype", "bf16")
    assert done.returncode == 0
    assert done.stdout.startswith("4 ops · 16 parameters")
    assert "bf16" in done.stdout
    assert "f32" not in done.stdout


@pytest.mark.torch
def test_draw(tmp_path: Path) -> None:
    file = tmp_path / "two.svg"
    inputs = "(1,3,4,4), (1,2,2,2)"
    done = run("draw", "zoo.two_inputs.TwoInputs", "--inputs", inputs, "--direction", "LR", "-o", str(file))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    root = ET.parse(file).getroot()
    assert float(root.get("width", 0)) > float(root.get("height", 0))


@pytest.mark.torch
def test_draw_a_failure(tmp_path: Path) -> None:
    """What was reached is drawn; the exit status says that it is not all."""
    file = tmp_path / "misfit.html"
    done = run("draw", "zoo.broken.Misfit", "--inputs", "f32[1, 4]", "-o", str(file))
    assert done.returncode == 1
    assert "mat1 and mat2 shapes cannot be multiplied" in done.stderr
    assert "fxg-failed" in file.read_text(encoding="utf-8")


@pytest.mark.torch
def test_a_terminal_without_the_signs() -> None:
    done = run("show", "torch.nn.ReLU", "--inputs", "f32[2, 3]", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2?3 ? 2?3" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "pkg.Net", "--inputs", "f32[1, 3"], "inputs, column 4: '[' is never closed"),
        (["show", "pkg.Net", "--mode", "evla"], "mode: 'evla' is none of eval, train; did you mean eval?"),
        (["show"], "the following arguments are required: TARGET"),
        (["paint"], "invalid choice: 'paint'"),
        (["draw", "pkg.Net"], "the following arguments are required: -o/--output"),
        (["draw", "pkg.Net", "-o", "net.gif"], "'net.gif' ends in none of .svg, .html, .pdf, .png, .dot, .json"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize("option", [["--help"], ["show", "--help"], ["--version"]])
def test_help(option: list[str]) -> None:
    done = run(*option)
    assert (done.returncode, done.stderr) == (0, "")
    assert "sphinx-fxgraph" in done.stdout


def test_an_interpreter_that_is_not_there() -> None:
    done = run("show", "zoo.two_inputs.TwoInputs", "--python", "/nowhere/python")
    assert done.returncode == 1
    assert "sphinx-fxgraph: import failed: " in done.stderr
    assert "No such file" in done.stderr
