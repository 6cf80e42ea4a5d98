"""Registries: which models a zoo has, from a list, a file or a callable of the zoo's own."""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from sphinx_fxgraph.cache.fingerprints import SourceFinder, read_file
from sphinx_fxgraph.escape import one_line
from sphinx_fxgraph.record.header import Head, Source
from sphinx_fxgraph.worker import sandbox


class RegistryError(ValueError):
    """A registry gives no list of models."""


@dataclass(frozen=True)
class Entry:
    """A model of a zoo: its name, and what else its registry says."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """The models that a callable listed and the files that it depends on: plain data, kept in the cache."""

    models: Any
    sources: Mapping[str, str]
    folders: Mapping[str, Sequence[str]]
    distributions: Mapping[str, str]

    @classmethod
    def from_json(cls, text: str | bytes | None) -> Listing | None:
        """Return what `to_json` wrote; None for anything else."""
        try:
            return msgspec.json.decode(text or "", type=cls)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None

    def to_json(self) -> str:
        """Return the listing as JSON, one model or source a line."""
        return json.dumps(vars(self), indent=0, sort_keys=True, ensure_ascii=False) + "\n"

    def is_fresh(self, finder: SourceFinder) -> bool:
        """Return whether no source has changed and no file was added beside them or removed."""
        sources = tuple(Source(file, digest) for file, digest in self.sources.items())
        if finder.stale_reasons(Head(spec={}, sources=sources, distributions=self.distributions)):
            return False
        for folder, then in self.folders.items():
            place = finder.locate(f"{folder}/__init__.py")
            now = sorted(file.name for file in place.parent.glob("*.py")) if place else then
            if now != sorted(then):
                return False
        return True


def is_callable(registry: str) -> bool:
    """Return whether a text names a callable, as ``torchvision.models:list_models`` does."""
    return bool(re.fullmatch(r"[\w.]+:[\w.]+", registry))


def call(registry: str, *, python: str, sys_path: Sequence[str], folder: str, seconds: float) -> Listing:
    """Run a registry's callable in a process of its own, without network.

    Args:
        registry: the callable, as ``module:name``.
        python: the interpreter.
        sys_path: the import path.
        folder: the current folder.
        seconds: the time limit.

    Raises:
        RegistryError: it gives no list.
    """
    from sphinx_fxgraph.worker.process import STARTUP, command  # only where something is called

    with tempfile.TemporaryDirectory(prefix="fxgraph-", ignore_cleanup_errors=True) as temporary:
        request = {
            "callable": registry,
            "sys_path": list(sys_path),
            "folder": folder,
            "seconds": seconds,
            "temporary": temporary,
        }
        try:
            run = sandbox.run([*command(python), "--list"], json.dumps(request).encode(), timeout=seconds + STARTUP)
        except sandbox.ProgramError as error:
            raise RegistryError(f"{registry}: no list: it {error}") from None
        except OSError as error:
            raise RegistryError(f"{registry}: the interpreter does not start: {error.strerror or error}") from None
    try:
        answer = json.loads(run.output)
    except (ValueError, RecursionError):
        lines = run.errors.decode(errors="replace").strip().splitlines() or [f"it ended with status {run.status}"]
        raise RegistryError(f"{registry}: no list: {one_line(lines[-1], 300)}") from None
    if "error" in answer:
        raise RegistryError(f"{registry}: {answer['error']}")
    return Listing(**answer)


def read(path: Path) -> Any:
    """Return the content of a YAML or TOML file.

    Raises:
        RegistryError: there is none, or it cannot be read.
    """
    try:
        data = read_file(path)
        if path.suffix == ".toml":
            return tomllib.loads(data.decode())
        import yaml  # type: ignore[import-untyped] # read where there is one, so its stubs are not asked for

        return yaml.safe_load(data)
    except ImportError:
        raise RegistryError(
            f"{path.name}: reading YAML needs PyYAML (pip install pyyaml); TOML needs nothing"
        ) from None
    except Exception as error:  # noqa: BLE001 - each reader has errors of its own
        raise RegistryError(f"{path.name}: {' '.join(str(error).split())}") from None


def entries(found: Any) -> list[Entry]:
    """Return the models of a list of names, a list of mappings with ``name``, or a mapping by name.

    Each may also stand below the key ``models``.

    Raises:
        RegistryError: it is none of these.
    """
    if isinstance(found, Mapping) and set(found) == {"models"}:
        found = found["models"]
    if isinstance(found, Mapping):
        found = [{"name": name, **_fields(value)} for name, value in found.items()]
    if not isinstance(found, list | tuple):
        raise RegistryError(f"a list of models is needed, not {type(found).__name__}")
    models: dict[str, Entry] = {}
    for item in found:
        fields = {"name": item} if isinstance(item, str) else _fields(item)
        name = fields.pop("name", None)
        if not isinstance(name, str) or not name.strip():
            raise RegistryError(f"a model needs a name: {item!r}")
        models.setdefault(name, Entry(name, fields))
    return list(models.values())


def _fields(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, str):
        return {"target": value}
    if not isinstance(value, Mapping):
        raise RegistryError(f"a name or a mapping is needed: {value!r}")
    return {str(key): item for key, item in value.items()}
