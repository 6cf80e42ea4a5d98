"""From a name to the object it names."""

from __future__ import annotations

import builtins
import importlib
import pkgutil
from types import ModuleType

from sphinx_fxgraph.capture.errors import CaptureError, by_model, not_installed, raised
from sphinx_fxgraph.errors import suggestion
from sphinx_fxgraph.spec.syntax import Name


def resolve(name: Name) -> object:
    """The object of a name. An attribute comes before a module: ``torchvision.models.alexnet`` is both.

    Raises:
        CaptureError: stage ``import``.
    """
    parts = name.qualname.split(".")
    if name.module is not None:
        found, rest = _walk(_import(name.module), parts)
        return _reached(found, rest)
    if len(parts) == 1 and hasattr(builtins, parts[0]):
        return getattr(builtins, parts[0])
    found, rest = _walk(_import(parts[0]), parts[1:])
    for count in range(2, len(parts) + 1):
        if not rest:
            break
        module = _import_if_there(".".join(parts[:count]))
        if module is None:
            break
        found, rest = _walk(module, parts[count:])
    return _reached(found, rest)


def _walk(found: object, names: list[str]) -> tuple[object, list[str]]:
    """Follow attributes as far as they go; what is left are the names that lead no further."""
    for number, name in enumerate(names):
        try:
            found = getattr(found, name)
        except AttributeError:
            return found, names[number:]
        except by_model() as error:  # a package that imports its parts when they are asked for
            raise _failed(f"{_name(found)}.{name}", error) from error
    return found, []


def _import_if_there(name: str) -> ModuleType | None:
    try:
        return _import(name)
    except CaptureError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and f"{name}.".startswith(f"{cause.name}."):
            return None
        raise


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except by_model() as error:
        raise _failed(name, error) from error


def _failed(name: str, error: BaseException) -> CaptureError:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return not_installed(name, error)
    return raised("import", f"importing {name}", error)


def _reached(found: object, rest: list[str]) -> object:
    """What was found, if no name is left."""
    if not rest:
        return found
    names = dir(found)
    if isinstance(found, ModuleType):
        names += [module.name for module in pkgutil.iter_modules(getattr(found, "__path__", []))]
    raise CaptureError("import", f"{_name(found)} has no {rest[0]!r}{suggestion(rest[0], names)}")


def _name(found: object) -> str:
    return getattr(found, "__qualname__", None) or getattr(found, "__name__", None) or type(found).__qualname__
