"""Layout engines that answer nonsense, too much, or nothing: each is said once, and the picture is drawn without it."""

from __future__ import annotations

import json
import stat
import sys
import time
from pathlib import Path

import pytest

from sphinx_fxgraph.layout.graphviz import Engine, EngineFailedError
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta
from sphinx_fxgraph.render import document
from sphinx_fxgraph.render.drawing import Job, lay_out, remark, scene

X = TensorMeta((1, 4), "f32")


def record(count: int = 1) -> Record:
    """A model with so many inputs, which are added up by one layer."""
    inputs = [Node(f"x{k}", "placeholder", f"x{k}", "input", outputs=(X,)) for k in range(count)]
    values = tuple(Value(node.name) for node in inputs)
    layer = Node("layer", "call_module", "layer", "Linear", inputs=values, outputs=(X,))
    nodes = (*inputs, layer, Node("output", "output", "output", "output", inputs=(Value("layer"),)))
    body = Body("net.Net", nodes=nodes, outputs=(Value("layer"),))
    return Record(spec={}, tracer="symbolic", root="Net", bodies={"Net": body})


def engine(folder: Path, code: str) -> Engine:
    """A program that reads DOT and does as the code says; ``graphs`` is how many there were."""
    head = f"#!{sys.executable}\nimport json, os, re, subprocess, sys, time\n"
    head += "graphs = 0 if '-V' in sys.argv else len(re.findall('digraph', sys.stdin.read()))\n"
    path = folder / "engine"
    path.write_text(head + code)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Engine(str(path))


def answer(**parts: object) -> str:
    return f"print(json.dumps({parts!r}) * graphs)"


NODE = {"name": "n0", "pos": "1,1"}
ANSWERS = {
    "no nodes": answer(bb="0,0,10,10"),
    "nan": answer(bb="0,0,10,10", objects=[{"name": "n0", "pos": "nan,1"}]),
    "nan size": answer(bb="0,0,nan,nan", objects=[NODE]),
    "infinite": answer(bb="0,0,10,10", objects=[{"name": "n0", "pos": "inf,1"}]),
    "1e300": answer(bb="0,0,1e300,1e300", objects=[NODE]),
    "huge edge": answer(bb="0,0,9,9", objects=[NODE], edges=[{"id": "0", "pos": "1e9,1 1,1 1,1 1,1"}]),
    "edge without id": answer(bb="0,0,9,9", objects=[NODE], edges=[{"pos": "1,1 1,1"}]),
    "odd points": answer(bb="0,0,9,9", objects=[NODE], edges=[{"id": "0", "pos": "1,1 2,2"}]),
    "text for numbers": answer(bb="a,b,c,d"),
    "list": "print('[]' * graphs)",
    "number": "print('7 ' * graphs)",
    "null": "print('null ' * graphs)",
    "deep": "print('[' * 100000)",
    "no json": "print('hello')",
    "nothing": "",
    "binary": "sys.stdout.buffer.write(bytes(range(256)) * 9)",
    "too many": answer(bb="0,0,9,9") + "; print('{}')",
    "status": "sys.exit(3)",
    "signal": "os.kill(os.getpid(), 9)",
    "noise": "sys.stderr.buffer.write(os.urandom(300_000)); sys.exit(1)",
    "noise and an answer": "sys.stderr.buffer.write(os.urandom(300_000)); " + answer(bb="0,0,9,9"),
    "closes": "os.close(1); os.close(2)",
}


@pytest.mark.skipif(sys.platform == "win32", reason="scripts are no programs there")
@pytest.mark.parametrize("code", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_that_is_none_is_a_complaint_and_the_picture_is_drawn_without(tmp_path: Path, code: str) -> None:
    job = Job(record())
    (complaint,) = lay_out([job], engine(tmp_path, code), timeout=60)
    assert complaint.endswith("; drawn without it")
    assert complaint.isprintable()
    assert len(complaint) < 600
    assert "simpler" in remark(job)
    drawing = document.print_svg(scene(job), title="", description="")
    assert "layer" in drawing
    assert "nan" not in drawing.lower()
    # What is kept can be read again: no number is out of the range that the cache takes.
    text = json.dumps(job.layouts)
    assert "NaN" not in text
    assert "Infinity" not in text


@pytest.mark.skipif(sys.platform == "win32", reason="scripts are no programs there")
def test_an_engine_is_ended_with_what_it_has_started(tmp_path: Path) -> None:
    code = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); time.sleep(600)"
    start = time.monotonic()
    with pytest.raises(EngineFailedError, match="needed more than 1 s"):
        engine(tmp_path, code).lay_out(["digraph {}"], timeout=1)
    assert time.monotonic() - start < 60  # and not the ten minutes for which the grandchild holds the pipes


@pytest.mark.skipif(sys.platform == "win32", reason="scripts are no programs there")
@pytest.mark.parametrize("code", ["sys.exit(1)", "sys.stderr.buffer.write(os.urandom(99_999))", "print('a\\nb' * 999)"])
def test_what_an_engine_calls_itself_is_one_short_line(tmp_path: Path, code: str) -> None:
    version = engine(tmp_path, code).version
    assert version.isprintable()
    assert 0 < len(version) <= 80


def test_a_level_of_inputs_alone_is_not_cut_for_ever() -> None:
    job = Job(record(300))
    assert len(job.missing()) >= 1
