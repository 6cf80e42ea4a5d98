"""Records kept in files: one by its path, or one committed at a git revision, of which no code is run."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sphinx_fxgraph.cache.fingerprints import read_file
from sphinx_fxgraph.errors import SpecError
from sphinx_fxgraph.record.header import RecordError
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.record.references import check_calls
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.text.escape import file_stem, printable_json

_RECORD = re.compile(r"(?P<stem>(?P<label>.+)-[0-9a-f]{8})\.json")


class RecordFileError(ValueError):
    """There is no such record, or it cannot be read."""


def from_file(path: str | os.PathLike[str]) -> Record:
    """The record in a file.

    Raises:
        RecordFileError: there is none that this version can read.
    """
    try:
        return _read(read_file(Path(path)))
    except (OSError, UnicodeError, RecordError) as error:
        raise RecordFileError(f"{os.fspath(path)} is no record: {error}") from error


def _read(text: bytes) -> Record:
    record = Record.from_json(printable_json(text))
    check_calls(record)
    return record


def at_revision(text: str, folder: str | os.PathLike[str]) -> Record | None:
    """The record that ``REV:NAME`` names; None if what stands before the colon is no revision.

    Args:
        text: NAME is a file's path from the top of the repository or from ``folder``, its name, with or without the
            digits at its end, or the model's target.
        folder: anywhere in the repository.

    Raises:
        RecordFileError: the revision has no such record, or several.
    """
    commit = _commit(text, folder)
    if not commit:
        return None
    revision, _, name = text.partition(":")
    listed = _git(folder, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
    paths = [path for path in os.fsdecode(listed).split("\0") if path.endswith(".json")]
    inside = os.fsdecode(_git(folder, "rev-parse", "--show-prefix")).strip()

    def read(path: str) -> Record:
        try:
            return _read(_git(folder, "cat-file", "blob", f"{commit}:{path}"))
        except (UnicodeError, RecordError) as error:
            raise RecordFileError(f"{path} at {revision} is no record: {error}") from error

    exact = [path for path in (posixpath.normpath(posixpath.join(inside, name)), name) if path in paths]
    found = {path: read(path) for path in exact[:1] or _called(name, paths)}
    if not found:
        with contextlib.suppress(SpecError):
            spec = GraphSpec.parse(name)
            called = {path: read(path) for path in _called(file_stem(spec.label), paths)}
            found = {path: record for path, record in called.items() if record.spec.get("target") == spec.target}
    if len(found) == 1:
        return next(iter(found.values()))
    told = f"has no record {name!r}"
    if found:
        told = f"has {len(found)} records called {name!r}; name the target or one of the files {', '.join(found)}"
    raise RecordFileError(f"{revision} {told}")


def is_revision(text: str, folder: str | os.PathLike[str]) -> bool:
    """Whether what stands before the first colon is a revision of the repository."""
    return bool(_commit(text, folder))


def not_added(paths: Sequence[Path]) -> list[Path]:
    """Those of some files in one folder that git does not have, not even to be committed next."""
    if not paths:
        return []
    known = set(os.fsdecode(_git(paths[0].parent, "ls-files", "-z")).split("\0"))
    return [path for path in paths if path.name not in known]


def ignored(paths: Sequence[Path]) -> dict[Path, str]:
    """Return those of some files in one folder that git ignores, and the rule of each: ``.gitignore:3:*.json``."""
    if not paths:
        return {}
    names = [path.name for path in paths if path in set(not_added(paths))]
    told = _git(paths[0].parent, "check-ignore", "-v", "--", *names).decode(errors="replace") if names else ""
    by_name = {path.name: path for path in paths}
    rules = (line.rpartition("\t") for line in told.splitlines())
    return {by_name[name]: rule for rule, _, name in rules if name in by_name and ":!" not in rule}


def _commit(text: str, folder: str | os.PathLike[str]) -> str:
    revision, colon, _ = text.partition(":")
    if not colon or not revision or revision.startswith("-"):
        return ""
    return _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()


def _called(name: str, paths: list[str]) -> list[str]:
    """The records of this name: with the digits at its end, if any has them, else without."""
    records = {path: match for path in paths if (match := _RECORD.fullmatch(posixpath.basename(path)))}
    full = [path for path, match in records.items() if name in (match["stem"], match[0])]
    return full or [path for path, match in records.items() if name == match["label"]]


def _git(folder: str | os.PathLike[str], *command: str) -> bytes:
    """What git says; nothing if it is not there, or has nothing to say."""
    # A hook is told which repository it is run for, and in a linked work tree that name takes the folder for its top.
    environment = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}
    try:
        run = subprocess.run(["git", *command], cwd=folder, env=environment, capture_output=True, check=False)  # noqa: S607 - as git is
    except OSError:
        return b""
    return run.stdout if run.returncode == 0 else b""
