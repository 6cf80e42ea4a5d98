"""The walls of the house: what each room may import, and that no room imports the one above it."""

from __future__ import annotations

import ast
import graphlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sphinx_fxgraph

PACKAGE = Path(sphinx_fxgraph.__file__).parent
HEAVY = ("docutils", "msgspec", "sphinx", "torch")

RANK = {
    name: rank
    for rank, names in enumerate(
        (
            ("dtypes", "errors", "escape", "words"),
            ("units",),
            ("option_types",),
            ("options",),
            ("spec",),
            ("record",),
            ("cache",),
            ("capture",),
            ("worker",),
            ("view",),
            ("layout",),
            ("render",),
            ("api",),
            ("cli",),
            ("sphinxext",),
            ("__main__",),
        )
    )
    for name in names
}
"""From the ground up: a folder imports itself and what stands lower."""

LOOK = """
import importlib, json, os, sys
for name in sys.argv[2].split():
    importlib.import_module(name)
found = {}
for name in sys.argv[3:]:
    read, write = os.pipe()
    if not os.fork():
        with os.fdopen(write, "w") as result:
            importlib.import_module(name)
            json.dump([heavy for heavy in sys.argv[1].split() if heavy in sys.modules], result)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as result:
        found[name] = json.load(result)
    os.wait()
print(json.dumps(found))
"""
"""Imports each module in a fork of a fresh interpreter: a torch that is wanted anyway is imported once."""


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the package by its dotted name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def room(name: str) -> str:
    """The folder, or the file at the top, that a module stands in."""
    return name.split(".")[1] if "." in name else "__init__"


def imported(names: list[str], first: str = "") -> dict[str, list[str]]:
    """What of `HEAVY` is loaded after importing each module alone (and `first` before it)."""
    command = [sys.executable, "-c", LOOK, " ".join(HEAVY), first, *names]
    run = subprocess.run(command, capture_output=True, check=True, encoding="utf-8")
    found: dict[str, list[str]] = json.loads(run.stdout)
    assert sorted(found) == sorted(names)
    return found


def imports(path: Path, name: str) -> Iterator[str]:
    """The dotted names that a file imports anywhere in it, relative ones made absolute; not what only types need."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            outer = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(filter(None, (outer, node.module)))
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def test_the_package_itself_imports_nothing() -> None:
    assert imported(["sphinx_fxgraph"]) == {"sphinx_fxgraph": []}


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_outside_capture_nothing_imports_torch_and_outside_sphinxext_nothing_imports_sphinx() -> None:
    names = [name for name, _ in modules() if room(name) not in ("capture", "worker", "__main__")]
    assert {room(name) for name in names} >= {
        "spec",
        "record",
        "cache",
        "view",
        "layout",
        "render",
        "api",
        "sphinxext",
        "cli",
    }
    for name, heavy in imported(names).items():
        assert "torch" not in heavy, name
        if room(name) != "sphinxext":
            assert not {"docutils", "sphinx"} & set(heavy), name


@pytest.mark.torch
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_capture_imports_no_sphinx() -> None:
    names = [name for name, _ in modules() if room(name) in ("capture", "worker")]
    assert names
    for name, heavy in imported(names, first="torch").items():
        assert not {"docutils", "sphinx"} & set(heavy), name


def test_only_the_room_that_may_names_torch_or_sphinx_in_an_import() -> None:
    for name, path in modules():
        tops = {target.partition(".")[0] for target in imports(path, name)}
        assert room(name) in ("capture", "worker") or "torch" not in tops, name
        assert room(name) == "sphinxext" or not {"docutils", "sphinx"} & tops, name


def test_a_file_imports_only_what_stands_above_it() -> None:
    known = dict(modules())
    unknown = {room(name) for name in known} - {*RANK, "__init__"}
    assert not unknown, "these are in no room: add them to the list, in their place"
    for name, path in known.items():
        if name == "sphinx_fxgraph":  # the face: hands on names of the rooms when they are asked for
            continue
        for target in known.keys() & set(imports(path, name)) - {"sphinx_fxgraph"}:
            assert room(target) == room(name) or RANK[room(target)] < RANK[room(name)], f"{name} imports {target}"


def test_no_two_files_import_each_other() -> None:
    known = dict(modules())
    packages = {name for name, path in known.items() if path.name == "__init__.py"}
    graph = {name: known.keys() & set(imports(path, name)) - packages for name, path in known.items()}
    assert list(graphlib.TopologicalSorter(graph).static_order())


def test_no_two_folders_import_each_other() -> None:
    """Imports inside functions count too. A folder is one node of the graph, and so is a file beside folders."""
    known = dict(modules())
    packages = {name for name, path in known.items() if path.name == "__init__.py"}
    for package in packages - {
        "sphinx_fxgraph",
        "sphinx_fxgraph.capture",
    }:
        inside = {name: name.removeprefix(f"{package}.").partition(".")[0] for name in known if name != package}
        inside = {name: part for name, part in inside.items() if name.startswith(f"{package}.")}
        graph: dict[str, set[str]] = {part: set() for part in inside.values()}
        for name, part in inside.items():
            graph[part] |= {inside[target] for target in imports(known[name], name) if target in inside} - {part}
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            pytest.fail(f"{package}: {' -> '.join(error.args[1])}")


def test_what_is_no_python_is_installed_too() -> None:
    for name in ("py.typed", "render/page.html", "static/fxgraph.css", "static/fxgraph.js"):
        assert (PACKAGE / name).is_file(), name


def test_the_wheel_contains_every_file_of_the_package() -> None:
    wheel = pytest.importorskip(
        "hatchling.builders.wheel", reason="hatchling, which builds the wheel, is not installed"
    )
    root = PACKAGE.parent
    if not (root / "pyproject.toml").is_file():
        pytest.skip("the package is installed, not a checkout")
    shipped = {
        Path(file.distribution_path).as_posix() for file in wheel.WheelBuilder(str(root)).recurse_included_files()
    }
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    source = {
        path.relative_to(root).as_posix() for path in files if path.suffix in {".css", ".html", ".js", ".mo", ".py"}
    }
    assert source - shipped == set()


def test_a_file_is_one_idea_that_a_reader_can_hold() -> None:
    lines = {name: path.read_bytes().count(b"\n") for name, path in modules()}
    assert len({path.parent for _, path in modules()}) <= 12
    assert not {name: count for name, count in lines.items() if count > 500}


def test_a_docstring_says_what_its_object_does() -> None:
    """A docstring begins with a verb or a noun, not with a clause about something that is not named."""
    riddles = []
    for name, path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = (ast.get_docstring(node) or "").partition("\n")[0]
                if re.match(r"(What|Whether|Of|The same)\b", first):
                    riddles.append(f"{name}: {first}")
    assert not riddles


def test_every_exception_from_a_check_has_its_reason() -> None:
    bare = []
    for name, path in modules():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"# noqa(: [A-Z0-9, ]+)?$|# type: ignore(\[[\w, -]+\])?$", line.rstrip()):
                bare.append(f"{name}:{number}")
    assert not bare
