"""The cache folder: what is put in comes out, and no state of the folder ends a build or gives a wrong picture."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest
from msgspec import structs
from older import older_json

from sphinx_fxgraph.cache.store import Store
from sphinx_fxgraph.record.header import SCHEMA, Failure
from sphinx_fxgraph.record.model import Body, BodyInput, Node, Record
from sphinx_fxgraph.spec.spec import GraphSpec

SPEC = GraphSpec.parse("pkg.nets:UNet(depth=3)", "1, 3, 16, 16", leaf="Conv*")
RECORD = Record(spec=SPEC.to_dict(), tracer="symbolic", output="f32[1, 2]", made_by={"python": "3.11.7"})
LAYOUTS = {
    "b" * 20: {"size": [1.5, 30.0], "nodes": {"n0": [0.0, 1.0]}, "edges": {}},
    "a" * 20: {
        "size": [2.0, 9.5],
        "nodes": {"n0": [0.0, 1.0], "i0": [1.0, 0.0]},
        "edges": {"0": [0.0, 1.0, 0.5, 1.0, 0.5, 1.0, 1.0, 0.0]},
        "notes": {"0": [3.0, 4.0]},
    },
}


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_put_in_comes_out(tmp_path: Path) -> None:
    store = Store(tmp_path / "a" / "cache")
    assert store.record(SPEC) is None
    assert store.layouts(SPEC) == {}
    assert not store.folder.exists()
    assert store.put_record(SPEC, RECORD)
    assert store.put_drawing(SPEC, "digraph {}\ndigraph {}\n", LAYOUTS, "dot 2.43")
    again = Store(store.folder)
    assert again.record(SPEC) == RECORD
    assert again.layouts(SPEC) == LAYOUTS


def test_files_are_named_for_people(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put_record(SPEC, RECORD)
    store.put_drawing(SPEC, "digraph {}\n", LAYOUTS, "dot 2.43")
    name = f"UNet-{SPEC.id[:8]}"
    assert files(tmp_path) == [f"{name}.dot", f"{name}.json", f"{name}.layout.json"]
    assert (tmp_path / f"{name}.dot").read_text() == "digraph {}\n"
    assert json.loads((tmp_path / f"{name}.layout.json").read_text()) == {"engine": "dot 2.43", "levels": LAYOUTS}


@pytest.mark.parametrize("name", ["../../outside", "/etc/x", "a\\b:c*?", "名前", "", ".hidden", "n" * 500, "con"])
def test_any_name_gives_a_file_in_the_folder(tmp_path: Path, name: str) -> None:
    spec = GraphSpec.parse(f"timm.create_model({name!r})", "1, 3, 8, 8")
    record = Record(spec=spec.to_dict(), tracer="symbolic")
    store = Store(tmp_path / "cache")
    assert store.put_record(spec, record)
    assert store.record(spec) == record
    (file,) = files(tmp_path / "cache")
    assert file.isascii()
    assert not file.startswith((".", "-"))
    assert len(file) < 100
    assert files(tmp_path) == ["cache"]


def test_a_record_is_written_again_only_if_the_architecture_differs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put_record(SPEC, RECORD)
    (path,) = tmp_path.iterdir()
    before = path.read_bytes()
    assert not store.put_record(SPEC, structs.replace(RECORD, made_by={"python": "3.13.0"}))
    assert path.read_bytes() == before
    assert store.put_record(SPEC, structs.replace(RECORD, output="f32[1, 3]"))
    assert path.read_bytes() != before


def test_a_drawing_is_written_again_only_if_it_differs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.put_drawing(SPEC, "digraph {}\n", LAYOUTS, "dot")
    assert not store.put_drawing(SPEC, "digraph {}\n", dict(reversed(list(LAYOUTS.items()))), "dot")
    for path in tmp_path.iterdir():  # a checkout on Windows
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert not store.put_drawing(SPEC, "digraph {}\n", LAYOUTS, "dot")
    assert store.put_drawing(SPEC, "digraph { a }\n", LAYOUTS, "dot")


def test_each_level_has_a_line_of_the_layout(tmp_path: Path) -> None:
    Store(tmp_path).put_drawing(SPEC, "", LAYOUTS, "dot")
    text = next(tmp_path.glob("*.layout.json")).read_text()
    assert [line[1:9] for line in text.splitlines() if '"size"' in line] == ["a" * 8, "b" * 8]


def test_a_failure_is_kept_like_a_record(tmp_path: Path) -> None:
    store = Store(tmp_path)
    failed = structs.replace(RECORD, failure=Failure("build", "ValueError", "no"))
    store.put_record(SPEC, failed)
    assert store.record(SPEC) == failed


def test_an_older_record_is_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put_record(SPEC, RECORD)
    (path,) = tmp_path.glob("*.json")
    path.write_text(older_json(RECORD, SCHEMA - 1), encoding="utf-8")
    old = store.record(SPEC)
    assert old is not None
    assert old.schema == SCHEMA - 1
    assert old.bodies == RECORD.bodies
    assert store.put_record(SPEC, RECORD)
    assert store.record(SPEC) == RECORD


def test_a_file_under_the_name_of_another_spec_serves_nobody(tmp_path: Path) -> None:
    other = GraphSpec.parse("pkg.nets:UNet(depth=4)", "1, 3, 16, 16", leaf="Conv*")
    store = Store(tmp_path)
    store.put_record(SPEC, RECORD)
    shutil.copy(tmp_path / f"UNet-{SPEC.id[:8]}.json", tmp_path / f"UNet-{other.id[:8]}.json")
    assert store.record(other) is None
    assert store.put_record(other, structs.replace(RECORD, spec=other.to_dict()))
    assert store.record(other) is not None
    assert store.record(SPEC) == RECORD


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"{",
        b"[" * 100_000,
        b"\xff\x00",
        b'{"levels": []}',
        b'{"levels": {"a": 1}}',
        b'{"levels": {"a": {}}, "schema": 1}',
        b"version https://git-lfs",
    ],
)
def test_a_torn_or_foreign_file_is_a_miss_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    store = Store(tmp_path)
    store.put_record(SPEC, RECORD)
    store.put_drawing(SPEC, "digraph {}\n", LAYOUTS, "dot")
    for path in tmp_path.iterdir():
        path.write_bytes(content)
    assert store.record(SPEC) is None
    assert store.layouts(SPEC) == {}
    assert store.put_record(SPEC, RECORD)
    assert store.put_drawing(SPEC, "digraph {}\n", LAYOUTS, "dot")
    assert store.record(SPEC) == RECORD
    assert store.layouts(SPEC) == LAYOUTS


@pytest.mark.parametrize(
    "level",
    [
        {"size": [1, 2], "nodes": {}},
        {"size": [1], "nodes": {}, "edges": {}},
        {"size": [1, "2"], "nodes": {}, "edges": {}},
        {"size": [1, 1e300], "nodes": {}, "edges": {}},
        {"size": [1, 2], "nodes": {"n0": [0, 1, 2]}, "edges": {}},
        {"size": [1, 2], "nodes": [[0, 1]], "edges": {}},
        {"size": [1, 2], "nodes": {}, "edges": {"0": ["<script>"]}},
        {"size": [1, 2], "nodes": {}, "edges": {}, "notes": {"0": None}},
    ],
)
def test_coordinates_that_are_none_are_a_miss(tmp_path: Path, level: object) -> None:
    store = Store(tmp_path)
    store.put_drawing(SPEC, "digraph {}\n", LAYOUTS, "dot")
    (path,) = tmp_path.glob("*.layout.json")
    path.write_text(json.dumps({"engine": "dot", "levels": {**LAYOUTS, "c": level}}))
    assert store.layouts(SPEC) == {}
    assert store.put_drawing(SPEC, "digraph {}\n", LAYOUTS, "dot")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"UNet-{SPEC.id[:8]}.json")
    assert Store(tmp_path).record(SPEC) is None
    assert Store(tmp_path).orphans([]) == []


# -- orphans


def test_files_of_no_spec_are_orphans_and_can_be_removed(tmp_path: Path) -> None:
    other = GraphSpec.parse("pkg.nets:UNet(depth=4)", "1, 3, 16, 16")
    store = Store(tmp_path)
    for spec in (SPEC, other):
        store.put_record(spec, structs.replace(RECORD, spec=spec.to_dict()))
        store.put_drawing(spec, "digraph {}\n", LAYOUTS, "dot")
    assert store.orphans([SPEC, other]) == []
    names = [f"UNet-{other.id[:8]}{suffix}" for suffix in (".dot", ".json", ".layout.json")]
    assert [path.name for path in store.orphans([SPEC])] == names
    assert Store(tmp_path, writable=False).prune([SPEC]) == []
    assert [path.name for path in store.prune([SPEC])] == names
    assert len(files(tmp_path)) == 3
    assert store.record(SPEC) == RECORD


def test_what_is_not_ours_is_no_orphan(tmp_path: Path) -> None:
    foreign = {
        "notes-0123abcd.json": '{"my": "notes"}',
        "notes-0123abcd.dot": "graph of mine",
        "notes-0123abcd.layout.json": "[]",
        "README.md": "what this is",
        "UNet-v1.json": RECORD.to_json(),
        ".gitignore": "",
        "torn-0123abcd.json": "{",
    }
    for name, text in foreign.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder-0123abcd.json").mkdir()
    (tmp_path / "newer-0123abcd.json").write_text('{"schema": 99, "spec": {}, "surprise": []}')
    assert [path.name for path in Store(tmp_path).orphans([])] == ["newer-0123abcd.json"]
    assert Store(tmp_path / "none").orphans([]) == []


def test_the_temporary_file_of_a_killed_build_is_removed_and_that_of_a_running_one_is_not(tmp_path: Path) -> None:
    old, new = (tmp_path / f".UNet-0123abcd.json.{digit * 16}.tmp" for digit in "ab")
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    assert Store(tmp_path).prune([]) == [old]
    assert files(tmp_path) == [new.name]


def test_a_folder_in_place_of_a_file_is_a_miss_and_a_complaint(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (tmp_path / f"UNet-{SPEC.id[:8]}.json" / "x").mkdir(parents=True)
    assert store.record(SPEC) is None
    assert not store.put_record(SPEC, RECORD)
    assert len(store.complaints) == 1
    assert files(tmp_path) == [f"UNet-{SPEC.id[:8]}.json"]


def test_a_store_that_is_not_writable_writes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache", writable=False)
    assert not store.put_record(SPEC, RECORD)
    assert not store.put_drawing(SPEC, "digraph {}\n", LAYOUTS, "dot")
    assert files(tmp_path) == []
    assert store.complaints == []


def test_a_folder_that_cannot_be_written_is_one_complaint_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = Store(tmp_path / "file" / "cache")
    assert not store.put_record(SPEC, RECORD)
    assert not store.put_drawing(SPEC, "digraph {}\n", LAYOUTS, "dot")
    assert store.complaints == [f"cannot write to {store.folder}: {os.strerror(20)}"]


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_full_disk_is_a_complaint_and_leaves_what_was_there(tmp_path: Path) -> None:
    import resource
    import signal

    store = Store(tmp_path)
    store.put_record(SPEC, RECORD)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        assert not store.put_record(SPEC, structs.replace(RECORD, notes=("long " * 100,)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert len(store.complaints) == 1
    assert store.record(SPEC) == RECORD
    assert len(files(tmp_path)) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_files_can_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        Store(tmp_path).put_record(SPEC, RECORD)
    finally:
        os.umask(before)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o644


def test_builds_at_once_neither_tear_a_file_nor_leave_one_behind(tmp_path: Path) -> None:
    records = [structs.replace(RECORD, notes=(str(n) * 20_000,)) for n in range(4)]
    Store(tmp_path).put_record(SPEC, records[0])
    seen: list[Record | None] = []
    complaints: list[str] = []
    done = threading.Event()

    def read() -> None:
        store = Store(tmp_path)
        while not done.is_set():
            seen.append(store.record(SPEC))

    def write(record: Record) -> None:
        store = Store(tmp_path)
        for n in range(50):
            store.put_record(SPEC, structs.replace(record, output=str(n)))
        complaints.extend(store.complaints)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(record,)) for record in records]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert complaints == []
    assert seen
    assert all(record is not None and len(record.notes[0]) == 20_000 for record in seen)
    assert len(files(tmp_path)) == 1


def test_a_record_whose_calls_do_not_fit_is_none(tmp_path: Path) -> None:
    store = Store(tmp_path)
    call = Node("a", "call_module", "a", "Block", body="Block")
    bodies = {"Net": Body("Net", nodes=(call,)), "Block": Body("Block", inputs=(BodyInput("x"),))}
    for record in (
        Record(SPEC.to_dict(), "symbolic", root="Net", bodies=bodies),
        Record(SPEC.to_dict(), "symbolic", root="Block", bodies=bodies),
    ):
        assert store.put_record(SPEC, record)
        assert store.record(SPEC) is None
