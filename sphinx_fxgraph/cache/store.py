"""The cache: records, DOT and layouts as plain files in one folder, committed or not.

Three files a model: ``<name>-<id>.json`` the record, ``.dot`` the DOT of every level, ``.layout.json`` the coordinates
by the digest of that DOT. Each file is written under a name of its own and moved into place, so that builds may share
the folder. What cannot be read is a miss; what cannot be written is a complaint. Nothing from here is ever executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Protocol, TypedDict, TypeVar

import msgspec

from sphinx_fxgraph.cache.fingerprints import read_file
from sphinx_fxgraph.errors import SpecError
from sphinx_fxgraph.escape import file_stem, printable_json
from sphinx_fxgraph.record.header import Head, NewerError, Outline, RecordError
from sphinx_fxgraph.spec.spec import GraphSpec

if TYPE_CHECKING:
    from sphinx_fxgraph.record.model import Record

_OURS = re.compile(r"(.+-[0-9a-f]{8})(\.json|\.dot|\.layout\.json)")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
_DAY = 86_400
"""Seconds: no build writes a file for longer, so that a temporary file of this age is left from one that was killed."""

LARGEST = 1e6
"""The largest coordinate of a layout, in points: 350 metres."""
_Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
_Point = Annotated[list[_Number], msgspec.Meta(min_length=2, max_length=2)]


class _Level(TypedDict):
    """The coordinates of a level, as `layout.graphviz` gives them. Anyone may have written the file: all is checked."""

    size: _Point
    nodes: dict[str, _Point]
    edges: dict[str, list[_Number]]
    notes: NotRequired[dict[str, _Point]]
    by: NotRequired[str]


_Kind = TypeVar("_Kind", Head, Outline, "Record")


class _Layout(TypedDict):
    levels: dict[str, _Level]


class Key(Protocol):
    """The owner of files in the cache: a `GraphSpec`, for example."""

    @property
    def id(self) -> str:
        """Unique hexadecimal digits."""
        ...

    @property
    def label(self) -> str:
        """A readable name."""
        ...

    def to_dict(self) -> Mapping[str, Any]:
        """Return the key as plain data."""
        ...


class Store:
    """The records and drawings in a folder, by spec.

    Args:
        folder: made when the first file is written.
        writable: whether anything is written into that folder.
        drawings: the folder of DOT and layouts, which is always written; None if they stand beside the records.
    """

    def __init__(
        self, folder: str | os.PathLike[str], writable: bool = True, drawings: str | os.PathLike[str] | None = None
    ) -> None:
        self.folder = Path(folder)
        self.drawings = self.folder if drawings is None else Path(drawings)
        self.writable = writable
        self.complaints: list[str] = []
        """What could not be written and why, each once; what was captured is still good for this build."""

    def record(self, spec: Key) -> Record | None:
        """Return the record of this spec, also if it is stale or of an older format; None if none can be read."""
        # A build that changes nothing has no use for the graph.
        from sphinx_fxgraph.record.checks import check_calls
        from sphinx_fxgraph.record.model import Record

        found = self._find(spec, Record)
        try:
            if found:
                check_calls(found)
        except RecordError:
            return None
        return found

    def head(self, spec: Key) -> Head | None:
        """Return the header of a record."""
        return self._find(spec, Head)

    def outline(self, spec: Key) -> Outline | None:
        """Return the header and the outline of a record: the names in its graph, unchecked."""
        return self._find(spec, Outline)

    def files_digest(self, spec: Key) -> str:
        """Return a digest of the bytes of a spec's files: while it is the same, so are record and layouts."""
        total = hashlib.sha256()
        for suffix in (".json", ".layout.json"):
            with contextlib.suppress(OSError):
                total.update(hashlib.sha256(read_file(self._path(spec, suffix))).digest())
            total.update(b"/")
        return total.hexdigest()

    def layouts(self, spec: Key) -> dict[str, dict[str, Any]]:
        """Return the coordinates of the levels that were laid out before, by the digest of their DOT."""
        try:
            found = msgspec.json.decode(read_file(self._path(spec, ".layout.json")), type=_Layout)
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
            return {}
        return {digest: {**level} for digest, level in found["levels"].items()}

    def put_record(self, spec: Key, record: Record) -> bool:
        """Write a record, unless the file differs in nothing but ``made_by``; return whether it was written."""
        old = self.record(spec)
        if old is not None and old.digest == record.digest:
            return False
        return self._write(self._path(spec, ".json"), record.to_json())

    def put_drawing(self, spec: Key, dot: str, layouts: Mapping[str, Mapping[str, Any]], engine: str) -> bool:
        """Write the DOT and the coordinates of all levels; return whether any file has changed.

        Args:
            spec: whose drawing it is.
            dot: one graph after another, as Graphviz reads it.
            layouts: the coordinates of each level by the digest of its DOT; any JSON.
            engine: name and version of the layout engine.
        """
        levels = [f"{json.dumps(digest)}: {_canonical(layouts[digest])}" for digest in sorted(layouts)]
        text = f'{{"engine": {json.dumps(engine)},\n"levels": {{\n' + ",\n".join(levels) + "\n}}\n"
        wrote = [self._write(self._path(spec, ".dot"), dot), self._write(self._path(spec, ".layout.json"), text)]
        return any(wrote)

    def text(self, name: str) -> bytes | None:
        """Return a file that belongs to no spec, such as the list of a zoo's models; None if there is none."""
        with contextlib.suppress(OSError):
            return read_file(self.folder / name)
        return None

    def put_text(self, name: str, text: str) -> bool:
        """Write a file that belongs to no spec; return whether it has changed."""
        return self._write(self.folder / name, text)

    def orphans(self, used: Iterable[Key]) -> list[Path]:
        """Return our files that belong to none of the specs, and temporary files of killed builds."""
        kept = {_stem(spec) for spec in used}
        found = []
        with contextlib.suppress(OSError):  # no folder, no orphans
            for path in sorted(self.folder.iterdir()):
                ours = _OURS.fullmatch(path.name)
                elsewhere = ours and ours[2] != ".json" and self.drawings != self.folder
                if (ours and (ours[1] not in kept or elsewhere) and _is_ours(path, ours[2])) or _is_left_over(path):
                    found.append(path)
        return found

    def used_files(self, used: Iterable[Key]) -> list[Path]:
        """Return the files that these specs need: all records and drawings but the orphans."""
        orphans = set(self.orphans(used))
        with contextlib.suppress(OSError):
            files = sorted(self.folder.iterdir())
            return [path for path in files if path.suffix in (".json", ".dot") and path not in orphans]
        return []

    def prune(self, used: Iterable[Key]) -> list[Path]:
        """Remove the orphans, and return them."""
        gone = []
        for path in self.orphans(used) if self.writable else ():
            try:
                path.unlink()
                gone.append(path)
            except OSError as error:
                self._complain(f"cannot remove {path}: {error.strerror or error}")
        return gone

    def _find(self, spec: Key, kind: type[_Kind]) -> _Kind | None:
        try:
            found = kind.from_json(printable_json(read_file(self._path(spec, ".json"))))
        except NewerError as error:
            self._complain(f"cannot read {self._path(spec, '.json')}: {error}; update sphinx-fxgraph")
            return None
        except (OSError, UnicodeError, RecordError):
            return None
        # The name holds only a part of the id, and anyone may rename a file.
        return found if _canonical(found.spec) == _canonical(spec.to_dict()) else None

    def _path(self, spec: Key, suffix: str) -> Path:
        folder = self.folder if suffix == ".json" else self.drawings
        return folder / f"{_stem(spec)}{suffix}"

    @property
    def keeps_drawings(self) -> bool:
        """Return whether DOT and layouts are written."""
        return self.writable or self.drawings != self.folder

    def _write(self, path: Path, text: str) -> bool:
        data = text.encode("utf-8", "replace")
        if not (self.writable or path.parent != self.folder) or _has_content(path, data):
            return False
        temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")  # mkstemp's files are its owner's alone
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:
                file.write(data)
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            self._complain(f"cannot write to {path.parent}: {error.strerror or error}")
            return False
        return True

    def _complain(self, complaint: str) -> None:
        if complaint not in self.complaints:
            self.complaints.append(complaint)


def _stem(spec: Key) -> str:
    return f"{file_stem(spec.label)}-{spec.id[:8]}"


def _is_ours(path: Path, suffix: str) -> bool:
    """Return whether a file with a name of ours has content of ours, of any version."""
    try:
        data = read_file(path)
        if suffix == ".dot":
            return not data or data.startswith(b"digraph")
        keys = {".json": {"schema", "spec"}, ".layout.json": {"engine", "levels"}}[suffix]
        return keys <= msgspec.json.decode(data, type=dict[str, msgspec.Raw]).keys()
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return False


def _is_left_over(path: Path) -> bool:
    """Return whether it is a temporary file of a build that was killed."""
    try:
        return bool(_TEMPORARY.fullmatch(path.name)) and time.time() - path.stat().st_mtime > _DAY
    except OSError:
        return False


def _has_content(path: Path, data: bytes) -> bool:
    """Return whether a file has these bytes, with any line ends."""
    try:
        return read_file(path).replace(b"\r\n", b"\n") == data
    except OSError:
        return False


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


_RECORD = re.compile(r"(?P<stem>(?P<label>.+)-[0-9a-f]{8})\.json")


class RecordFileError(ValueError):
    """A record is not there, or cannot be read."""


def from_file(path: str | os.PathLike[str]) -> Record:
    """Return the record in a file.

    Raises:
        RecordFileError: there is none that this version can read.
    """
    try:
        return _read(read_file(Path(path)))
    except (OSError, UnicodeError, RecordError) as error:
        raise RecordFileError(f"{os.fspath(path)} is no record: {error}") from error


def _read(text: bytes) -> Record:
    from sphinx_fxgraph.record.checks import check_calls
    from sphinx_fxgraph.record.model import Record

    record = Record.from_json(printable_json(text))
    check_calls(record)
    return record


def at_revision(text: str, folder: str | os.PathLike[str]) -> Record | None:
    """Return the record that ``REV:NAME`` names; None if the part before the colon is no revision.

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
    found = {path: read(path) for path in exact[:1] or _paths_of(name, paths)}
    if not found:
        with contextlib.suppress(SpecError):
            spec = GraphSpec.parse(name)
            called = {path: read(path) for path in _paths_of(file_stem(spec.label), paths)}
            found = {path: record for path, record in called.items() if record.spec.get("target") == spec.target}
    if len(found) == 1:
        return next(iter(found.values()))
    told = f"has no record {name!r}"
    if found:
        told = f"has {len(found)} records called {name!r}; name the target or one of the files {', '.join(found)}"
    raise RecordFileError(f"{revision} {told}")


def is_revision(text: str, folder: str | os.PathLike[str]) -> bool:
    """Return whether the part before the first colon is a revision of the repository that a folder is in."""
    return bool(_commit(text, folder))


def untracked(paths: Sequence[Path]) -> list[Path]:
    """Return those of some files in one folder that are not in git's index."""
    if not paths:
        return []
    known = set(os.fsdecode(_git(paths[0].parent, "ls-files", "-z")).split("\0"))
    return [path for path in paths if path.name not in known]


def ignored_by_git(paths: Sequence[Path]) -> dict[Path, str]:
    """Return those of some files in one folder that git ignores, and the rule of each: ``.gitignore:3:*.json``."""
    if not paths:
        return {}
    names = [path.name for path in paths if path in set(untracked(paths))]
    told = _git(paths[0].parent, "check-ignore", "-v", "--", *names).decode(errors="replace") if names else ""
    by_name = {path.name: path for path in paths}
    rules = (line.rpartition("\t") for line in told.splitlines())
    return {by_name[name]: rule for rule, _, name in rules if name in by_name and ":!" not in rule}


def _commit(text: str, folder: str | os.PathLike[str]) -> str:
    revision, colon, _ = text.partition(":")
    if not colon or not revision or revision.startswith("-"):
        return ""
    return _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()


def _paths_of(name: str, paths: list[str]) -> list[str]:
    """Return the paths of the records with this name, with or without the digits at its end."""
    records = {path: match for path in paths if (match := _RECORD.fullmatch(posixpath.basename(path)))}
    full = [path for path, match in records.items() if name in (match["stem"], match[0])]
    return full or [path for path, match in records.items() if name == match["label"]]


def _git(folder: str | os.PathLike[str], *command: str) -> bytes:
    """Return the output of git; empty if git is not there or fails."""
    # A hook is told which repository it is run for, and in a linked work tree that name takes the folder for its top.
    environment = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}
    try:
        run = subprocess.run(["git", *command], cwd=folder, env=environment, capture_output=True, check=False)  # noqa: S607 - as git is
    except OSError:
        return b""
    return run.stdout if run.returncode == 0 else b""
