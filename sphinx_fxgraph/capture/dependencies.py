"""Find the source files that a capture depends on: the code that ran, and where its constants are defined.

A function counts where it ran and a class where it is used, both seen by `ran`. A constant leaves no trace when it is
read, so it is looked for in the text: the statements that ran are read for the names they use, and each name that means
neither function, nor class, nor module is followed to the statements that define it, through every re-export.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import os
import sys
import zipimport
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from msgspec import structs
from torch import nn

import sphinx_fxgraph
from sphinx_fxgraph.cache.fingerprints import depends_on, is_source, is_standard, read
from sphinx_fxgraph.capture.module_ast import Imported, Statement, Text
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.parser import parse_inputs, parse_target
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.spec.syntax import Name

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
        file = _file_of_frame(frame)
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
        while caller is not None and self._kind(_file_of_frame(caller)) in ("known", "standard"):
            caller = caller.f_back
        return _file_of_frame(caller) if caller is not None else ""

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


def _file_of_frame(frame: FrameType) -> str:
    """Where code was written; for code made from text, as `dataclasses` does, the file of the module it belongs to."""
    file = frame.f_code.co_filename
    return str(frame.f_globals.get("__file__") or "") if file.startswith("<") else file


def _is_finding(frame: FrameType) -> bool:
    """Return whether the import system has called it, to find a module.

    A finder of an editable install, for example.
    """
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


_FUNCTIONS = FunctionType, BuiltinFunctionType, MethodType, type(functools.cache(len))
_NO_CONSTANTS = *_FUNCTIONS, type, property, staticmethod, classmethod
_TYPING = "typing", "typing_extensions"
"""What a type says decides nothing."""
_NO_MATTER = "__version__", "__version_info__", "__version_tuple__"
"""Nor does what a package says of its release."""


def completed(record: Record, watched: Watch) -> Record:
    """The record with everything that it depends on, given what ran for it."""
    closure = _Closure(watched)
    closure.take(watched.ran)
    closure.take_spec(GraphSpec.from_dict(record.spec))
    for path in sorted({module.type for module in record.modules}):
        closure.take_class(path)
    closure.follow()
    sources, distributions = depends_on(closure.files)
    return structs.replace(
        record,
        sources=tuple(sorted({*record.sources, *sources}, key=lambda source: source.file)),
        distributions=dict(sorted({**record.distributions, **distributions}.items())),
    )


class _Closure:
    def __init__(self, watched: Watch) -> None:
        self.files: set[str] = set()
        self._watched = watched
        self._modules = dict(_modules())
        self._texts: dict[str, Text | None] = {}
        self._defined: set[tuple[str, str]] = set()
        self._seen: set[Statement] = set()
        self._work: list[Statement] = []

    def take(self, ran: Ran) -> None:
        """Code that ran, and the statements it stands in."""
        self.files |= ran.installed
        for code in ran.code:
            if isinstance(code, CodeType):
                text = self._text(code.co_filename)
                self._read(text.at(code.co_firstlineno) if text else None)
            else:
                self._text(code)

    def take_spec(self, spec: GraphSpec) -> None:
        """Take the names of the directive.

        A constant as an argument, an instance as the model, or any name in its code.
        """
        expressions = parse_target(spec.target) if spec.target else None, parse_inputs(spec.inputs)
        target = next(_names(expressions[0]), None)
        self._take_installed(target)
        for name in _names(expressions):
            module, *names = name.qualname.split(".") if name.module is None else (name.module, name.qualname)
            self._use(sys.modules.get(module), [part for each in names for part in each.split(".")])
        statements = Text("", spec.code.encode()).statements
        imports = [pair for statement in statements for pair in statement.nested_imports.items()]
        for statement in statements:
            self._follow(statement, None, imports)

    def _take_installed(self, target: Name | None) -> None:
        """The distribution that a target is named in, though what it makes may be modules of others."""
        parts = (target.module or target.qualname).split(".") if target else []
        for count in range(len(parts), 0, -1):
            if module := sys.modules.get(".".join(parts[:count])):
                self.files |= {file for file in (_file(module),) if file and not is_source(file)}
                return

    def take_class(self, path: str) -> None:
        """A class of the model and its bases; one that a function has made stands in the statement of that function."""
        parts = path.split(".")
        for count in range(len(parts) - 1, 0, -1):
            if module := sys.modules.get(".".join(parts[:count])):
                self._define(module, parts[count])
                cls = getattr(module, parts[count], None)
                for base in cls.__mro__[1:] if isinstance(cls, type) else ():
                    self._define_class(base)
                return

    def follow(self) -> None:
        """Follow every name until no more is found."""
        while self._work:
            statement = self._work.pop()
            self._follow(statement, self._modules[statement.file], statement.nested_imports.items())

    # -- what a name means

    def _follow(
        self, statement: Statement, module: ModuleType | None, imports: Iterable[tuple[str, list[Imported]]]
    ) -> None:
        """The names of a statement are the module's, or what its functions import."""
        for names in sorted(statement.names):
            self._use(module, names)
            for alias, origins in imports:
                for origin in origins if alias in (names[0], "*") else ():
                    inside = names if alias == "*" else (*filter(None, origin[2:]), *names[1:])
                    self._use(_origin(module, origin), inside)

    def _use(self, module: ModuleType | None, names: Sequence[str]) -> None:
        """Find where the constant is from that ``names`` lead to: a name in a module, its attribute, and so on."""
        if module is None or not names or names[0] not in vars(module):
            return
        name, *attributes = names
        value = vars(module)[name]
        if name in _NO_MATTER or type(value).__module__ in _TYPING:
            return
        if isinstance(value, ModuleType):
            self._use(value, attributes)
        elif isinstance(value, type) and issubclass(value, nn.Module | BaseException):
            # One that matters is in the model, or has run. But it may hold a constant.
            holder = next((base for base in value.__mro__ if attributes and attributes[0] in vars(base)), None)
            if holder and not isinstance(vars(holder)[attributes[0]], _NO_CONSTANTS):
                self._define_class(holder)
        elif not isinstance(value, _FUNCTIONS) and (is_source(_file(module)) or not callable(value)):
            self._define(module, name)  # other classes may be nothing but a set of constants

    def _define_class(self, cls: type) -> None:
        module = sys.modules.get(cls.__module__)
        if module and (issubclass(cls, nn.Module | BaseException) or is_source(_file(module))):
            self._define(module, cls.__qualname__.partition(".")[0])

    def _define(self, module: ModuleType, name: str) -> None:
        """Take the statements that define a name of a module, wherever it has been imported from."""
        key = module.__name__, name
        if key in self._defined:
            return
        self._defined.add(key)
        file = _file(module)
        text = self._parsed(file)
        if text is None:
            self._text(file)
            return
        statements = text.defining(name)
        for statement in statements:
            for imported in statement.imports.get(name, ()):
                self._define_imported(module, imported, imported[2])
            if not statement.is_import:
                self._text(file)
                self._read(statement)
        if not statements:
            for statement in text.defining("*"):
                for imported in statement.imports["*"]:
                    self._define_imported(module, imported, name)

    def _define_imported(self, module: ModuleType, imported: Imported, name: str) -> None:
        origin = _origin(module, imported)
        if origin is not None and name in vars(origin):
            self._define(origin, name)

    # -- texts

    def _read(self, statement: Statement | None) -> None:
        if statement is not None and statement not in self._seen:
            self._seen.add(statement)
            self._work.append(statement)

    def _text(self, file: str) -> Text | None:
        """Depend on a file, and on what ran when it was imported; its text, if it is a source."""
        if file not in self.files:
            self.files.add(file)
            if file in self._watched.imported:
                self.take(self._watched.imported[file])
        return self._parsed(file)

    def _parsed(self, file: str) -> Text | None:
        if file not in self._texts:
            self._texts[file] = None
            if file in self._modules and is_source(file):
                with contextlib.suppress(SyntaxError, ValueError):
                    self._texts[file] = Text(file, read(file) or b"")
        return self._texts[file]


def _modules() -> Iterator[tuple[str, ModuleType]]:
    for module in list(sys.modules.values()):
        if file := _file(module):
            yield file, module


def _file(module: ModuleType) -> str:
    return str(getattr(module, "__dict__", {}).get("__file__") or "")


def _names(tree: object) -> Iterator[Name]:
    """The names in an expression."""
    if isinstance(tree, Name):
        yield tree
    elif isinstance(tree, tuple):
        for each in tree:
            yield from _names(each)
    elif dataclasses.is_dataclass(tree):
        yield from _names(tuple(vars(tree).values()))


def _origin(module: ModuleType | None, imported: Imported) -> ModuleType | None:
    """The module that something was imported from, or that was imported."""
    name, level, _ = imported
    with contextlib.suppress(ImportError, ValueError):
        return sys.modules.get(importlib.util.resolve_name("." * level + name, module.__package__ if module else ""))
    return None
