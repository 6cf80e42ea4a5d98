"""Between reading and writing: capture what is missing, draw it, and tell what went wrong.

This is the only place where a build waits for other processes. When nothing has changed it starts none.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sphinx.errors import ConfigError
from sphinx.locale import get_translation
from sphinx.util import logging
from sphinx.util.display import progress_message, status_iterator

import sphinx_fxgraph
from sphinx_fxgraph.cache.fingerprints import SourceFinder
from sphinx_fxgraph.cache.store import Store
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.sphinxext import graph, messages, outdated, sphinx_private
from sphinx_fxgraph.sphinxext.config import Config
from sphinx_fxgraph.sphinxext.domain import ModelUse, fx_domain
from sphinx_fxgraph.sphinxext.messages import warn
from sphinx_fxgraph.sphinxext.state import RECENT, Run, look_of
from sphinx_fxgraph.words import use_catalogue

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

    from sphinx_fxgraph.layout.graphviz import Engine
    from sphinx_fxgraph.options import ViewOptions
    from sphinx_fxgraph.record.model import Record
    from sphinx_fxgraph.render.drawing import Job


logger = logging.getLogger(__name__)


def begin(app: Sphinx) -> None:
    """Read the settings and open the cache for the builder; warn of names that this Sphinx lacks."""
    for sentence in sphinx_private.missing(app):
        warn(sentence, "sphinx")
    config = Config.of(app.config)
    folder = Path(app.confdir, config.cache_dir) if config.cache_dir else Path(app.doctreedir, "fxgraph")
    drawings = Path(app.doctreedir, "fxgraph") if config.commit == "records" else None
    use_catalogue(get_translation("sphinx_fxgraph"))
    store = Store(folder, config.mode not in ("cached", "off"), None if drawings == folder else drawings)
    domain = fx_domain(app.env)
    mocked = tuple(getattr(app.config, "autodoc_mock_imports", ()))
    domain.run = Run(app.builder, config, store, mocked, domain.data["kept"])


def update(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Capture and draw what the pages need, and return the pages that would now look different."""
    domain = fx_domain(env)
    run = domain.run
    uses = list(domain.all_uses())
    run.specs = {use.spec_id: use.spec for use in uses}
    for name, use, first in domain.duplicates() if run.builder.format else ():
        warn(
            f"the graph name {name!r} is used twice; the other graph of this name is at {first}", "option", use.location
        )
    if run.shows:
        run.up_to_date = outdated.up_to_date(domain)
        complete(app, run, uses)
    changed = outdated.changed(domain) if run.builder.format else []
    run.objects.clear()
    if run.shows and run.builder.format == "html":  # before the environment is pickled
        for _, use in domain.named().values():
            run.names(use.spec_id)
    return changed


def complete(app: Sphinx, run: Run, uses: Sequence[ModelUse]) -> None:
    """Make what some uses need: capture, draw, and tell what went wrong."""
    reasons = stale(run, dict.fromkeys(use.spec_id for use in uses))
    if why := cannot(run.config, run.mocked):
        _leave(run, reasons, why)
    else:
        _capture(app, run, list(reasons))
    _draw(run, [*uses, *compared(app, run)])
    for message, subtype, location in wrong(run, uses):
        warn(message, subtype, location)


def compared(app: Sphinx, run: Run) -> Sequence[ModelUse]:
    """The drawings of differences, which are known when both models are."""
    domain = fx_domain(app.env)
    if not domain.differences:
        return ()
    from sphinx_fxgraph.sphinxext import diff

    return diff.made(run, domain, app.confdir)


# -- capture


class Stale(NamedTuple):
    """Why a record is to be captured again."""

    reason: str
    releases: tuple[str, ...] = ()
    """The releases that have moved, if nothing else has changed."""


def stale(run: Run, keys: Iterable[str]) -> dict[str, Stale]:
    """Return the specs that must be captured, by id, with the reason."""
    finder = SourceFinder(ignored=run.config.ignore_packages)
    reasons = {}
    for key in keys:
        record = run.head(key)
        if record is None:
            reasons[key] = Stale("it was never captured")
        elif run.config.mode == "force":
            reasons[key] = Stale("it is forced")
        elif changed := finder.stale_reasons(record):
            releases = finder.moved_releases(record)
            reasons[key] = Stale(", ".join(changed), releases if releases == changed else ())
        elif record.failure and record.failure.transient:
            reasons[key] = Stale(record.failure.message)
    return reasons


def cannot(config: Config, mocked: Sequence[str] = ()) -> str:
    """Return why nothing is captured; empty if models can be captured.

    Args:
        config: the settings of the build.
        mocked: the modules that autodoc replaces. A build that does without torch does not capture either.
    """
    if config.mode == "cached":
        return 'fxgraph_mode is "cached"'
    if config.mode == "auto" and not (config.python or config.executor):
        if "torch" in mocked:
            return "torch is in autodoc_mock_imports"
        with contextlib.suppress(ValueError):  # something else calls itself torch
            if importlib.util.find_spec("torch") is None:
                return "torch is not installed here (pip install 'sphinx-fxgraph[torch]')"
    return ""


def _leave(run: Run, reasons: dict[str, Stale], why: str) -> None:
    """Show what there is."""
    for key, (reason, releases) in reasons.items():
        if run.head(key) is None:
            run.missing(key, why)
        elif not releases:
            run.problems[key] = "cache", f"shown as it was captured before: {reason}"
    if told := other_releases(reasons.values()):
        logger.info("%s, since %s", told, why)


def other_releases(reasons: Iterable[Stale]) -> str:
    """Return a line on records of which only the releases of packages have moved; empty if there are none.

    Whether a release changes an architecture is known when it is captured. Where that is not possible this is no
    reason to warn.
    """
    moved = [stale.releases for stale in reasons if stale.releases]
    if not moved:
        return ""
    packages = ", ".join(sorted({release for releases in moved for release in releases}))
    return f"{len(moved)} graph{'s are' if len(moved) > 1 else ' is'} shown as captured before ({packages})"


def captured(app: Sphinx, run: Run, keys: Sequence[str]) -> Iterator[tuple[GraphSpec, Record]]:
    """Capture in other processes, and give each record as soon as it is there."""
    if not keys:
        return
    # A build that captures nothing is to be as quick as one without us: these take a quarter of our time.
    from sphinx_fxgraph.worker import pool
    from sphinx_fxgraph.worker.pool import ExecutorError, find_executor

    try:
        records = pool.capture(
            [spec for key in keys if isinstance(spec := run.specs[key], GraphSpec)],
            python=run.config.python,
            sys_path=list(sys.path),
            confdir=str(app.confdir),
            workers=run.config.workers,
            timeout=run.config.timeout,
            executor=find_executor(run.config.executor) if run.config.executor else None,
        )
        with contextlib.closing(records):
            yield from status_iterator(
                records,
                "capturing graphs... ",
                "darkgreen",
                len(keys),
                app.verbosity,
                lambda done: done[0].target or done[0].label,
            )
    except ExecutorError as error:
        raise ConfigError(f"fxgraph_executor: {error}") from error


def _capture(app: Sphinx, run: Run, keys: Sequence[str]) -> None:
    """Capture, and keep each record as soon as it is there."""
    run.up_to_date -= frozenset(keys)
    for spec, record in captured(app, run, keys):
        old = run.record(spec.id)
        if not (record.failure and record.failure.transient):
            run.keep(spec.id, record)
        elif old is not None and old.root:
            # It says more of this machine (no torch, no time, no network) than of the model, so it replaces nothing.
            reason = messages.sentence(record.failure)
            run.problems[spec.id] = "cache", f"shown as it was captured before. {reason}"
        else:
            run.records[spec.id] = record


# -- draw


def looks(run: Run, uses: Iterable[ModelUse]) -> dict[str, list[ViewOptions]]:
    """Return what some uses show, by spec id: each look once. What is up to date has its pictures."""
    found: dict[str, dict[ViewOptions, None]] = {}
    for use in uses:
        if use.spec_id in run.up_to_date:
            continue
        wanted = found.setdefault(use.spec_id, {})
        if use.look is not None:
            wanted[look_of(use.look)] = None
    return {key: list(wanted) for key, wanted in found.items()}


def _draw(run: Run, uses: Sequence[ModelUse]) -> None:
    """Lay out what is not laid out, a batch of models at a time, and note what can be drawn."""
    places: dict[str, str | None] = {}
    for use in uses:
        places.setdefault(use.spec_id, use.location)
    wanted = looks(run, uses)
    keys = list(wanted)
    has_engine = True
    for start in range(0, len(keys), RECENT):
        shown = {key: run.jobs(key, *wanted[key]) for key in keys[start : start + RECENT]}
        undrawn = {key: jobs for key, jobs in shown.items() if not all(job.complete() for job in jobs)}
        if undrawn and has_engine:
            has_engine = _lay_out(run, undrawn, places)
        for key, jobs in shown.items():
            if reason := next((job.too_large for job in jobs if job.too_large), ""):
                warn(f"{run.specs[key].label}: {reason}", "layout", places[key])
            for job in jobs:
                if job.complete():
                    layout = json.dumps(job.used(), sort_keys=True)
                    run.drawn[key, job.look] = hashlib.sha256(layout.encode()).hexdigest()


def _lay_out(run: Run, pictures: dict[str, list[Job]], places: Mapping[str, str | None]) -> bool:
    """Make the missing layouts and put them into the store; warn of what the engine complained of.

    Args:
        run: the state of the build.
        pictures: what is not laid out, by spec id.
        places: where each model is shown first.

    Returns:
        Whether there is a layout engine.
    """
    from sphinx_fxgraph.layout.graphviz import EngineMissingError, find_engine
    from sphinx_fxgraph.render import drawing

    try:
        engine = find_engine(run.config.dot)
        with progress_message(f"laying out {len(pictures)} graphs"):
            drawing.lay_out([job for jobs in pictures.values() for job in jobs], engine)
    except EngineMissingError as error:
        warn(str(error), "layout")
        return False
    said = {key: dict.fromkeys(text for job in jobs for text in job.complaints) for key, jobs in pictures.items()}
    complaints = {key: "\n".join(texts) for key, texts in said.items() if texts}
    _keep(run, engine, pictures, complaints)
    for key, complaint in complaints.items():
        warn(f"{run.specs[key].label}: Graphviz says: {complaint}", "layout", places[key])
    return True


def _keep(run: Run, engine: Engine, pictures: dict[str, list[Job]], complaints: dict[str, str]) -> None:
    """Put layouts into the store. What the engine complained of is laid out, and told, again in every build."""
    for key, jobs in pictures.items():
        layouts = {digest: found for job in jobs for digest, found in job.used().items()}
        if key in complaints:
            run.layouts[key] = layouts
        else:
            run.keep_drawing(key, "".join(dict.fromkeys(job.dot() for job in jobs)), layouts, engine.version)


# -- tell


def wrong(run: Run, uses: Sequence[ModelUse]) -> Iterator[tuple[str, str, str | None]]:
    """Yield the warnings: message, subtype and place, for each place that shows a model which failed.

    Failures are told again in every build.
    """
    for use in uses:
        key = use.spec_id
        record = run.head(key)
        name = use.spec.target or use.spec.label
        if key in run.problems:
            subtype, message = run.problems[key]
            yield f"{name}: {message}", subtype, use.location
        failed = record.failure if record else None
        if failed and (use.expect != "error" or failed.stage == "cache"):
            mock = _mock(run, failed.missing)
            yield f"{name}: {messages.sentence(failed)}{mock}", "mock" if mock else failed.stage, use.location
        elif use.expect == "error" and not failed:
            yield f"{name}: it was expected to fail, but its graph was captured", "expect", use.location
        if not failed and use.look and ("open" in use.look or "dims" in use.look) and (captured := run.record(key)):
            from sphinx_fxgraph.view.simplify import unused_options

            for complaint in unused_options(captured, look_of(use.look)):
                yield f"{name}: {complaint}", "option", use.location
        if failed or use.expect == "error":
            continue
        if (use.expectations or run.config.require_verdict) and (captured := run.record(key)):
            for complaint in graph.broken(captured, use.expectations, run.config.units):
                yield f"{name}: {complaint}", "expect", use.location
            if run.config.require_verdict:
                from sphinx_fxgraph.record.metrics import not_counted
                from sphinx_fxgraph.render import summary

                if captured.verdict and captured.verdict.kind != "same":
                    yield f"{name}: {summary.holds_for(captured.verdict)}", "verdict", use.location
                left_out = not_counted(captured.totals.uncounted)
                for remark in (*summary.remarks(captured), *filter(None, [left_out])):
                    yield f"{name}: {remark}", "verdict", use.location
    for complaint in run.store.complaints:
        yield complaint, "cache", None


def _mock(run: Run, missing: str) -> str:
    """Return the hint for a missing module that autodoc mocks."""
    mocked = next((name for name in run.mocked if missing == name or missing.startswith(f"{name}.")), "")
    told = f"; autodoc has a mock of {mocked} (autodoc_mock_imports), a capture needs the real one or a committed cache"
    return told if mocked else ""


def setup(app: Sphinx) -> None:
    """Take part in each build."""
    app.add_message_catalog("sphinx_fxgraph", str(Path(sphinx_fxgraph.__file__).parent / "locale"))
    app.connect("builder-inited", begin)
    app.connect("env-updated", update)
    app.connect("build-finished", outdated.finish)
