"""What is compared with what: the two sides of a difference, and where each comes from when the page is made."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import structs

from sphinx_fxgraph.cache import revisions
from sphinx_fxgraph.cache.store import Store
from sphinx_fxgraph.record.diff import SIGNS, Change, Difference, compare, merged
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec

_MOST_OPEN = 12
"""Modules that are opened because something in them differs."""


@dataclass(frozen=True)
class Kept:
    """A record from outside: ``REV:NAME``, which is kept in the cache, or the path of a file below the docs."""

    text: str
    is_file: bool = False

    @property
    def id(self) -> str:
        """Of its place in the cache."""
        return _id(self.to_dict())

    @property
    def target(self) -> str:
        """What the author wrote."""
        return self.text

    @property
    def label(self) -> str:
        """The name in it, and the revision."""
        revision, _, name = self.text.partition(":")
        return f"{Path(name).stem}-{revision}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"file" if self.is_file else "revision": self.text}

    def record(self, store: Store, folder: Path) -> Record:
        """What was kept. What a revision has is kept in the cache too, for clones that do not have the revision.

        Args:
            store: the cache.
            folder: of the docs.

        Raises:
            kept.RecordFileError: there is none.
        """
        if self.is_file:
            return revisions.from_file(folder / self.text)
        record = revisions.at_revision(self.text, folder)
        if record is None:
            record = store.record(self)
            if record is None:
                raise revisions.RecordFileError(
                    f"{self.text}: neither git knows the revision here, nor has the cache its record"
                )
            return record
        record = structs.replace(record, spec=self.to_dict())
        store.put_record(self, record)
        return record


@dataclass(frozen=True)
class Comparison:
    """One model compared with another, or with a record from outside. In a page it stands where a spec does."""

    before: GraphSpec | Kept
    after: GraphSpec

    @cached_property
    def id(self) -> str:
        """Hexadecimal digits that no other has."""
        return _id(self.to_dict())

    @property
    def label(self) -> str:
        """A name for people and files."""
        return f"{self.after.label}-diff"

    @property
    def target(self) -> str:
        """What is compared, in words."""
        before, after = (each.target or each.label for each in (self.before, self.after))
        return f"{before} → {after}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, from which `from_dict` makes the same."""
        return {"before": self.before.to_dict(), "after": self.after.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Comparison:
        """What `to_dict` gave."""
        before = plain["before"]
        outside = next((Kept(before[key], key == "file") for key in ("file", "revision") if key in before), None)
        return cls(outside or GraphSpec.from_dict(before), GraphSpec.from_dict(plain["after"]))

    @property
    def specs(self) -> Iterator[GraphSpec]:
        """What must be captured for it."""
        if isinstance(self.before, GraphSpec):
            yield self.before
        yield self.after


Shown = GraphSpec | Comparison | Kept
"""What has an id, a name, and files in the cache."""


@dataclass(frozen=True)
class Compared:
    """A comparison that has been made."""

    difference: Difference
    record: Record
    """Both graphs in one, with marks. Without a graph of both, the failure of the one that has none."""

    @classmethod
    def of(cls, before: Record, after: Record) -> Compared:
        """Two records compared."""
        for record in (before, after):
            if not record.root and record.failure:
                return cls(Difference((), ()), Record(spec={}, tracer=record.tracer, failure=record.failure))
        return cls(compare(before, after), merged(before, after))

    @property
    def paths(self) -> frozenset[str]:
        """Of the operators and modules in the drawing that have a row in the table of changes."""
        return frozenset(change.drawn or change.path for change in self.difference.changes)

    @property
    def facts(self) -> str:
        """How many changes there are, and what the models say of themselves where it differs."""
        kinds = Counter(change.kind for change in self.difference.changes)
        told = [f"{SIGNS[kind]} {kinds[kind]} {kind}" for kind in SIGNS if kinds[kind]]
        told += [
            f"{fact.name} {fact.before or 'unknown'} → {fact.after or 'unknown'}" for fact in self.difference.facts
        ]
        return " · ".join(told) or ("no difference" if self.record.root else "")

    @property
    def digest(self) -> str:
        """Of what a page shows of it."""
        return hashlib.sha256("\n".join([self.record.digest, *self.difference.lines()]).encode()).hexdigest()

    def look(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The options of the drawing: what differs is open, unless the author wants it otherwise."""
        if "open" in asked or "depth" in asked:
            return dict(asked)
        return {**asked, "open": tuple(_parents(self.difference.changes))}


def _parents(changes: Iterable[Change]) -> list[str]:
    paths = (change.drawn or change.path for change in changes)
    parents = dict.fromkeys(path.rpartition(".")[0] for path in paths if "." in path)
    return [_exactly(path) for path in list(parents)[:_MOST_OPEN]]


def _exactly(path: str) -> str:
    """A pattern that only this path fits."""
    return path.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")


def _id(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
