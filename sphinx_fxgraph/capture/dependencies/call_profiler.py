"""Which code runs while a model is built and run, and which while each file of its package is imported.

A model depends on the functions that ran for it, and not on what else its package imports: in a package of a hundred
models every import runs through all of them. So what runs during an import belongs to the file that is imported.
"""

from __future__ import annotations

import os
import sys
import zipimport
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import torch

import sphinx_fxgraph
from sphinx_fxgraph.cache.fingerprints import is_source, is_standard

_KNOWN = tuple(str(Path(str(package.__file__)).parent) + os.sep for package in (torch, sphinx_fxgraph))
_MAKES_MODULE = torch.nn.Module.__init__.__code__


class Ran:
    """The code that ran, in the files that a record can depend on."""

    def __init__(self) -> None:
        self.code: dict[CodeType | str, None] = {}
        """Of source files, in the order in which it ran; just the file, where code was made from text."""
        self.installed: set[str] = set()
        """Files of installed distributions whose code has made modules."""


class Watch:
    """Looks on, through `sys.setprofile`."""

    def __init__(self) -> None:
        self.ran = Ran()
        self.imported: dict[str, Ran] = defaultdict(Ran)
        """What ran while a source file was imported, by the file."""
        self._kinds: dict[str, str] = {}
        self._other: dict[int, CodeType] = {}
        """Code that matters to nobody, by its memory id; it is kept, so that no other code gets that."""

    def profile(self, ran: Ran) -> Callable[[FrameType, str, Any], None]:
        """A function for `sys.setprofile` that notes what runs in ``ran``."""
        done: dict[int, CodeType] = {}
        other = self._other

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                code = frame.f_code
                key = id(code)  # a code object's hash takes as long as the code is
                if key not in other and key not in done:
                    self._note(frame, code, ran, done)

        return note

    def _note(self, frame: FrameType, code: CodeType, ran: Ran, done: dict[int, CodeType]) -> None:
        file = _file(frame)
        kind = self._kind(file)
        if code is _MAKES_MODULE:
            maker = self._maker(frame)
            if self._kind(maker) == "installed":
                ran.installed.add(maker)
            return
        if kind == "source":
            if _is_finding(frame):
                return
            ran.code[code if code.co_filename == file else file] = None
            done[id(code)] = code
        else:
            self._other[id(code)] = code

    def _maker(self, frame: FrameType) -> str:
        """Return the file whose code makes a module, be it through a class of torch."""
        caller = frame.f_back
        while caller is not None and self._kind(_file(caller)) in ("known", "standard"):
            caller = caller.f_back
        return _file(caller) if caller is not None else ""

    def _kind(self, file: str) -> str:
        if file not in self._kinds:
            self._kinds[file] = _kind(file)
        return self._kinds[file]


@contextmanager
def watch() -> Iterator[Watch]:
    """Watch what runs in this thread."""
    watching = Watch()
    before = sys.getprofile()
    with _imports_watched(SourceFileLoader, watching), _imports_watched(zipimport.zipimporter, watching):
        sys.setprofile(watching.profile(watching.ran))
        try:
            yield watching
        finally:
            sys.setprofile(before)


@contextmanager
def unwatched() -> Iterator[None]:
    """Do not look on for a while, where no code of a model runs. Somebody else's profiler stays on."""
    profile = sys.getprofile()
    if getattr(profile, "__module__", "") != __name__:
        yield
        return
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(profile)


def unseen(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function that is none of a model's, without looking on."""
    if sys.getprofile() is None:  # every operator asks
        return function(*args, **kwargs)
    with unwatched():
        return function(*args, **kwargs)


@contextmanager
def _imports_watched(loader: Any, watching: Watch) -> Iterator[None]:
    """Let what runs during an import be noted for the imported file; for a file that is no source, not at all."""
    execute = loader.exec_module

    def exec_module(self: Any, module: ModuleType) -> None:
        before = sys.getprofile()
        file = str(getattr(module, "__file__", None) or "")
        sys.setprofile(watching.profile(watching.imported[file]) if is_source(file) else None)
        try:
            execute(self, module)
        finally:
            sys.setprofile(before)

    loader.exec_module = exec_module
    try:
        yield
    finally:
        loader.exec_module = execute


def _file(frame: FrameType) -> str:
    """Where code was written; for code made from text, as `dataclasses` does, the file of the module it belongs to."""
    file = frame.f_code.co_filename
    return str(frame.f_globals.get("__file__") or "") if file.startswith("<") else file


def _is_finding(frame: FrameType) -> bool:
    """Whether the import system has called it, to find a module: a finder of an editable install, for example."""
    caller = frame.f_back
    while caller is not None and caller.f_code.co_name != "<module>":  # what has been found is now executed
        if caller.f_code.co_filename.startswith("<frozen importlib"):
            return True
        caller = caller.f_back
    return False


def _kind(file: str) -> str:
    if not file or is_standard(file):
        return "standard"
    if file.startswith(_KNOWN):
        return "known"
    return "source" if is_source(file) else "installed"
