"""Find the source files that a record depends on, and compare them with the record, without importing any of them.

A file is named by its top-level package and the path below it, so that the name holds on every machine. The finders on
``sys.meta_path`` know where the top-level package is; that covers editable installs, ``src/`` layouts, namespace
packages, zips and what ``conf.py`` put on ``sys.path``. A dotted name is never asked for: it would import its parents.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import functools
import hashlib
import importlib.metadata
import inspect
import os
import re
import stat
import sys
import zipimport
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

from sphinx_fxgraph.record.header import SCHEMA, Head, Source

if TYPE_CHECKING:
    from sphinx_fxgraph.record.model import Record

_SITE = re.compile(r"(.*[/\\](?:site|dist)-packages)[/\\]", re.DOTALL)
_STANDARD_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")  # noqa: PTH118, PTH120 - see `is_source`


class SourceFinder:
    """Compares records with the files of today. Make one for a build: it reads each file once.

    Args:
        path: the folders to search for top-level packages; None asks the finders of this process.
        ignored: patterns of distributions and top-level packages that are not compared.
    """

    def __init__(self, path: Sequence[str] | None = None, ignored: Sequence[str] = ()) -> None:
        refresh_finders()
        self._ignored = [_normal(pattern) for pattern in ignored]
        self._path = None if path is None else list(path)
        self._places: dict[str, tuple[Path, ...]] = {}
        self._digests: dict[str, str | None] = {}
        self._versions: dict[str, str] = {}

    def stale_reasons(self, record: Record | Head) -> tuple[str, ...]:
        """Return what has changed since a record was made, as ``pkg/model.py changed``; empty for a fresh record.

        What cannot be found here at all (no top-level package, no such distribution) is not compared.
        """
        reasons = [f"written in format {record.schema}, today's is {SCHEMA}"] if record.schema != SCHEMA else []
        reasons += filter(None, map(self._compare, record.sources))
        return (*reasons, *self.moved_releases(record))

    def moved_releases(self, record: Record | Head) -> tuple[str, ...]:
        """Return the distributions of a record that have another release here, as ``timm 1.0.20 → 1.0.31``."""
        versions = ((name, then, self._version(name)) for name, then in sorted(record.distributions.items()))
        return tuple(
            f"{name} {then} → {now}" for name, then, now in versions if now and now != then and not self._ignores(name)
        )

    def _ignores(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(_normal(name), pattern) for pattern in self._ignored)

    def locate(self, file: str) -> Path | None:
        """Return the path of ``pkg/sub/mod.py``, or None where no finder knows the top-level package or module.

        The path need not exist: the package may be there and the file gone.
        """
        top, *below = file.split("/")
        if top not in self._places:
            self._places[top] = tuple(_places(top, self._path))
        places = [place.joinpath(*below) for place in self._places[top]]
        return next(filter(os.path.exists, places), places[0] if places else None)

    def _compare(self, source: Source) -> str:
        if self._ignores(source.file.partition("/")[0].removesuffix(".py")):
            return ""
        if source.file not in self._digests:
            self._digests[source.file] = self._current_digest(source.file)
        today = self._digests[source.file]
        if today is None or today == source.digest:
            return ""
        return f"{source.file} {'changed' if re.fullmatch('[0-9a-f]{64}', today) else today}"

    def _current_digest(self, file: str) -> str | None:
        """Return the digest of a source file, or why it has none; None if it is not compared."""
        if ".." in file.split("/"):  # a file of ours never has it, and it would lead out of the package
            return "is no source file"
        path = self.locate(file)
        if path is None:
            return None
        data = read(path)
        return "is gone" if data is None else digest(data)

    def _version(self, name: str) -> str:
        if name not in self._versions:
            try:
                self._versions[name] = _release(importlib.metadata.version(name))
            except (importlib.metadata.PackageNotFoundError, ValueError):
                self._versions[name] = ""
        return self._versions[name]


def refresh_finders() -> None:
    """Let the finders list their folders again, so that new files are found."""
    for finder in list(sys.meta_path):
        with contextlib.suppress(Exception):  # other people's: one is a class where an instance should be
            finder.invalidate_caches()  # type: ignore[attr-defined] # not all have it


# -- at capture


def depends_on(files: Iterable[str]) -> tuple[tuple[Source, ...], dict[str, str]]:
    """Return the sources and the installed distributions (name -> release) that some files of this process belong to.

    The standard library and code without a file (``exec``, notebooks) are nothing that can be compared.
    """
    sources: set[Source] = set()
    owners: set[importlib.metadata.Distribution] = set()
    for file in sorted(set(files)):
        owner = _owner(file)
        if owner is not None:
            owners.add(owner)
        elif is_source(file):
            name = portable(file)
            data = read(file) if name else None
            if data is not None and not name.startswith("sphinx_fxgraph/"):  # in a traceback, but in no model
                sources.add(Source(name, digest(data)))
    distributions = {_normal(owner.metadata["Name"]): _release(owner.version) for owner in owners}
    return tuple(sorted(sources, key=lambda source: source.file)), dict(sorted(distributions.items()))


def is_standard(file: str) -> bool:
    """Return whether a file belongs to the standard library."""
    return file.startswith(_STANDARD_LIBRARY) and _site(file) is None


def is_source(file: str) -> bool:
    """Return whether a file is compared by its text: it belongs to no installed distribution and not to Python.

    An extension module is not: it differs by machine. Every import of a capture asks this, so paths are plain strings.
    """
    return file.endswith(".py") and not is_standard(file) and _owner(file) is None


def class_files(classes: Iterable[type]) -> set[str]:
    """Return the files that modules of a model come from.

    These are the files of the classes, of their bases, and of the functions in them with their decorators. Of installed
    distributions only the files of modules count: a decorator or a mixin of another one does not make a graph. Where it
    runs operators, they say so (see `sphinx_fxgraph.capture.capture`).
    """
    files: set[str] = set()
    for base in {base for cls in classes for base in cls.__mro__}:
        beside: set[str] = set()
        if base.__module__ != "__main__":
            file = getattr(sys.modules.get(base.__module__), "__file__", None) or ""
            (files if _is_module(base) else beside).add(file)
        for value in vars(base).values():  # a class may say another __module__ than the one it was written in
            function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            with contextlib.suppress(ValueError):  # a wrapper that wraps itself
                inner = inspect.unwrap(function) if isinstance(function, FunctionType) else None
                beside |= {each.__code__.co_filename for each in (function, inner) if isinstance(each, FunctionType)}
        files |= set(filter(is_source, beside))
    return {file for file in files if file and not file.startswith("<")}


def _is_module(cls: type) -> bool:
    """Return whether a class is a module: nothing here imports torch."""
    return any((base.__module__, base.__name__) == ("torch.nn.modules.module", "Module") for base in cls.__mro__)


def portable(file: str | Path, path: Sequence[str] | None = None) -> str:
    """Return a file as top-level package and path below it, ``pkg/sub/mod.py``; empty where no package has it.

    Args:
        file: a file of this process.
        path: the import path of another process, if it is a file of that one.
    """
    if str(file).startswith("<"):
        return ""
    full = Path(file).absolute()
    for place in dict.fromkeys((full, full.resolve())):
        name = _below(place, _loaded_packages()) if path is None else ""
        name = name or _below(place, ((str(Path(entry).absolute()), "") for entry in path or sys.path))
        if name:
            return name
    return ""


def digest(data: bytes) -> str:
    """Return the SHA-256 of a source file with any line ends."""
    return hashlib.sha256(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")).hexdigest()


# -- finding


def _places(top: str, path: list[str] | None) -> Iterator[Path]:
    """Yield the folders of a top-level package (a namespace package has several), or the file of a module."""
    spec = _find(top.removesuffix(".py"), path)
    if spec is None:
        return
    if spec.submodule_search_locations is not None:
        yield from map(Path, spec.submodule_search_locations)
    elif spec.has_location and spec.origin:
        yield Path(spec.origin)


def _find(name: str, path: list[str] | None) -> ModuleSpec | None:
    if not name.isidentifier():
        return None
    if path is not None:
        return PathFinder.find_spec(name, path)
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        try:
            spec: ModuleSpec | None = find(name, None) if find else None
        except Exception:  # noqa: BLE001 - other people's finders may do anything; one that fails has found nothing
            spec = None
        if spec is not None:
            return spec
    return None


def _loaded_packages() -> Iterator[tuple[str, str]]:
    """Yield folder and name of each loaded top-level package, and file and name of each top-level module."""
    for name, module in list(sys.modules.items()):
        if "." in name or name in ("__main__", "__mp_main__"):  # the latter is multiprocessing's name for the former
            continue
        try:
            folders = [str(folder) for folder in getattr(module, "__path__", None) or ()]
            file = getattr(module, "__file__", None)
        except Exception:  # noqa: BLE001 - a lazy module whose real one cannot be imported
            folders, file = [], None
        yield from ((folder, name) for folder in folders)
        if file and not folders:
            yield str(file), f"{name}.py"


def _below(path: Path, roots: Iterable[tuple[str, str]]) -> str:
    """Return the path below the innermost of the roots that it is in, with the root's name before it."""
    inside = [
        (len(root), root, name) for root, name in roots if str(path).startswith(root) and path.is_relative_to(root)
    ]
    if not inside:
        return ""
    _, root, name = max(inside)
    return (name / path.relative_to(root)).as_posix()


def read(file: str | Path) -> bytes | None:
    """Return the bytes of a file, also of one inside a zip on ``sys.path``; None where there is none."""
    path = Path(file)
    with contextlib.suppress(OSError, ValueError):
        return read_file(path)
    with contextlib.suppress(OSError, ValueError, ImportError):
        archive = zipimport.zipimporter(str(path.parent))
        archive.invalidate_caches()
        return archive.get_data(str(path))
    return None


LARGEST_FILE = 1 << 28
"""Bytes of a source file, a record or a layout."""


def read_file(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        OSError: there is none, it is not a regular file (a pipe would be waited for, ``/dev/zero`` has no end), or it
            is larger than `LARGEST_FILE`.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    if status.st_size > LARGEST_FILE:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return path.read_bytes()


# -- installed distributions


def _site(file: str) -> str | None:
    """Return the innermost folder of installed distributions that a file is in; None if it is in none."""
    found = _SITE.match(file)
    return found[1] if found else None


def _owner(file: str) -> importlib.metadata.Distribution | None:
    """Return the installed distribution that a file belongs to, if any."""
    site = _site(file)
    if site is None:
        return None
    below = Path(file).relative_to(site).as_posix()
    owners = _owners(site).get(re.split(r"[/.]", below)[0], ())
    if len(owners) > 1:  # a namespace package that several distributions share
        owners = [owner for owner in owners if f"\n{below}," in "\n" + (owner.read_text("RECORD") or "")] or owners
    return min(owners, key=lambda owner: owner.metadata["Name"]) if len(owners) > 1 else next(iter(owners), None)


@functools.cache
def _owners(site: str) -> Mapping[str, Sequence[importlib.metadata.Distribution]]:
    """Return the distributions in a folder by the top-level names that they install."""
    owners = defaultdict(list)
    for distribution in importlib.metadata.distributions(path=[site]):
        names = set((distribution.read_text("top_level.txt") or "").split())
        if not names:
            tops = {line.partition("/")[0] for line in (distribution.read_text("RECORD") or "").splitlines()}
            names = {re.split("[.,]", top)[0] for top in tops}
        for name in names:
            owners[name].append(distribution)
    return owners


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _release(version: str | None) -> str:
    return (version or "").partition("+")[0]
