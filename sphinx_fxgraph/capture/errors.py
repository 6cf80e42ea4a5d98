"""Say why a capture stopped: the stage, what to write instead, file and line."""

from __future__ import annotations

import inspect
import sysconfig
import traceback
from pathlib import Path
from typing import Any

import torch

import sphinx_fxgraph
from sphinx_fxgraph.cache.fingerprints import portable
from sphinx_fxgraph.escape import one_line
from sphinx_fxgraph.record.cleaning import clean_text
from sphinx_fxgraph.record.header import Failure, Stage
from sphinx_fxgraph.spec.spec import CODE_FILE

_MOST_CHARACTERS = 500


class CaptureError(Exception):
    """A capture ends here.

    Attributes:
        stage: ``import``, ``build``, ``input``, ``trace``, ``probe`` or ``limit``.
        message: one line for the author.
        type: the name of the exception's class.
        file: the file of the model's code that raised, package-relative.
        line: the line in it.
        node: the path of the operator that failed.
        record: what was traced before the failure, where the Python interface raises it; the exception of the model's
            code is ``__cause__``.
        transient: whether the failure depends on the machine.

    Args:
        stage: the warning's subtype.
        message: one line for the author.
        cause: what the model's code raised; gives ``type`` (the name of its class), ``file`` and ``line``.
        transient: whether another machine, or this one another time, may give another result.
    """

    def __init__(
        self, stage: Stage, message: str, *, cause: BaseException | None = None, transient: bool = False
    ) -> None:
        super().__init__(message)
        self.stage = stage
        self.message = message
        self.transient = transient
        self.type = type(cause).__name__ if cause else ""
        self.file, self.line = place(cause) if cause else ("", 0)
        self.node = ""
        """Path of the operator that failed."""
        self.record: Any = None
        """The `ModelRecord` of what was traced before; None while the capture goes on."""

    @classmethod
    def of(cls, failure: Failure, record: Any) -> CaptureError:
        """Return the error for a failure that a record holds.

        Args:
            failure: what went wrong.
            record: the partial record.
        """
        place_ = f" ({failure.file}:{failure.line})" if failure.file else ""
        message = f"{failure.type}: {failure.message}{place_}"
        error = cls(failure.stage, message, transient=failure.transient)
        error.type, error.file, error.line = failure.type, failure.file, failure.line
        error.node, error.record = failure.node, record
        return error


def place(error: BaseException) -> tuple[str, int]:
    """File (package-relative) and line of the deepest frame in the model's code: not ours, torch's or Python's own."""
    if isinstance(error, SyntaxError) and error.filename:
        found = [(error.filename, error.lineno or 0)]
    else:
        found = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    for file, line in reversed(found):
        if file == CODE_FILE:
            return file, line
        if not file.startswith("<") and not _is_foreign(Path(file)):
            return portable(file), line
    return "", 0


_PATHS = sysconfig.get_paths()
_INSTALLED = tuple(Path(_PATHS[name]) for name in ("purelib", "platlib"))
_FOREIGN = tuple(Path(str(package.__file__)).parent for package in (torch, sphinx_fxgraph))


def _is_foreign(file: Path) -> bool:
    if any(file.is_relative_to(folder) for folder in _FOREIGN):
        return True
    installed = "site-packages" in file.parts or any(file.is_relative_to(folder) for folder in _INSTALLED)
    return not installed and file.is_relative_to(_PATHS["stdlib"])


def said(error: BaseException) -> str:
    """Return what an exception says, in one line; its class is told beside it."""
    if isinstance(error, SystemExit):
        hint = 'code that is run as a script belongs below if __name__ == "__main__":'
        return cut(f"Python was told to exit with status {message_of(error) or 0}; {hint}")
    if isinstance(error, KeyboardInterrupt):
        return cut(f"the model's code raised KeyboardInterrupt {message_of(error)}")
    return cut(message_of(error))


def message_of(error: BaseException | None) -> str:
    """Return the text of an exception, also of one that cannot say it."""
    try:
        return str(error)
    except BaseException as another:  # noqa: BLE001 - its own code, which may raise anything
        return f"an exception whose text raises {type(another).__name__}"


def cut(text: str) -> str:
    """Return a message in one line, and not more of it than a page can show."""
    text = clean_text(one_line(text))
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


_caught: tuple[type[BaseException], ...] = (Exception, SystemExit)


def by_model() -> tuple[type[BaseException], ...]:
    """Return what counts as an exception of the model's code. Evaluated by ``except`` when something is raised."""
    return _caught


def catch_all() -> None:
    """Count every exception as the model's: in a process of its own nobody presses Ctrl+C."""
    global _caught
    _caught = (BaseException,)


def failed_call(stage: Stage, name: str, error: BaseException, function: Any = None) -> CaptureError:
    """The error for something of the model's that raised, ``function`` if it can be asked for its parameters."""
    if isinstance(error, CaptureError):
        return error
    if isinstance(error, MemoryError) or "allocate memory" in message_of(error):
        message = f"{name} needs more memory than there is: {said(error)}"
        return CaptureError("limit", message, cause=error, transient=True)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return not_installed(name, error)
    hint = ""
    if function is not None and isinstance(error, TypeError) and len(traceback.extract_tb(error.__traceback__)) == 1:
        hint = _needed(name, function)
    return raised(stage, f"in {name}", error, hint)


def raised(stage: Stage, where: str, error: BaseException, hint: str = "") -> CaptureError:
    """The error for an exception of the model's; ``where`` is told if no file is, or if it says nothing."""
    text = said(error)
    told = f" ({where})" if not hint and (not text or not place(error)[0]) else ""
    return CaptureError(stage, f"{text}{hint}{told}".strip(), cause=error)


def not_installed(name: str, error: ModuleNotFoundError) -> CaptureError:
    """The error for a module that is missing; ``name`` is what asked for it."""
    missing = error.name or ""
    top = missing.partition(".")[0]
    if top == name.partition(".")[0] and top != missing:  # a part of the package itself: not a matter of this machine
        return CaptureError("import", f"{name} cannot be imported: no module {missing!r}", cause=error)
    asked = "" if name == missing or name.startswith(f"{missing}.") else f", which {name} imports"
    hint = "install its distribution, or put its folder on sys.path (in conf.py, or by PYTHONPATH)"
    return CaptureError("import", f"no module {missing!r}{asked}; {hint}", cause=error, transient=True)


def _needed(name: str, function: Any) -> str:
    """A right way to call it, ``; write pkg.Net(width=...)``."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ""
    needed = [
        f"{parameter.name}=..."
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    return f"; write {name}({', '.join(needed)})"
