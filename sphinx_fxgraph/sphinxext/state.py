"""The state of one run of a builder: its settings, the records and layouts, and which pages showed what."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx_fxgraph.cache.store import Store
from sphinx_fxgraph.escape import file_stem
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.sphinxext import sphinx_private

if TYPE_CHECKING:
    from sphinx.builders import Builder

    from sphinx_fxgraph.record.header import Head
    from sphinx_fxgraph.record.model import Record
    from sphinx_fxgraph.render.drawing import Job
    from sphinx_fxgraph.sphinxext.config import Config
    from sphinx_fxgraph.sphinxext.diff import Compared, Shown


RECENT = 32
"""How many records and pictures are at hand: the memory of a build does not grow with the number of models."""


@dataclass
class Run:
    """The state of one run of a builder; nothing of it is kept with the environment."""

    builder: Builder
    config: Config
    store: Store
    mocked: tuple[str, ...] = ()
    """The modules that autodoc replaces."""
    kept: dict[str, dict[str, tuple[str, Any]]] = field(default_factory=dict)
    """What was read of the records in the store, by kind and spec id, with the digest of the files. It is pickled with
    the environment, so that a build that changes nothing reads no record."""
    specs: dict[str, Shown] = field(default_factory=dict)
    """All that are shown or compared, by id."""
    compared: dict[str, Compared] = field(default_factory=dict)
    """The comparisons that have been made, by id."""
    records: dict[str, Record] = field(default_factory=dict)
    """By spec id: what this run knows and the store does not keep, such as failures that are tried again."""
    layouts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Likewise: layouts that the engine complained of, or that may not be written."""
    drawn: dict[tuple[str, ViewOptions], str] = field(default_factory=dict)
    """What has a picture, by spec id and look, and a digest of its layout."""
    up_to_date: frozenset[str] = frozenset()
    """Ids of the specs that only pages show which were written from the very files that are in the store today: of
    these all is there. They are read and drawn for a page that is written again, and else not at all."""
    seals: dict[str, str] = field(default_factory=dict)
    """By spec id: a digest of its files."""
    problems: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By spec id: subtype and text of a warning about a record that is shown all the same."""
    warned: set[str] = field(default_factory=set)
    """What concerns the whole build and has been warned of."""
    digests: dict[str, str] = field(default_factory=dict)
    """Of each page: what it would show now."""
    zoos: dict[str, list[Any]] = field(default_factory=dict)
    """The pages of each zoo (`zoo.Page`)."""
    objects: list[tuple[str, str, str, str, str, int]] = field(default_factory=list)
    """What other projects can refer to, as `FxDomain.get_objects` yields it."""
    written: dict[str, str] = field(default_factory=dict)
    """Of the pages written in this run: what they were made from."""

    def __post_init__(self) -> None:
        self._stored = functools.lru_cache(RECENT)(lambda key: self.store.record(self.specs[key]))
        self._pictured = functools.lru_cache(RECENT)(self._job)

    @property
    def shows(self) -> bool:
        """Return whether graphs are shown at all.

        Gettext, linkcheck, coverage, doctest and the like have no output format.
        """
        return bool(self.builder.format) and self.config.mode != "off"

    @property
    def notes(self) -> Path:
        """Where the output remembers what its pages were made from; html and dirhtml share an environment, not this."""
        return Path(self.builder.outdir, ".fxgraph.json")

    def record(self, key: str) -> Record | None:
        """Return the record of a spec id, or None."""
        return self.records.get(key) or self._stored(key)

    def head(self, key: str) -> Record | Head | None:
        """Return the header of the record, or None."""
        if key not in self.up_to_date:
            return self.record(key)
        head: Head | None = self._remembered("head", key, self.store.head)
        return head

    def names(self, key: str) -> Sequence[str]:
        """Return the paths of the nodes of a graph; none if there is no record."""
        names: Sequence[str] = self._remembered("names", key, lambda _: self._read_names(key))
        return names

    def _read_names(self, key: str) -> Sequence[str]:
        found = self.store.outline(self.specs[key]) if key in self.up_to_date else self.record(key)
        return tuple(found.paths()) if found else ()

    def _remembered(self, kind: str, key: str, read: Callable[[Any], Any]) -> Any:
        """Return what is read of a record, from the environment if the files are the same as then."""
        kept, seal = self.kept.setdefault(kind, {}), self.seal(key)
        if key not in kept or kept[key][0] != seal:
            kept[key] = seal, read(self.specs[key])
        return kept[key][1]

    def seal(self, key: str) -> str:
        """A digest of what is known of the model, from the bytes of its files: nothing of them is understood.

        It is of the bytes before they are read: what another build writes meanwhile is news to the next one.
        """
        if known := self.records.get(key):
            return known.digest
        if key not in self.seals:
            self.seals[key] = self.store.files_digest(self.specs[key])
        return self.seals[key]

    def keep(self, key: str, record: Record) -> None:
        """Put a record into the store; where that is not possible it is good for this run."""
        self.store.put_record(self.specs[key], record)
        if self.store.complaints or not self.store.writable:
            self.records[key] = record
        self._stored.cache_clear()
        self._pictured.cache_clear()
        self.seals.pop(key, None)

    def keep_drawing(self, key: str, dot: str, layouts: dict[str, Any], engine: str) -> None:
        """Likewise for a model's layouts."""
        self.store.put_drawing(self.specs[key], dot, layouts, engine)
        if self.store.complaints or not self.store.keeps_drawings:
            self.layouts[key] = layouts
        self.seals.pop(key, None)

    def jobs(self, key: str, *looks: ViewOptions) -> list[Job]:
        """The pictures of a model, with the layouts there are; none where there is no graph."""
        return [job for look in looks if (job := self._pictured(key, look))]

    def draws(self, key: str, look: ViewOptions) -> bool:
        """Return whether there is a picture of a model."""
        if key in self.up_to_date:
            return any(job.complete() for job in self.jobs(key, look))
        return (key, look) in self.drawn

    def is_incomplete(self, key: str, look: Mapping[str, Any] | None) -> bool:
        """Return whether the store lacks a part of what a place shows, so that its page is written in each build."""
        if key in self.records or key in self.layouts:
            return True
        if look is None or key in self.up_to_date or (key, look_of(look)) in self.drawn:
            return False
        return bool(self.jobs(key, look_of(look)))

    def is_true(self, kind: str, expression: str) -> bool:
        """Return whether an ``only`` or ``ifconfig`` directive shows its content in this build."""
        try:
            if kind == "only":
                return sphinx_private.holds(self.builder, expression)
            names = {value.name: value.value for value in self.builder.config} | {"builder": self.builder.name}
            return bool(eval(expression, names))  # noqa: S307 - as sphinx.ext.ifconfig does with the same text
        except Exception:  # noqa: BLE001 - Sphinx warns of what is wrong
            return True

    def dot_name(self, key: str) -> str:
        """Return the path of a model's DOT file below the folder of downloads."""
        return f"fxgraph/{file_stem(self.specs[key].label)}-{key[:8]}.dot"

    def look(self, key: str, look: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options of a drawing; those of a difference depend on what differs."""
        compared = self.compared.get(key)
        return compared.look(look) if compared else look

    def _job(self, key: str, look: ViewOptions) -> Job | None:
        record = self.record(key)
        if record is None or not record.root:
            return None
        from sphinx_fxgraph.render.drawing import Job  # where nothing is drawn, nothing needs it

        known = self.layouts.get(key)
        layouts = self.store.layouts(self.specs[key]) if known is None else known
        if self.builder.format == "latex" or self.builder.name == "epub":
            job = Job(record, look, layouts, inside=True, paper=True)
            if self.config.mode != "cached" or job.complete():
                return job  # a committed cache may have the layouts of the pages alone
        return Job(record, look, layouts, inside=True)

    def missing(self, key: str, reason: str) -> None:
        """Say on the page that there is no record, and why."""
        from sphinx_fxgraph.record.model import Record

        failure = Failure(stage="cache", type="", message=reason)
        self.records[key] = Record(spec=self.specs[key].to_dict(), tracer="", failure=failure)


def look_of(options: Mapping[str, Any]) -> ViewOptions:
    """The look that a directive's options ask for."""
    return ViewOptions(**options)
