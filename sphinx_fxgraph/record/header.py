"""The header of a record: the model it belongs to, the files it depends on, why the capture failed.

It is read without the graph in a small part of the time, and is all that a build needs to know that nothing changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgspec

SCHEMA = 5
"""Version of the format. It is part of the record and not of the spec id: an older record is stale, never missing."""


Stage = Literal["import", "build", "input", "trace", "probe", "limit", "cache", "option"]
"""Where a capture failed; ``cache`` and ``option`` are failures that no capture has, but a page or a command."""


class RecordError(ValueError):
    """The text is not a record that this version can read."""


class NewerError(RecordError):
    """A later version of sphinx-fxgraph wrote it."""


class Source(msgspec.Struct, frozen=True):
    """A source file as top-level package plus path below it, and the SHA-256 of its text with LF line ends."""

    file: str
    digest: str


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a capture gave no graph, or only a part of one."""

    stage: Stage
    """The warning's subtype."""
    type: str
    """The exception's class, or what ended the process."""
    message: str
    file: str = ""
    """Package-relative, as in `Source`."""
    line: int = 0
    node: str = ""
    """Path of the operator that failed."""
    transient: bool = False
    """It depends on the machine (time, memory, crash, network, a missing distribution) and is tried again."""

    @property
    def lacks_memory(self) -> bool:
        """Return whether there was too little memory; torch's allocator says so with a RuntimeError."""
        return self.type == "MemoryError" or "allocate memory" in self.message

    @property
    def missing(self) -> str:
        """The module that is not installed here, if that is why."""
        found = re.search(r"no module '([\w.]+)'|^(torch) is not installed", self.message)
        return found[found.lastindex or 0] if found else ""

    @property
    def was_killed(self) -> bool:
        """Return whether a signal ended the process.

        The model's own code did, or what else runs here left it no memory.
        """
        return self.stage == "limit" and self.type.startswith("SIG")


class Head(msgspec.Struct, frozen=True, omit_defaults=True):
    """The header of a record, read without its graph, which takes a small part of the time."""

    spec: Mapping[str, Any]
    root: str = ""
    failure: Failure | None = None
    sources: tuple[Source, ...] = ()
    distributions: Mapping[str, str] = {}
    schema: int = SCHEMA

    @classmethod
    def from_json(cls, text: str | bytes) -> Head:
        """Read what `Record.to_json` wrote.

        Raises:
            RecordError: the text is torn, foreign or written by a later version.
        """
        return decoded(text, msgspec.json.Decoder(cls).decode)


class _Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node, and the body it calls."""

    name: str
    body: str = ""


class _Calls(msgspec.Struct, frozen=True, omit_defaults=True):
    """A body."""

    nodes: tuple[_Call, ...] = ()


class Outline(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outline of a graph: the names of its nodes, read without the rest."""

    spec: Mapping[str, Any]
    root: str = ""
    bodies: Mapping[str, _Calls] = {}
    schema: int = SCHEMA

    def paths(self) -> Iterator[str]:
        """The path of every node of every module call, in execution order."""
        return self._paths(self.root, "") if self.root else iter(())

    def _paths(self, body: str, before: str) -> Iterator[str]:
        for node in self.bodies[body].nodes:
            yield f"{before}{node.name}"
            if node.body:
                yield from self._paths(node.body, f"{before}{node.name}.")

    @classmethod
    def from_json(cls, text: str | bytes) -> Outline:
        """Read what `Record.to_json` wrote. Whether its bodies fit together only `Record.from_json` knows.

        Raises:
            RecordError: the text is torn, foreign or written by a later version.
        """
        outline = decoded(text, msgspec.json.Decoder(cls).decode)
        check_size(outline.bodies, outline.root)
        return outline


MOST_NODES = 10_000_000
"""Of a record, each module call counted with all that is in it: they are written to inventories, one by one."""
MOST_LEVELS = 200
"""How deep modules may be nested."""


class _Called(Protocol):
    @property
    def body(self) -> str: ...


class _Calling(Protocol):
    @property
    def nodes(self) -> Sequence[_Called]: ...


def check_size(bodies: Mapping[str, _Calling], root: str) -> None:
    """See to it that a graph can be gone through to its end: equal bodies are stored once, and may call each other.

    Raises:
        RecordError: a body is not there or contains itself, or there are more than `MOST_NODES` nodes or `MOST_LEVELS`.
    """
    sizes: dict[str, int] = {}

    def size(name: str, level: int) -> int:
        if level > MOST_LEVELS:
            raise RecordError(f"modules are nested in more than {MOST_LEVELS} levels, or a body contains itself")
        if name not in sizes:
            if name not in bodies:
                raise RecordError(f"there is no body {name!r}")
            nodes = bodies[name].nodes
            sizes[name] = len(nodes) + sum(size(node.body, level + 1) for node in nodes if node.body)
        return sizes[name]

    if root and size(root, 0) > MOST_NODES:
        raise RecordError(f"it describes {sizes[root]:,} nodes, more than {MOST_NODES:,}")


class _Versioned(Protocol):
    @property
    def schema(self) -> int: ...


_Read = TypeVar("_Read", bound=_Versioned)


def decoded(text: str | bytes, decode: Callable[[str | bytes], _Read]) -> _Read:
    """Decode a text; raise its errors as `RecordError`.

    Args:
        text: of a record.
        decode: understands it.

    Raises:
        RecordError: the text is torn, foreign or written by a later version.
    """
    try:
        read = decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise RecordError(str(error)) from error
    except (TypeError, KeyError, AttributeError, IndexError, ValueError) as error:
        raise RecordError(f"no record: {error!r}") from error
    if read.schema > SCHEMA:
        raise NewerError(f"schema {read.schema} is newer than {SCHEMA}, the latest that this version reads")
    return read
