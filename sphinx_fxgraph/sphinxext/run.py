"""What one run of a builder has at hand: its settings, the records and layouts, and which pages showed what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx_fxgraph.drawing.compose import Job
from sphinx_fxgraph.drawing.seen.shown import Look
from sphinx_fxgraph.record import Failure, Record
from sphinx_fxgraph.sphinxext.compared import Compared, Shown
from sphinx_fxgraph.store import Store

if TYPE_CHECKING:
    from sphinx.builders import Builder

    from sphinx_fxgraph.sphinxext.config import Config


@dataclass
class Run:
    """The state of one run of a builder; nothing of it is kept with the environment."""

    builder: Builder
    config: Config
    store: Store
    specs: dict[str, Shown] = field(default_factory=dict)
    """All that are shown or compared, by id."""
    compared: dict[str, Compared] = field(default_factory=dict)
    """The comparisons that have been made, by id."""
    records: dict[str, Record] = field(default_factory=dict)
    """By spec id: what this run knows and the store does not keep, such as failures that are tried again."""
    layouts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Likewise: layouts that the engine complained of, or that may not be written."""
    drawn: dict[tuple[str, Look], str] = field(default_factory=dict)
    """What has a picture, by spec id and look, and a digest of its layout."""
    troubles: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By spec id: subtype and text of a warning about a record that is shown all the same."""
    digests: dict[str, str] = field(default_factory=dict)
    """Of each page: what it would show now."""
    zoos: dict[str, list[Any]] = field(default_factory=dict)
    """The pages of each zoo (`zoo.Page`)."""
    written: dict[str, str] = field(default_factory=dict)
    """Of the pages written in this run: what they were made from."""

    @property
    def shows(self) -> bool:
        """Whether graphs are shown at all: gettext, linkcheck, coverage, doctest and the like have no output format."""
        return bool(self.builder.format) and self.config.mode != "off"

    @property
    def notes(self) -> Path:
        """Where the output remembers what its pages were made from; html and dirhtml share an environment, not this."""
        return Path(self.builder.outdir, ".fxgraph.json")

    def record(self, key: str) -> Record | None:
        """What is known of the model with this spec id, if anything is."""
        return self.records.get(key) or self.store.record(self.specs[key])

    def keep(self, key: str, record: Record) -> None:
        """Put a record into the store; where that is not possible it is good for this run."""
        self.store.put_record(self.specs[key], record)
        if self.store.complaints or not self.store.writable:
            self.records[key] = record

    def jobs(self, key: str, *looks: Look) -> list[Job]:
        """The pictures of a model, with the layouts there are; none where there is no graph."""
        record = self.record(key)
        if record is None or not record.root:
            return []
        known = self.layouts.get(key)
        layouts = self.store.layouts(self.specs[key]) if known is None else known
        return [Job(record, look, layouts, inside=True) for look in looks]

    def missing(self, key: str, reason: str) -> None:
        """Say on the page that there is no record, and why."""
        failure = Failure(stage="cache", type="", message=reason)
        self.records[key] = Record(spec=self.specs[key].to_dict(), tracer="", failure=failure)


def look_of(options: Mapping[str, Any]) -> Look:
    """The look that a directive's options ask for."""
    return Look(**options)
