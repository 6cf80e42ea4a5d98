"""The ``fxgraph-diff`` directive: two architectures in one drawing and one table.

``:against:`` names the other one: a target, a record's file, or ``REV:NAME``, the record committed at a git revision.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from msgspec import structs

from sphinx_fxgraph.cache import store as revisions
from sphinx_fxgraph.cache.store import RecordFileError, Store
from sphinx_fxgraph.errors import SpecError
from sphinx_fxgraph.record.header import Failure, Stage
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.sphinxext import graph, messages
from sphinx_fxgraph.sphinxext.domain import DiffUse, FxDomain, ModelUse, fx_domain
from sphinx_fxgraph.sphinxext.graph import VIEW, FxgraphDirective, defaults, spec_of
from sphinx_fxgraph.sphinxext.messages import warn
from sphinx_fxgraph.sphinxext.state import Run, look_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from sphinx_fxgraph.record.diff import Change, Difference
    from sphinx_fxgraph.record.model import Record


_MOST_OPEN = 12
"""Modules that are opened because something in them differs."""


@dataclass(frozen=True)
class Kept:
    """A record from outside: ``REV:NAME``, which is kept in the cache, or the path of a file below the docs."""

    text: str
    is_file: bool = False

    @property
    def id(self) -> str:
        """Return the id of its place in the cache."""
        return _id(self.to_dict())

    @property
    def target(self) -> str:
        """Return the author's text."""
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
        """Return the record of a file or revision.

        That of a revision is stored in the cache too, for clones without the revision.

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
        """Return the two sides in words."""
        before, after = (each.target or each.label for each in (self.before, self.after))
        return f"{before} → {after}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, from which `from_dict` makes the same."""
        return {"before": self.before.to_dict(), "after": self.after.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Comparison:
        """Read the result of `to_dict`."""
        before = plain["before"]
        outside = next((Kept(before[key], key == "file") for key in ("file", "revision") if key in before), None)
        return cls(outside or GraphSpec.from_dict(before), GraphSpec.from_dict(plain["after"]))

    @property
    def specs(self) -> Iterator[GraphSpec]:
        """Return the specs that must be captured for it."""
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
        from sphinx_fxgraph.record.diff import Difference, compare
        from sphinx_fxgraph.record.diff_graph import merge
        from sphinx_fxgraph.record.model import Record

        for record in (before, after):
            if not record.root and record.failure:
                return cls(Difference((), ()), Record(spec={}, tracer=record.tracer, failure=record.failure))
        return cls(compare(before, after), merge(before, after))

    @property
    def paths(self) -> frozenset[str]:
        """Return the paths of operators and modules that have a row in the table of changes."""
        return frozenset(change.drawn or change.path for change in self.difference.changes)

    @property
    def facts(self) -> str:
        """How many changes there are, and what the models say of themselves where it differs."""
        from sphinx_fxgraph.record.diff import SIGNS

        kinds = Counter(change.kind for change in self.difference.changes)
        told = [f"{SIGNS[kind]} {kinds[kind]} {kind}" for kind in SIGNS if kinds[kind]]
        told += [
            f"{fact.name} {fact.before or 'unknown'} → {fact.after or 'unknown'}" for fact in self.difference.facts
        ]
        return " · ".join(told) or ("no difference" if self.record.root else "")

    @property
    def digest(self) -> str:
        """Return a digest of the parts that a page shows."""
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


def made(run: Run, domain: FxDomain, folder: str | os.PathLike[str]) -> list[ModelUse]:
    """Compare what has been captured. From here on a difference is shown as a model is: as a record.

    Args:
        run: holds what was captured, and what is compared.
        domain: knows what the pages compare.
        folder: of the docs.

    Returns:
        The places of the drawings.
    """
    uses = []
    for asked in (asked for docname in sorted(domain.differences) for asked in domain.differences[docname]):
        comparison = Comparison.from_dict(asked.comparison)
        run.specs[comparison.id] = comparison
        before, after = (_side(run, side, asked, Path(folder)) for side in (comparison.before, comparison.after))
        if before and after:
            compared = run.compared[comparison.id] = Compared.of(before, after)
            run.records[comparison.id] = compared.record
            uses.append(ModelUse(comparison, compared.look(asked.look), asked.location))
    return uses


def _side(run: Run, side: GraphSpec | Kept, asked: DiffUse, folder: Path) -> Record | None:
    from sphinx_fxgraph.record.model import Record

    if not isinstance(side, Kept):
        return run.record(side.id)  # none, where another machine captures it
    run.specs[side.id] = side
    try:
        return side.record(run.store, folder)
    except RecordFileError as error:
        warn(str(error), "cache", asked.location)
        return Record(spec={}, tracer="", failure=Failure("cache", "", str(error)))


def shown(run: Run, asked: DiffUse) -> list[str]:
    """Return digests of the parts of a difference that a page shows."""
    key = Comparison.from_dict(asked.comparison).id
    compared = run.compared.get(key)
    return [key, compared.digest, run.drawn.get((key, look_of(compared.look(asked.look))), "")] if compared else [key]


OURS = ("against", "against-inputs")
"""The options that ``fxgraph`` does not have."""


class FxgraphDiffDirective(FxgraphDirective):
    """``.. fxgraph-diff:: target`` with ``:against:`` and the options of ``fxgraph``, but for what that one claims."""

    table_title = "Changes"

    def run(self) -> list[nodes.Node]:
        """Leave the figure, and note what is compared. Nothing is captured or drawn here."""
        target = self.arguments[0] if self.arguments else ""
        options = dict(self.options)
        against, inputs = (options.pop(name, "").strip() for name in OURS)
        try:
            target = target or self._documented()
            if not against:
                raise SpecError(
                    "against: which model, file or revision? For example :against: zoo.UNet(depth=2), "
                    "or v1.0:zoo.UNet for the record that was committed at v1.0"
                )
            options = defaults(self.config, target) | options
            given = defaults(self.config, against) | options | ({"inputs": inputs} if inputs else {})
            before = self._outside(against) or spec_of(against, "", given)
            comparison = Comparison(before, spec_of(target, "", options))
        except SpecError as error:
            subtype: Stage = "input" if str(error).startswith("inputs") else "option"
            self._wrong(str(error), subtype)
            block = messages.block(Failure(subtype, "", str(error)))
            return [nodes.paragraph("", "", nodes.literal(target, target)), block]
        for name in graph.NAMES:
            if name not in options:
                continue
            self._wrong(f"{name}: a difference claims nothing; write it where the model itself is shown", "option")
            del options[name]
        checked = self._check(options)
        look = {name: checked.pop(name) for name in VIEW if name in checked}
        domain, location = fx_domain(self.env), self.get_location()
        for spec in comparison.specs:
            domain.note_use(self.env.docname, ModelUse(spec, None, location))
        domain.note_difference(self.env.docname, DiffUse(comparison.to_dict(), look, location))
        figure, behind = self._figure(comparison, look, checked)
        figure["classes"].append("fxg-diff")
        return [figure, behind]

    def _outside(self, text: str) -> Kept | None:
        """A record that is not captured: a file, or something that a revision of the repository has."""
        from sphinx_fxgraph.cache import store as revisions

        if text.endswith(".json") and ":" not in text:
            relative, absolute = self.env.relfn2path(text)
            self.env.note_dependency(relative)
            if not Path(absolute).is_file():
                raise SpecError(f"against: there is no file {relative}")
            return Kept(relative, is_file=True)
        outside = Kept(text)
        store = fx_domain(self.env).run.store
        if ":" in text and (revisions.is_revision(text, self.env.srcdir) or store.record(outside) is not None):
            return outside
        return None


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the directive."""
    app.add_directive("fxgraph-diff", FxgraphDiffDirective)
