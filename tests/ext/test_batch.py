"""When models are captured and pages written again, and when they are not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import Build, Project

pytestmark = pytest.mark.torch

NET = """
    from torch import nn

    class {name}(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, {width})

        def forward(self, x):
            return self.layer(x)
"""

WATCH = """
show_warning_types = True

def setup(app):
    import sys
    watched = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system")
    sys.addaudithook(lambda event, args: event in watched and print("process:", event))
    rooms = ("record.model", "render.drawing", "worker.pool")
    ours = ["torch", *(f"sphinx_fxgraph.{name}" for name in rooms)]
    app.connect("build-finished", lambda app, error: print("imported:", [name for name in ours if name in sys.modules]))
"""


def net(project: Project, name: str, width: int = 2) -> None:
    project.write(f"nets/{name.lower()}.py", textwrap.dedent(NET).format(name=name, width=width))


def page(*names: str) -> str:
    return "".join(f".. fxgraph:: nets.{name.lower()}.{name}\n   :inputs: 1, 4\n\n" for name in names)


def write(project: Project, name: str, text: str) -> None:
    project.write(f"{name}.rst", f":orphan:\n\n{name}\n{'=' * len(name)}\n\n{text}")


def fill(project: Project) -> None:
    """Pages: `one` shows the model One, `both` shows One and Two, `two` shows Two, `plain` shows none.

    No page has the others in its toctree: Sphinx writes such a page again with each of them.
    """
    project.write("nets/__init__.py", "from nets.one import One\nfrom nets.two import Two\n")
    net(project, "One")
    net(project, "Two")
    project.configure(WATCH)
    pages = {"index": "x\n", "one": page("One"), "two": page("Two"), "both": page("One", "Two"), "plain": "x\n"}
    for name, text in pages.items():
        write(project, name, text)


def cache(project: Project) -> Path:
    return project.target / "doctrees" / "fxgraph"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Build]:
    """The only build that has no cache."""
    project = Project(tmp_path_factory.mktemp("first"))
    fill(project)
    return project, project.build("html", "-W", "-j", "1", PYTHONHASHSEED="1")


@pytest.fixture
def nets(project: Project, first: tuple[Project, Build]) -> Project:
    """The same in another folder, not built yet, with a copy of the cache."""
    fill(project)
    shutil.copytree(cache(first[0]), cache(project))
    return project


def captured(build: Build) -> list[str]:
    """The targets in the order of their progress lines."""
    lines = build.output.replace("\r", "\n").splitlines()
    return sorted(line.split("] ")[1].strip() for line in lines if line.startswith("capturing graphs... ["))


def stamps(build: Build) -> dict[str, int]:
    """When each page of a build was last written."""
    return {path.stem: path.stat().st_mtime_ns for path in build.folder.glob("*.html")}


def rewritten(before: dict[str, int], build: Build) -> list[str]:
    """Which pages are newer; older versions of Sphinx write the index with any other page."""
    after = stamps(build)
    return sorted(name for name in ("one", "two", "both", "plain") if after[name] != before[name])


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_the_first_build_captures_in_other_processes(first: tuple[Project, Build]) -> None:
    project, build = first
    assert build.status == 0, build.warnings
    assert captured(build) == ["nets.one.One", "nets.two.Two"]
    assert "process: subprocess.Popen" in build.output
    assert "imported: ['sphinx_fxgraph.record.model', " in build.output
    assert len(list(cache(project).iterdir())) == 6


def test_a_second_build_does_nothing(first: tuple[Project, Build]) -> None:
    project, build = first
    before, kept = stamps(build), files(cache(project))
    second = project.build("html", "-W")
    assert second.status == 0
    assert captured(second) == []
    assert "laying out" not in second.output
    assert "0 added, 0 changed, 0 removed" in second.output
    assert "process:" not in second.output
    assert "imported: []" in second.output
    assert rewritten(before, second) == []
    assert files(cache(project)) == kept


def test_html_is_the_same_in_parallel_elsewhere_and_with_a_copied_cache(
    first: tuple[Project, Build], nets: Project
) -> None:
    _, serial = first
    parallel = nets.build("html", "-W", "-j", "4", PYTHONHASHSEED="2")
    assert parallel.status == 0, parallel.warnings
    assert captured(parallel) == []
    for name in ("one.html", "two.html", "both.html", "searchindex.js", ".fxgraph.json"):
        assert parallel.page(name) == serial.page(name)


def test_a_record_is_the_same_wherever_and_whenever_it_is_made(first: tuple[Project, Build], nets: Project) -> None:
    kept = files(cache(nets))
    before = stamps(nets.build("html"))
    build = nets.build("html", "-D", "fxgraph_mode=force", PYTHONHASHSEED="2")
    assert captured(build) == ["nets.one.One", "nets.two.Two"]
    assert rewritten(before, build) == []
    assert files(cache(nets)) == kept
    shutil.rmtree(cache(nets))
    nets.build("html", PYTHONHASHSEED="3")
    for path in cache(first[0]).iterdir():
        assert (cache(nets) / path.name).read_bytes() == path.read_bytes(), path.name


def test_exactly_the_pages_of_an_edited_model_are_written_again(nets: Project) -> None:
    before = stamps(nets.build("html"))
    net(nets, "One", width=3)
    build = nets.build("html", "-W")
    assert captured(build) == ["nets.one.One"]
    assert rewritten(before, build) == ["both", "one"]
    assert "1×3" in build.page("one.html")


def test_two_outputs_share_captures_and_each_knows_its_own_pages(nets: Project) -> None:
    nets.build("html")
    text = nets.build("text")
    assert captured(text) == []
    net(nets, "One", width=3)
    assert captured(nets.build("html")) == ["nets.one.One"]
    text = nets.build("text")  # the record is fresh by now, but this output still shows the old one
    assert captured(text) == []
    assert "1×3" in text.page("one.txt")


def test_a_new_look_is_no_capture(nets: Project) -> None:
    before = stamps(nets.build("html"))
    write(nets, "one", page("One").replace(":inputs:", ":table: name\n   :height: 90px\n   :inputs:"))
    build = nets.build("html", "-W")
    assert captured(build) == []
    assert rewritten(before, build) == ["one"]
    assert 'data-height="90px"' in build.page("one.html")


def test_what_was_not_written_yet_is_written_later(nets: Project) -> None:
    whole = nets.build("html")
    net(nets, "One", width=5)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-d", str(nets.target / "doctrees")]
    subprocess.run([*command, str(nets.source), str(whole.folder), str(nets.source / "one.rst")], check=True)
    assert "1×5" in whole.page("one.html")
    assert "1×5" not in whole.page("both.html")
    later = nets.build("html")
    assert captured(later) == []
    assert "1×5" in later.page("both.html")


class TestCachedMode:
    @pytest.fixture
    def cached(self, nets: Project) -> Project:
        """A committed cache that holds One, fresh, and Two, stale; a page shows Three, which is not in it."""
        shutil.move(cache(nets), nets.source / "_models")
        net(nets, "Two", width=7)
        net(nets, "Three")
        write(nets, "plain", page("Three"))
        nets.configure(WATCH + "fxgraph_cache_dir = '_models'\nfxgraph_mode = 'cached'\n")
        return nets

    def test_shows_what_there_is_and_tells_what_is_not(self, cached: Project) -> None:
        kept = files(cached.source / "_models")
        build = cached.build("html")
        assert captured(build) == []
        assert "process:" not in build.output
        assert "'torch'" not in build.output
        assert files(cached.source / "_models") == kept
        stale = "WARNING: nets.two.Two: shown as it was captured before: nets/two.py changed [fxgraph.cache]"
        both, plain, two = sorted(line.rpartition("/docs/")[2] for line in build.warnings.splitlines())
        assert both == f"both.rst:9: {stale}"
        assert two == f"two.rst:6: {stale}"
        assert plain.startswith("plain.rst:6: WARNING: nets.three.Three: The model is not in the cache")
        assert plain.endswith("[fxgraph.cache]")
        assert "1×2" in build.page("two.html")
        assert "nets.three.Three" in build.page("plain.html")

    def test_tells_it_again(self, cached: Project) -> None:
        first = cached.build("html")
        second = cached.build("html")
        assert first.warnings.count("[fxgraph.cache]") == 3
        assert second.warnings == first.warnings


def test_off_shows_caption_and_target(nets: Project) -> None:
    nets.configure("fxgraph_mode = 'off'\n" + WATCH)
    write(nets, "one", page("One").replace(":inputs:", ":caption: A net\n   :inputs:"))
    build = nets.build("html", "-nW")
    assert build.status == 0
    assert "process:" not in build.output
    one = build.page("one.html")
    assert "nets.one.One" in one
    assert "A net" in one
    assert "<svg" not in one
    nets.configure()
    assert "<svg" in nets.build("html").page("one.html")


def test_a_page_is_forgotten_with_its_graphs(nets: Project) -> None:
    nets.build("html")
    write(nets, "two", "Nothing here.\n")
    write(nets, "both", page("One"))
    net(nets, "Two", width=9)
    build = nets.build("html", "-W")
    assert captured(build) == []
    assert sorted(json.loads(build.page(".fxgraph.json"))["pages"]) == ["both", "one"]
