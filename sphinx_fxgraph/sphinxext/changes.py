"""Which pages would look different from what was last written.

Sphinx knows when a page's source has changed; that a model has, only we know. What a page was made from is noted beside
the output and not in the environment, since several outputs share that.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import sphinx_fxgraph
from sphinx_fxgraph.sphinxext.domain import FxDomain, Use, fx_domain
from sphinx_fxgraph.sphinxext.run import Run, look_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def changed(domain: FxDomain) -> list[str]:
    """The pages to write, because what they show is not what they were last made from."""
    run = domain.run
    run.digests = {docname: _digest(run, domain.uses[docname]) for docname in sorted(domain.uses)}
    before = _read(run)
    return [docname for docname, now in run.digests.items() if before.get(docname) != now]


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Note what the pages that were written were made from."""
    domain = fx_domain(app.env)
    run = domain.run
    if app.builder.name == "epub":  # it warns of a file it cannot pack; its pages are written each time
        return
    before = _read(run)
    now = {docname: digest for docname, digest in (before | run.written).items() if docname in domain.uses}
    if exception is None and now != before:
        temporary = run.notes.with_name(f"{run.notes.name}.{os.getpid()}")
        temporary.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        temporary.replace(run.notes)


def _digest(run: Run, uses: list[Use]) -> str:
    parts: list[Any] = [sphinx_fxgraph.__version__, run.config.mode == "off"]
    for use in uses if run.shows else ():
        record = run.record(use.spec_id)
        layout = run.drawn.get((use.spec_id, look_of(use.look)), "")
        parts.append([use.spec_id, record.digest if record else "", layout])
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _read(run: Run) -> dict[str, str]:
    try:
        found = json.loads(run.notes.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
