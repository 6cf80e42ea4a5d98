"""The builders that write no page: ``fxgraph-warm`` fills the cache, ``fxgraph-check`` compares it with today."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.builders import Builder
from sphinx.errors import ConfigError
from sphinx.util import logging

from sphinx_fxgraph.sphinxext import capture
from sphinx_fxgraph.sphinxext.domain import ModelUse, fx_domain
from sphinx_fxgraph.sphinxext.messages import sentence, warn

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

    from sphinx_fxgraph.record.model import Record
    from sphinx_fxgraph.sphinxext.diff import Shown
    from sphinx_fxgraph.sphinxext.state import Run


logger = logging.getLogger(__name__)

_MOST_NAMES = 3
_MOST_LINES = 40
"""Of one difference; ``sphinx-fxgraph diff`` tells all."""


class _CacheBuilder(Builder):
    """Reads the docs and goes through the models that they show. Its mode is its own: what it is for it does."""

    format = ""
    epilog = ""
    allow_parallel = True

    def __init__(self, app: Sphinx, env: BuildEnvironment) -> None:
        super().__init__(app, env)
        self._application = app

    def get_outdated_docs(self) -> Iterable[str]:
        """No page is written, so none is outdated."""
        return ()

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:  # noqa: ARG002 - as Sphinx calls it
        """No page is written, so none has an address."""
        return ""

    def prepare_writing(self, docnames: Iterable[str]) -> None:
        """Nothing is."""

    def write_doc(self, docname: str, doctree: object) -> None:
        """Nothing is."""

    def write(self, *_: object, **__: object) -> None:  # type: ignore[misc] # final for builders of pages
        """Instead of writing pages: work with the cache. All pages are read, and all models are known."""
        domain = fx_domain(self.env)
        run = domain.run
        try:
            self.check_folder()
            _shard((), run.config.shard)
        except ConfigError as error:  # told in words; Sphinx would print a traceback and ask for a report
            logger.error("%s", error)
            self._application.statuscode = 2
            return
        if run.config.mode in ("cached", "off"):
            run.config = dataclasses.replace(run.config, mode="auto")
        done = self.work(self._application, run, list(domain.all_uses()))
        if not (self.added(run) and done):
            self._application.statuscode = 1

    def added(self, run: Run) -> bool:
        """Return whether all of the cache is in git, or will be with the next commit.

        Told only where that is asked for.
        """
        from sphinx_fxgraph.cache import store

        paths = store.untracked(run.store.used_files(run.specs.values())) if self.tags.has("fxgraph_git") else []
        for path in paths:
            print(f"{path.name}: not added to git")
        if paths:
            print(f"to add them: git add {_near(run.store.folder)}")
        return not paths

    def check_folder(self) -> None:
        """See to it that there is a folder that stays.

        Raises:
            ConfigError: there is none.
        """
        if not self.config.fxgraph_cache_dir and self.tags.has("fxgraph_temporary"):
            raise ConfigError(
                "set fxgraph_cache_dir in conf.py to the folder of the cache, or name that of the doctrees with -d"
            )

    def work(self, app: Sphinx, run: Run, uses: Sequence[ModelUse]) -> bool:
        """Do what the builder is for; whether all is well."""
        raise NotImplementedError


class WarmBuilder(_CacheBuilder):
    """Captures and lays out what the pages need."""

    name = "fxgraph-warm"

    def work(self, app: Sphinx, run: Run, uses: Sequence[ModelUse]) -> bool:
        """Fill the cache."""
        run.store.writable = True
        mine = set(_shard(sorted({use.spec_id for use in uses}), run.config.shard))
        uses = [use for use in uses if use.spec_id in mine]
        capture.complete(app, run, uses)
        if run.config.prune:
            for path in run.store.prune(run.specs.values()):
                print(f"removed {path.name}, which no page uses")
        failed = {use.spec_id for use in uses if use.expect != "error" and _failed(run.record(use.spec_id))}
        failed |= mine & run.problems.keys()  # an old record is there, but no new one
        told = f"; {len(failed)} could not be captured, as the warnings say" if failed else ""
        if failed and (why := capture.cannot(run.config, run.mocked)):
            print(f"nothing is captured here, since {why}")
        print(f"{len(mine) - len(failed)} of {len(mine)} graphs are in {_near(run.store.folder)}{told}")
        self._tell_ignored(run)
        return not failed and not run.store.complaints

    def _tell_ignored(self, run: Run) -> None:
        """Say which rules make git ignore files of a cache that is meant to be committed."""
        from sphinx_fxgraph.cache import store

        paths = run.store.used_files(run.specs.values()) if self.config.fxgraph_cache_dir else []
        ignored = store.ignored_by_git(paths)
        if ignored:
            rules = ", ".join(dict.fromkeys(ignored.values()))
            print(f"git ignores {len(ignored)} of the {len(paths)} files there, since {rules}")
            print(f"to commit them: add the line !{_near(run.store.folder)}/* to .gitignore")


class CheckBuilder(_CacheBuilder):
    """Compares the cache with the models of today, and writes nothing."""

    name = "fxgraph-check"

    def work(self, app: Sphinx, run: Run, uses: Sequence[ModelUse]) -> bool:
        """Tell what is stale or missing, how the architecture has changed, and what a build would warn of."""
        run.store.writable = False
        run.config = dataclasses.replace(run.config, mode="auto")
        reasons = capture.stale(run, dict.fromkeys(use.spec_id for use in uses))
        shown = [*uses, *capture.compared(app, run)]
        # Where only records are kept, layouts are made in each build.
        wanted = capture.looks(run, shown) if run.store.drawings == run.store.folder else {}
        undrawn = {
            key
            for key, looks in wanted.items()
            if key not in reasons and not all(job.complete() for job in run.jobs(key, *looks))
        }
        before = {key: run.record(key) for key in reasons}
        why = capture.cannot(run.config, run.mocked) if reasons else ""
        now = {} if why else {spec.id: record for spec, record in capture.captured(app, run, list(reasons))}
        moved = {key: stale for key, stale in reasons.items() if why and stale.releases}
        equal = [key for key in reasons if _is_equal(before[key], now.get(key))]
        for key in (*moved, *equal):
            del reasons[key]
        for key, stale in reasons.items():
            told = "".join(f"\n  {line}" for line in _difference(before[key], now.get(key)))
            warn(f"{_name(run.specs[key])}: {stale.reason}{told}", "cache", _place(uses, key))
        for key in sorted(undrawn):
            warn(f"{_name(run.specs[key])}: its drawing is not in the cache", "cache", _place(shown, key))
        wrong = list(capture.wrong(run, [use for use in uses if use.spec_id not in reasons]))
        for message, subtype, location in wrong:
            warn(message, subtype, location)
        docs = _near(self.srcdir)
        if orphans := run.store.orphans(run.specs.values()):
            print(*(f"{path.name}: no page uses it" for path in orphans), sep="\n")
            print(f"to remove what no page uses: sphinx-fxgraph warm --prune {docs}")
        graphs = len({use.spec_id for use in shown})
        fresh = graphs - len(reasons) - len(undrawn)
        if told := capture.other_releases(moved.values()):
            print(f"{told}, since {why}")
        if equal:
            names = ", ".join(_name(run.specs[key]) for key in equal[:_MOST_NAMES])
            more = f" and {len(equal) - _MOST_NAMES} more" if len(equal) > _MOST_NAMES else ""
            print(f"the code has changed, the architecture has not: {names}{more}")
        if why and reasons:
            print(f"how the architectures differ is not known, since {why}")
        print(f"{fresh} of {graphs} graphs are up to date in {_near(run.store.folder)}")
        if fresh < graphs:
            print(f"to bring it up to date: sphinx-fxgraph warm {docs}, and commit that folder")
        broken = any(compared.record.failure for compared in run.compared.values())
        return fresh == graphs and not wrong and not broken


def _shard(keys: Sequence[str], text: str) -> Sequence[str]:
    """The keys of the part ``3/16``: the third of sixteen."""
    if not text:
        return keys
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise ConfigError(f"fxgraph_shard: {text!r} is no part; write 3/16 for the third of sixteen")
    return keys[int(found[1]) - 1 :: int(found[2])]


def _near(folder: str | os.PathLike[str]) -> str:
    """A folder as one would type it here."""
    path = Path(folder).absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _name(spec: Shown) -> str:
    return spec.target or spec.label


def _failed(record: Record | None) -> bool:
    return record is None or record.failure is not None


def _place(uses: Iterable[ModelUse], key: str) -> str | None:
    """Where a model is shown first."""
    return next((use.location for use in uses if use.spec_id == key), None)


def _is_equal(kept: Record | None, now: Record | None) -> bool:
    """Return whether a new capture shows what the record in the cache does."""
    if kept is None or now is None or kept.schema != now.schema:
        return False
    from sphinx_fxgraph.record.diff import compare

    if kept.failure or now.failure:
        return kept.failure == now.failure and not (now.failure and now.failure.transient)
    same = kept.verdict == now.verdict and kept.notes == now.notes and kept.totals == now.totals
    return same and not any(compare(kept, now).lines())


def _difference(kept: Record | None, now: Record | None) -> Iterator[str]:
    """How the architecture has changed, as far as both are known."""
    if now is None:
        return
    if now.failure and (kept is None or kept.failure != now.failure):
        yield f"today: {sentence(now.failure)}"
        return  # the rest of the architecture is not gone, it was not reached
    if kept is None or (now.failure and now.failure.transient):
        return
    from sphinx_fxgraph.record.diff import compare

    lines = list(compare(kept, now).lines())
    if not lines and not now.failure:
        yield "the architecture is the same"
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"… and {len(lines) - _MOST_LINES} more"


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the builders."""
    app.add_builder(WarmBuilder)
    app.add_builder(CheckBuilder)
