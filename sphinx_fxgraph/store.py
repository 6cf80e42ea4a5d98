"""The cache: records, DOT and layouts as plain files in one folder, committed or not.

Three files a model: ``<name>-<id>.json`` the record, ``.dot`` the DOT of every level, ``.layout.json`` the coordinates
by the digest of that DOT. Each file is written under a name of its own and moved into place, so that builds may share
the folder. What cannot be read is a miss; what cannot be written is a complaint. Nothing from here is ever executed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx_fxgraph.record import Record, RecordError

if TYPE_CHECKING:
    from sphinx_fxgraph.spec import GraphSpec


class Store:
    """The records and drawings in a folder, by spec.

    Args:
        folder: made when the first file is written.
        writable: whether anything is written at all.
    """

    def __init__(self, folder: str | os.PathLike[str], writable: bool = True) -> None:
        self.folder = Path(folder)
        self.writable = writable
        self.complaints: list[str] = []
        """What could not be written and why, each once; what was captured is still good for this build."""

    def record(self, spec: GraphSpec) -> Record | None:
        """The record of exactly this spec, be it stale or of an older format; None if there is none to read."""
        try:
            record = Record.from_json(self._path(spec, ".json").read_bytes())
        except (OSError, RecordError):
            return None
        # The name holds only a part of the id, and anyone may rename a file.
        return record if _canonical(record.spec) == _canonical(spec.to_dict()) else None

    def layouts(self, spec: GraphSpec) -> dict[str, dict[str, Any]]:
        """The coordinates of the levels that were laid out before, by the digest of their DOT."""
        try:
            levels = json.loads(self._path(spec, ".layout.json").read_bytes())["levels"]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return {}
        if not isinstance(levels, dict):
            return {}
        return {digest: level for digest, level in levels.items() if isinstance(level, dict)}

    def put_record(self, spec: GraphSpec, record: Record) -> bool:
        """Keep a record, unless the one that is here differs in nothing but ``made_by``. Whether it was written."""
        old = self.record(spec)
        if old is not None and old.digest == record.digest:
            return False
        return self._write(self._path(spec, ".json"), record.to_json())

    def put_drawing(self, spec: GraphSpec, dot: str, layouts: Mapping[str, Mapping[str, Any]], engine: str) -> bool:
        """Keep the DOT of all levels and their coordinates. Whether anything was written.

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

    def _path(self, spec: GraphSpec, suffix: str) -> Path:
        name = re.sub(r"[^A-Za-z0-9._]+", "-", spec.label).strip("-.")[:64] or "model"
        return self.folder / f"{name}-{spec.id[:8]}{suffix}"

    def _write(self, path: Path, text: str) -> bool:
        data = text.encode("utf-8", "replace")
        if not self.writable or _same(path, data):
            return False
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")  # mkstemp's files are its owner's alone
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:
                file.write(data)
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            complaint = f"cannot write to {self.folder}: {error.strerror or error}"
            if complaint not in self.complaints:
                self.complaints.append(complaint)
            return False
        return True


def _same(path: Path, data: bytes) -> bool:
    """Whether a file holds these bytes, whichever line ends a checkout gave it."""
    try:
        return path.read_bytes().replace(b"\r\n", b"\n") == data
    except OSError:
        return False


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
