"""Whole builds on a cache that is damaged, shared, full or cut short: a miss or a warning, never a crash."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from older import older_json

from sphinx_fxgraph.cache.store import Store
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.header import SCHEMA
from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta
from sphinx_fxgraph.spec.spec import GraphSpec

if TYPE_CHECKING:
    from conftest import Project
    from sphinx.testing.util import SphinxTestApp

X = TensorMeta((1, 4), "f32")
NAMES = ("One", "Two")

Builder = Callable[..., "SphinxTestApp"]


def spec(name: str) -> GraphSpec:
    return GraphSpec.parse(f"net.{name}", inputs="1, 4")


def record(name: str) -> Record:
    """A model of one layer, which is fresh for ever: it has no source."""
    nodes = (
        Node("x", "placeholder", "x", "input", outputs=(X,)),
        Node(f"layer{name}", "call_module", f"layer{name}", "Linear", inputs=(Value("x"),), outputs=(X,)),
        Node("output", "output", "output", "output", inputs=(Value(f"layer{name}"),)),
    )
    body = Body("net.Net", nodes=nodes, outputs=(Value(f"layer{name}"),))
    return Record(spec=spec(name).to_dict(), tracer="symbolic", root="Net", bodies={"Net": body})


@pytest.fixture
def site(project: Project) -> Project:
    """A page with two models; their records are in the cache, their layouts are not."""
    project.configure("fxgraph_cache_dir = 'graphs'\nfxgraph_mode = 'cached'\nshow_warning_types = True\n")
    shown = "".join(f".. fxgraph:: net.{name}\n   :inputs: 1, 4\n\n" for name in NAMES)
    project.write("index.rst", f"Site\n====\n\n{shown}")
    store = Store(project.source / "graphs")
    for name in NAMES:
        assert store.put_record(spec(name), record(name))
    return project


@pytest.fixture
def build(site: Project, make_app: Callable[..., SphinxTestApp]) -> Builder:
    """A build in this process."""

    def run(builder: str = "html", **settings: object) -> SphinxTestApp:
        app = make_app(builder, srcdir=site.source, builddir=site.target, confoverrides=settings)
        app.build()
        app.cleanup()
        assert app.statuscode == 0
        return app

    return run


def page(app: SphinxTestApp) -> str:
    return (app.outdir / "index.html").read_text(encoding="utf-8")


def warnings(app: SphinxTestApp) -> list[str]:
    plain = re.sub(r"\x1b\[[\d;]*m", "", app.warning.getvalue())
    return [line.partition("WARNING: ")[2] for line in plain.splitlines() if "WARNING: " in line]


def file(project: Project, name: str, suffix: str = ".json") -> Path:
    return Path(project.source, "graphs", f"{name}-{spec(name).id[:8]}{suffix}")


class Trap:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch sprung",)


class TestAFileThatIsNotWhatItShallBe:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"null",
            b"[1, 2",
            b"\xff\xfe\x00",
            b'{"schema": 3, "spec": {}}',
            b'{"schema": "x", "bodies": 7}',
            b'{"schema": 3, "spec": {}, "tracer": "", "bodies": {"a": {"type": [], "nodes": [[]]}}}',
            b"[" * 100_000,
            pickle.dumps(Trap()),
        ],
    )
    def test_a_record(
        self, site: Project, build: Builder, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        file(site, "One").write_bytes(content)
        app = build()
        (told,) = warnings(app)
        assert told.startswith("net.One: The model is not in the cache")
        assert told.endswith("[fxgraph.cache]")
        assert "layerTwo" in page(app)
        assert page(app).count("<svg") == 1
        assert file(site, "One").read_bytes() == content
        assert not (tmp_path / "sprung").exists()

    def test_a_record_is_torn_in_its_middle(self, site: Project, build: Builder) -> None:
        whole = file(site, "One").read_bytes()
        file(site, "One").write_bytes(whole[: len(whole) // 2])
        assert "layerOne" not in page(build())
        file(site, "One").write_bytes(whole)
        assert "layerOne" in page(build())

    def test_a_record_of_another_model(self, site: Project, build: Builder) -> None:
        shutil.copy(file(site, "Two"), file(site, "One"))
        app = build()
        assert page(app).count("<svg") == 1
        assert warnings(app)[0].startswith("net.One: The model is not in the cache")

    @pytest.mark.parametrize("schema", range(1, SCHEMA))
    def test_a_record_of_an_older_version_keeps_its_picture(self, site: Project, build: Builder, schema: int) -> None:
        file(site, "One").write_text(older_json(record("One"), schema), encoding="utf-8")
        app = build()
        assert page(app).count("<svg") == 2
        assert "layerOne" in page(app)
        told = f"written in format {schema}, today's is {SCHEMA}"
        assert warnings(app) == [f"net.One: shown as it was captured before: {told} [fxgraph.cache]"]

    def test_a_record_of_a_newer_version_is_told_of_with_what_to_do(self, site: Project, build: Builder) -> None:
        newer = file(site, "One")
        newer.write_text(json.dumps({"schema": SCHEMA + 1, "spec": {}, "tracer": "", "surprise": []}))
        app = build()
        assert page(app).count("<svg") == 1
        assert "net.One" in page(app)
        assert any(
            f"schema {SCHEMA + 1} is newer" in told and "update sphinx-fxgraph" in told for told in warnings(app)
        )

    @pytest.mark.parametrize("content", ["", "{", "[]", '{"engine": "dot", "levels": {"a": 1}}'])
    def test_layouts(self, site: Project, build: Builder, content: str) -> None:
        build(fxgraph_mode="auto")
        good = file(site, "One", ".layout.json").read_text()
        file(site, "One", ".layout.json").write_text(content)
        app = build(fxgraph_mode="auto")
        assert (page(app).count("<svg"), warnings(app)) == (2, [])
        assert file(site, "One", ".layout.json").read_text() == good


class TestADiskThatTakesNothing:
    @pytest.fixture
    def small(self, site: Project) -> Iterator[Path]:
        """The cache on a disk of its own, without room for anything more."""
        if sys.platform != "linux" or os.geteuid():
            pytest.skip("only root mounts disks")
        graphs = site.source / "graphs"
        kept = {path.name: path.read_bytes() for path in graphs.iterdir()}
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", graphs], check=False).returncode:
            pytest.skip("this machine mounts no disk")
        try:
            for name, data in kept.items():
                (graphs / name).write_bytes(data)
            yield graphs
        finally:
            subprocess.run(["umount", graphs], check=True)

    def test_a_full_one(self, small: Path, build: Builder) -> None:
        with pytest.raises(OSError, match="No space"):
            (small / "filler").write_bytes(bytes(1 << 20))
        self.shows_all(small, build, "No space left on device")

    def test_one_that_is_read_only(self, small: Path, build: Builder) -> None:
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        self.shows_all(small, build, "Read-only file system")

    @staticmethod
    def shows_all(folder: Path, build: Builder, reason: str) -> None:
        kept = sorted(path.name for path in folder.iterdir())
        for _ in range(2):
            app = build(fxgraph_mode="auto")
            assert page(app).count("<svg") == 2
            assert warnings(app) == [f"cannot write to {folder}: {reason} [fxgraph.cache]"]
            assert sorted(path.name for path in folder.iterdir()) == kept


def command(project: Project, builder: str, name: str) -> list[str]:
    target = project.target / name
    places = ["-d", str(target / "doctrees"), str(project.source), str(target / builder)]
    return [sys.executable, "-m", "sphinx", "-b", builder, *places]


def started(program: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        program,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=_interruptible if sys.platform != "win32" else None,
    )


def _interruptible() -> None:
    """A shell lets what it starts in the background ignore Ctrl+C, and all that this starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(project: Project, builder: str, name: str, *arguments: str) -> subprocess.Popen[str]:
    return started([*command(project, builder, name), *arguments])


def words(tex: Path) -> str:
    """The text, its words whole again."""
    return tex.read_text(encoding="utf-8").replace("\\allowbreak{}", "")


def test_builds_at_once_on_one_cache_and_one_folder_of_doctrees(site: Project, build: Builder) -> None:
    outputs = ("html", "0"), ("html", "1"), ("latex", "1")
    runs = [start(site, builder, name, "-D", "fxgraph_mode=auto") for builder, name in outputs]
    said = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], said
    assert not any("WARNING" in text for text in said)
    one, other = ((site.target / name / "html/index.html").read_text() for name in "01")
    assert one == other
    assert "layerOne" in words(site.target / "1/latex/project.tex")
    assert one.count("<svg") == 2
    assert len(list((site.source / "graphs").iterdir())) == 6
    assert warnings(build()) == []


def test_outputs_one_after_another_with_one_environment(build: Builder) -> None:
    html = build("html")
    shown = page(html)
    latex = build("latex")
    assert "layerOne" in words(next(latex.outdir.glob("*.tex")))
    again = build("html")
    assert page(again) == shown


MODEL = """
from torch import nn

class One(nn.Module):
    def __init__(self):
        super().__init__()
        self.forced = nn.Linear(4, 4)

    def forward(self, x):
        return self.forced(x)

class Two(One):
    pass
"""


@pytest.mark.torch
def test_what_no_source_tells_of_is_captured_by_force(site: Project, build: Builder) -> None:
    site.write("net.py", MODEL)
    kept = build("html", fxgraph_mode="auto")
    assert "layerOne" in page(kept)
    assert "capturing" not in kept.status.getvalue()
    forced = build("html", fxgraph_mode="force")
    assert "forced" in page(forced)
    assert "layerOne" not in page(forced)
    assert "forced" in page(build("html", fxgraph_mode="cached"))


SLOW = """
import glob, os, time
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

class One(Net):
    pass

class Two(Net):
    def __init__(self):
        super().__init__()
        if os.path.exists({pipe!r}):
            while not glob.glob({kept!r}):
                time.sleep(0.01)
            os.close(os.open({pipe!r}, os.O_WRONLY))  # the build has kept One, and is in the middle of Two
            time.sleep(3600)
"""


@pytest.mark.torch
@pytest.mark.skipif(sys.platform == "win32", reason="has no named pipes")
def test_a_build_that_is_ended_keeps_what_was_finished(site: Project) -> None:
    graphs = site.source / "graphs"
    pipe = site.source / "pipe"
    os.mkfifo(pipe)
    site.write("net.py", SLOW.format(pipe=str(pipe), kept=str(graphs / "One-*.json")))
    build = [*command(site, "html", "ended"), "-D", "fxgraph_mode=auto"]
    warm = [sys.executable, "-m", "sphinx_fxgraph", "warm", str(site.source)]
    for program, tell, end in (
        (build, os.killpg, signal.SIGINT),
        (build, os.killpg, signal.SIGKILL),
        (warm, os.kill, signal.SIGTERM),
    ):
        shutil.rmtree(graphs)
        run = started([*program, "-D", "fxgraph_workers=2"])
        pipe.read_bytes()  # returns when the model Two is being made
        tell(run.pid, end)
        run.communicate(timeout=60)  # returns when none is left that could write
        assert run.returncode != 0
        store = Store(graphs)
        kept = store.record(spec("One"))
        assert kept is not None
        assert kept.failure is None
        assert store.record(spec("Two")) is None
    pipe.unlink()
    last = start(site, "html", "ended", "-D", "fxgraph_mode=auto")
    said = last.communicate(timeout=120)[0]
    assert (last.returncode, "WARNING" in said) == (0, False), said
    assert said.count("net.Two") == 1
    assert "net.One" not in said
    assert (site.target / "ended/html/index.html").read_text(encoding="utf-8").count("<svg") == 2
