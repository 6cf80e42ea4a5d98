"""What a record depends on, and when that is no longer what it was. Real packages in a temporary folder."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sphinx_fxgraph.cache.fingerprints import SourceFinder, class_files, depends_on, digest, portable
from sphinx_fxgraph.record.header import SCHEMA, Source
from sphinx_fxgraph.record.model import Record

TEXT = "class Net:\n    def forward(self, x):\n        return x\n"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder on the import path; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", newline="")
    importlib.invalidate_caches()


def record(*files: str, text: str = TEXT, **distributions: str) -> Record:
    """A record made from files with this text."""
    sources = tuple(Source(file, digest(text.encode())) for file in files)
    return Record(spec={}, tracer="symbolic", sources=sources, distributions=distributions)


def install(site: Path, name: str, version: str, *files: str, top_level: bool = True) -> None:
    """What pip leaves of a distribution."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    write(site, dict.fromkeys(files, TEXT))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("".join(f"{file},sha256=x,9\n" for file in files))
    if top_level:
        (info / "top_level.txt").write_text("\n".join({file.split("/")[0].removesuffix(".py") for file in files}))


# -- fresh or stale


def test_a_record_is_fresh_until_one_of_its_files_changes(path: Path) -> None:
    write(path, {"pkg/__init__.py": "", "pkg/sub/net.py": TEXT, "pkg/sub/other.py": TEXT})
    made = record("pkg/sub/net.py", "pkg/sub/other.py")
    assert SourceFinder().stale_reasons(made) == ()
    write(path, {"pkg/sub/net.py": TEXT + "# more\n", "pkg/__init__.py": "x = 1\n"})
    assert SourceFinder().stale_reasons(made) == ("pkg/sub/net.py changed",)


def test_nothing_is_imported_to_find_out(path: Path) -> None:
    write(
        path, {"pkg/__init__.py": "raise SystemExit('imported')\n", "pkg/sub/__init__.py": "1/0\n", "pkg/net.py": TEXT}
    )
    assert SourceFinder().stale_reasons(record("pkg/net.py")) == ()
    assert SourceFinder().stale_reasons(record("pkg/net.py", text="old")) == ("pkg/net.py changed",)
    assert "pkg" not in sys.modules


def test_line_ends_do_not_matter(path: Path) -> None:
    for ends in ("\r\n", "\r"):
        write(path, {"net.py": TEXT.replace("\n", ends)})
        assert SourceFinder().stale_reasons(record("net.py")) == ()


def test_a_file_that_is_gone_is_a_change_and_a_package_that_is_not_here_is_none(path: Path) -> None:
    write(path, {"pkg/__init__.py": ""})
    assert SourceFinder().stale_reasons(record("pkg/net.py")) == ("pkg/net.py is gone",)
    assert SourceFinder().stale_reasons(record("elsewhere/net.py", "elsewhere.py")) == ()


def test_a_build_sees_one_state_of_a_file(path: Path) -> None:
    write(path, {"net.py": TEXT})
    finder = SourceFinder()
    assert finder.stale_reasons(record("net.py")) == ()
    write(path, {"net.py": "changed"})
    assert finder.stale_reasons(record("net.py")) == ()
    assert SourceFinder().stale_reasons(record("net.py")) == ("net.py changed",)


def test_an_older_format_is_stale() -> None:
    old = Record(spec={}, tracer="symbolic", schema=SCHEMA - 1)
    assert SourceFinder().stale_reasons(old) == (f"written in format {SCHEMA - 1}, today's is {SCHEMA}",)


def test_a_new_release_of_a_distribution_is_a_change_its_local_part_is_none(path: Path) -> None:
    install(path, "torchish", "2.14.1+cpu", "torchish/__init__.py")
    reasons = SourceFinder().stale_reasons(record(torchish="2.13.0", absent="1.0"))
    assert reasons == ("torchish 2.13.0 → 2.14.1",)
    assert SourceFinder().stale_reasons(record(torchish="2.14.1")) == ()


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("pkg/../outside.py", "pkg/../outside.py is no source file"),
        ("../outside.py", "../outside.py is no source file"),
        ("pkg/\0.py", "pkg/\0.py is gone"),
        ("pkg/net.py/net.py", "pkg/net.py/net.py is gone"),
        ("/outside.py", None),
        ("", None),
    ],
)
def test_a_hostile_name_leads_out_of_no_package(path: Path, file: str, reason: str | None) -> None:
    write(path, {"pkg/__init__.py": "", "pkg/net.py": TEXT, "outside.py": TEXT})
    assert SourceFinder().stale_reasons(record(file)) == ((reason,) if reason else ())


# -- where packages are


def test_src_layout_and_namespace_packages_in_two_folders(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, {"a/src/space/one/net.py": TEXT, "b/space/two/net.py": TEXT})
    monkeypatch.syspath_prepend(str(path / "a/src"))
    monkeypatch.syspath_prepend(str(path / "b"))
    finder = SourceFinder()
    assert finder.stale_reasons(record("space/one/net.py", "space/two/net.py")) == ()
    assert finder.locate("space/one/net.py") == path / "a/src/space/one/net.py"
    assert finder.stale_reasons(record("space/three/net.py")) == ("space/three/net.py is gone",)


def test_a_zipped_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = path / "pkgs.zip"
    made = record("zipped/net.py")
    for text, reasons in ((TEXT, ()), ("# changed", ("zipped/net.py changed",))):
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("zipped/__init__.py", "")
            file.writestr("zipped/net.py", text)
        monkeypatch.syspath_prepend(str(archive))
        assert SourceFinder().stale_reasons(made) == reasons
    module = importlib.import_module("zipped.net")
    assert module.__file__ is not None
    assert portable(module.__file__) == "zipped/net.py"
    assert depends_on([module.__file__])[0] == (Source("zipped/net.py", digest(b"# changed")),)


class Mapped(importlib.abc.MetaPathFinder):
    """What an editable install puts on `sys.meta_path`: names and where they are."""

    def __init__(self, names: dict[str, Path]) -> None:
        self.names = names

    def find_spec(self, fullname: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        place = self.names.get(fullname)
        return importlib.util.spec_from_file_location(fullname, place) if place else None


class Broken(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, *_: Any) -> None:
        raise RuntimeError(fullname)


class NoInstance:
    """On `sys.meta_path` stands the class itself."""

    def invalidate_caches(self) -> None:
        """Cannot be called."""


def test_finders_of_editable_installs_are_asked_and_a_broken_one_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"checkout/python/__init__.py": "", "checkout/python/net.py": TEXT})
    mapped = Mapped({"mapped": tmp_path / "checkout/python/__init__.py"})
    monkeypatch.setattr(sys, "meta_path", [NoInstance, Broken(), *sys.meta_path, mapped])
    assert SourceFinder().stale_reasons(record("mapped/net.py")) == ()
    assert SourceFinder().stale_reasons(record("mapped/net.py", text="old")) == ("mapped/net.py changed",)


def test_another_import_path_can_be_searched_instead(path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    write(path, {"net.py": TEXT})
    write(other, {"net.py": "another"})
    assert SourceFinder([str(other)]).stale_reasons(record("net.py")) == ("net.py changed",)


def test_what_a_project_ignores_makes_no_record_stale(path: Path) -> None:
    write(path, {"pkg/net.py": TEXT, "pkg/__init__.py": ""})
    install(path / "site-packages", "Big.Zoo", "2.0", "zoo.py", top_level=True)
    made = Record(
        spec={},
        tracer="",
        sources=(Source("pkg/net.py", "0" * 64),),
        distributions={"msgspec": "0.0.1"},
    )
    assert len(SourceFinder().stale_reasons(made)) == 2
    assert SourceFinder().moved_releases(made) == SourceFinder(ignored=["pkg"]).stale_reasons(made)
    assert SourceFinder(ignored=["MSG*"]).stale_reasons(made) == ("pkg/net.py changed",)
    assert SourceFinder(ignored=["msgspec", "pk?"]).stale_reasons(made) == ()


# -- at capture


def test_a_class_depends_on_its_bases_and_decorators_wherever_they_are(path: Path) -> None:
    write(
        path,
        {
            "pkg/__init__.py": "from pkg.net import Net\nNet.__module__ = 'pkg'\n",
            "pkg/base.py": TEXT.replace("Net", "Base"),
            "pkg/decorate.py": (
                "import functools\n"
                "def log(f):\n    @functools.wraps(f)\n    def run(*args):\n        return f(*args)\n    return run\n"
            ),
            "pkg/net.py": (
                "from pkg.base import Base\nfrom pkg.decorate import log\nfrom pkg.unused import nothing\n"
                "class Net(Base):\n    @log\n    def forward(self, x):\n        return x\n"
            ),
            "pkg/unused.py": "nothing = None\n",
        },
    )
    net = importlib.import_module("pkg").Net
    sources, distributions = depends_on(class_files([net]))
    assert {"pkg/base.py", "pkg/decorate.py", "pkg/net.py"} <= {source.file for source in sources}
    assert "pkg/unused.py" not in {source.file for source in sources}
    assert distributions == {}
    made = Record(spec={}, tracer="symbolic", sources=sources)
    assert SourceFinder().stale_reasons(made) == ()


def test_the_standard_library_and_code_without_a_file_are_no_sources() -> None:
    space: dict[str, type] = {}
    exec(TEXT, {"__name__": "__main__"}, space)  # as a notebook does
    assert class_files([space["Net"]]) <= class_files([object])
    assert depends_on([json.__file__, *class_files([json.JSONDecoder])]) == ((), {})
    assert portable("<string>") == portable("<ipython-input-1-abc>") == ""


def test_an_extension_module_of_ones_own_is_not_compared_but_the_python_around_it_is(path: Path) -> None:
    write(
        path, {"pkg/__init__.py": "", "pkg/net.py": TEXT, f"pkg/_fast{importlib.machinery.EXTENSION_SUFFIXES[0]}": ""}
    )
    files = [str(file) for file in (path / "pkg").iterdir()]
    assert {source.file for source in depends_on(files)[0]} == {"pkg/__init__.py", "pkg/net.py"}


def test_an_installed_distribution_counts_by_its_release() -> None:
    version = importlib.metadata.version("msgspec").partition("+")[0]
    assert depends_on([msgspec.__file__]) == ((), {"msgspec": version})


@pytest.mark.parametrize("top_level", [True, False])
def test_distributions_are_told_apart_inside_a_shared_namespace(path: Path, top_level: bool) -> None:
    site = path / "site-packages"
    install(site, "Space.One", "1.0+cu128", "space/one/net.py", top_level=top_level)
    install(site, "space_two", "2.0", "space/two/net.py", "single.py", top_level=top_level)
    assert depends_on([str(site / "space/one/net.py")]) == ((), {"space-one": "1.0"})
    assert depends_on([str(site / "space/two/net.py")]) == ((), {"space-two": "2.0"})
    assert depends_on([str(site / "single.py")]) == ((), {"space-two": "2.0"})


def test_a_file_that_was_just_put_among_the_installed_ones_counts_by_its_text(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = path / "site-packages"
    write(site, {"loose.py": TEXT})
    monkeypatch.syspath_prepend(str(site))
    assert depends_on([str(site / "loose.py")]) == ((Source("loose.py", digest(TEXT.encode())),), {})


def test_a_source_has_the_same_name_wherever_the_package_is(
    path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (path, tmp_path_factory.mktemp("elsewhere") / "src"):
        write(folder, {"pkg/sub/net.py": TEXT})
        monkeypatch.syspath_prepend(str(folder))
        assert depends_on([str(folder / "pkg/sub/net.py")])[0] == (Source("pkg/sub/net.py", digest(TEXT.encode())),)


def test_a_file_below_no_entry_of_the_import_path_has_no_name(tmp_path: Path) -> None:
    write(tmp_path, {"net.py": TEXT})
    assert portable(tmp_path / "net.py") == ""
    assert portable(tmp_path / "net.py", [str(tmp_path)]) == "net.py"
