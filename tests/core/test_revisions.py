"""Records in files and at git revisions, in a real repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec import structs

from sphinx_fxgraph.cache.store import RecordFileError, Store, at_revision, from_file, is_revision, untracked
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec

SPECS = [GraphSpec.parse(f"pkg.nets:UNet(depth={depth})", "1, 3, 16, 16") for depth in (3, 4)]
OTHER = GraphSpec.parse("pkg.nets:Other", "1, 3, 16, 16")


def git(folder: Path, *command: str) -> None:
    identity = {f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True, env={**os.environ, **identity})


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records in `docs/cache`, committed as `v1` and changed afterwards."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "-q")
    store = Store(folder / "docs/cache")
    for number, spec in enumerate([*SPECS, OTHER]):
        store.put_record(spec, Record(spec.to_dict(), "symbolic", output=f"v1 {number}"))
        store.put_drawing(spec, "digraph {}\n", {}, "dot")
    (folder / "docs/notes-0123abcd.json").write_text("{}")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    git(folder, "tag", "v1")
    for spec in SPECS:
        store.put_record(spec, Record(spec.to_dict(), "symbolic", output="today"))
    return folder


def output(repository: Path, text: str, folder: str = "") -> str:
    record = at_revision(text, repository / folder)
    assert record is not None
    return record.output


def test_a_record_has_many_names(repository: Path) -> None:
    stem = f"UNet-{SPECS[0].id[:8]}"
    for name in (stem, f"{stem}.json", f"docs/cache/{stem}.json", "pkg.nets:UNet(depth = 3)"):
        assert output(repository, f"v1:{name}") == "v1 0"
    assert output(repository, f"HEAD:cache/{stem}.json", folder="docs") == "v1 0"
    assert output(repository, "v1:Other") == "v1 2"
    assert output(repository, "v1:pkg.nets:UNet(depth=4)") == "v1 1"


def test_a_name_of_several_or_of_none_is_told(repository: Path) -> None:
    with pytest.raises(
        RecordFileError, match=r"v1 has 2 records called 'UNet'; name the target or one of the files docs/cache/UNet-"
    ):
        at_revision("v1:UNet", repository)
    with pytest.raises(RecordFileError, match="v1 has no record 'Nothing'"):
        at_revision("v1:Nothing", repository)
    with pytest.raises(RecordFileError, match=r"docs/notes-0123abcd\.json at v1 is no record"):
        at_revision("v1:notes", repository)


def test_what_is_no_revision_is_none(repository: Path, tmp_path: Path) -> None:
    for text in ("pkg.nets:UNet", "v2:UNet", "UNet", ":UNet", "--help:UNet", "v1"):
        assert at_revision(text, repository) is None
        assert not is_revision(text, repository)
    assert is_revision("v1:UNet", repository)
    assert at_revision("v1:UNet", tmp_path) is None


def test_without_git_there_are_no_revisions(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert at_revision("v1:Other", repository) is None


def test_a_file(repository: Path, tmp_path: Path) -> None:
    path = repository / "docs/cache" / f"UNet-{SPECS[0].id[:8]}.json"
    assert from_file(path).output == "today"
    (tmp_path / "torn.json").write_text("{")
    for name in ("torn.json", "none.json", "."):
        with pytest.raises(RecordFileError, match="is no record"):
            from_file(tmp_path / name)
    newer = structs.replace(from_file(path), schema=99)
    (tmp_path / "newer.json").write_text(newer.to_json())
    with pytest.raises(RecordFileError, match="schema 99 is newer"):
        from_file(tmp_path / "newer.json")


def test_what_a_clone_would_lack_is_known_also_in_a_hook_of_a_linked_work_tree(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    git(repository, "worktree", "add", "-q", str(tree), "v1")
    (tree / ".gitignore").write_text("*.dot\n")  # what is ignored is lacking, too
    store = Store(tree / "docs/cache")
    new = GraphSpec.parse("pkg.nets:New", "1, 3, 16, 16")
    store.put_record(new, Record(new.to_dict(), "symbolic"))
    store.put_drawing(new, "digraph {}\n", {}, "dot")
    (store.folder / "README.md").write_text("mine\n")
    monkeypatch.setenv("GIT_DIR", str(repository / ".git/worktrees/tree"))  # as git tells the hooks it runs
    used = store.used_files([*SPECS, OTHER, new])
    lacking = {path.name for path in untracked(used)}
    assert lacking == {f"New-{new.id[:8]}{suffix}" for suffix in (".json", ".dot", ".layout.json")}
    assert not untracked(store.used_files([*SPECS, OTHER]))
    monkeypatch.delenv("GIT_DIR")
    git(tree, "add", "-f", "docs")
    assert not untracked(used)
