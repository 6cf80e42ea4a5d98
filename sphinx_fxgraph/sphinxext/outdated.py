"""Which pages would look different from what was last written.

Sphinx knows when a page's source has changed; that a model has, only we know. What a page was made from is noted beside
the output and not in the environment, since several outputs share that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sphinx_fxgraph
from sphinx_fxgraph.sphinxext.domain import FxDomain, ModelUse, fx_domain

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from sphinx_fxgraph.sphinxext.state import Run


Made = Mapping[str, list[tuple[str, ModelUse]]]
"""Docnames and graphs by the dotted name of a class or function."""

_INCOMPLETE = "-"
"""Ends the digest of a page that shows what is not in the store, and is therefore made again in every build."""


def up_to_date(domain: FxDomain) -> frozenset[str]:
    """The specs that only pages show which would say the same again, by the files that they were written from."""
    run = domain.run
    before, seals, made = _read(run), {key: run.seal(key) for key in run.specs}, domain.graphs_of()
    shown: set[str] = set()
    others: set[str] = set()
    for docname in domain.uses:
        same = docname not in domain.differences and before.get(docname) == _digest(domain, docname, seals, made)
        (shown if same else others).update(use.spec_id for use in domain.uses[docname])
    return frozenset(shown - others)


def changed(domain: FxDomain) -> list[str]:
    """The pages to write, because what they show is not what they were last made from."""
    run = domain.run
    seals, made = {key: run.seal(key) for key in run.specs if run.shows}, domain.graphs_of()
    for docname in domain.docnames:
        is_incomplete = run.shows and any(
            run.is_incomplete(use.spec_id, use.look) for use in domain.uses.get(docname, ())
        )
        run.digests[docname] = _digest(domain, docname, seals, made) + _INCOMPLETE * is_incomplete
    before, lost = _read(run), _lost_files(run)
    return [
        docname
        for docname, now in run.digests.items()
        if before.get(docname) != now or any(_owns(run, use, lost) for use in domain.uses.get(docname, ()) if lost)
    ]


def _lost_files(run: Run) -> frozenset[str]:
    """Return the files beside the pages, such as downloads, that an earlier build wrote and that are gone."""
    before = _notes(run).get("files", ())
    return frozenset(map(str, before)) - _files(run) if isinstance(before, list) else frozenset()


def _files(run: Run) -> frozenset[str]:
    """Return the files beside the pages that are in the output, as paths relative to it."""
    found = set()
    for folder in ("_downloads/fxgraph", "_static/fxgraph"):
        with contextlib.suppress(OSError):
            found |= {f"{folder}/{file.name}" for file in Path(run.builder.outdir, folder).iterdir()}
    return frozenset(found)


def _owns(run: Run, use: ModelUse, files: Collection[str]) -> bool:
    """Return whether any of the files belongs to a use: it is named after the figure, or after the model."""
    download = f"_downloads/{run.dot_name(use.spec_id)}"
    return download in files or any(file.startswith(f"_static/fxgraph/{use.figure}-") for file in files)


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Note what the pages that were written were made from."""
    domain = fx_domain(app.env)
    run = domain.run
    if app.builder.name == "epub":  # it warns of a file it cannot pack; its pages are written each time
        return
    before = _read(run)
    there = set(domain.docnames)
    now = {docname: digest for docname, digest in (before | run.written).items() if docname in there}
    notes = {"files": sorted(_files(run)), "pages": now}
    if exception is None and notes != _notes(run) and (now or before):
        temporary = run.notes.with_name(f"{run.notes.name}.{os.getpid()}")
        temporary.write_text(json.dumps(notes, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        temporary.replace(run.notes)


def _digest(domain: FxDomain, docname: str, seals: Mapping[str, str], made: Made) -> str:
    """Return a digest of what a page shows.

    Args:
        domain: what it shows, and tells of.
        docname: the page.
        seals: of what is in the store, by spec id.
        made: the graphs by the class or function that makes the model.
    """
    run = domain.run
    config = run.config
    parts: list[Any] = [
        sphinx_fxgraph.__version__,
        config.mode == "off",
        config.color,
        dataclasses.astuple(config.units),
    ]
    if run.shows:
        parts += [[use.spec_id, seals[use.spec_id], use.look] for use in domain.uses.get(docname, ())]
        parts += _compared(domain, docname)
    for pattern in sorted(set(domain.mentions.get(docname, ()))):
        found = domain.named(pattern).items()
        parts.append([pattern, *([name, page, use.figure, seals.get(use.spec_id, "")] for name, (page, use) in found)])
    if described := domain.documented.get(docname):
        parts += [[name, page, use.figure, use.title] for name in described for page, use in made.get(name, ())]
    if docname in domain.reports:
        for page in sorted(domain.uses):
            parts += [[page, use.name, use.figure, use.expect, seals.get(use.spec_id, "")] for use in domain.uses[page]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _compared(domain: FxDomain, docname: str) -> list[list[str]]:
    """Return digests of the differences on a page."""
    if docname not in domain.differences:
        return []
    from sphinx_fxgraph.sphinxext import diff

    return [diff.shown(domain.run, asked) for asked in domain.differences[docname]]


def _read(run: Run) -> dict[str, str]:
    """Return the digest of each page as it was last written."""
    pages = _notes(run).get("pages")
    return pages if isinstance(pages, dict) else {}


def _notes(run: Run) -> dict[str, Any]:
    try:
        found = json.loads(run.notes.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
