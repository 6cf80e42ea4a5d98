"""One self-contained HTML page: drawing, facts, stages and node table, with the viewer's script and style in it."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path

from sphinx_fxgraph.options import COLUMNS
from sphinx_fxgraph.record.conventions import macs_text
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import document, legend, summary
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.tables.html import html_table, node_table
from sphinx_fxgraph.tables.rows import node_rows
from sphinx_fxgraph.tables.stages import stages
from sphinx_fxgraph.text.ids import ids, nearest
from sphinx_fxgraph.text.units import PLAIN

_STATIC = Path(__file__).parents[1] / "static"
_FIGURE = "fx"
_STYLE = """
body { background: #fff; color: #1c2430; font: 15px/1.5 system-ui, sans-serif; margin: 1.5em auto; max-width: 1400px;
  padding: 0 1em }
h1 { font-size: 1.3em } table { border-collapse: collapse } td, th { padding: 2px 8px; text-align: start }
tbody tr:nth-child(odd) { background: #8881 } .fxg-tables a { color: inherit }
@media (prefers-color-scheme: dark) { body { background: #14181f; color: #e6eaf0 } }
"""


def page(job: compose.Job, title: str) -> str:
    """The page of a picture that is laid out.

    Args:
        job: with the insides of closed modules, if they should open.
        title: of the page.

    Raises:
        ValueError: the job is not laid out yet.
    """
    return "".join(_parts(job, title))


def _parts(job: compose.Job, title: str) -> Iterator[str]:
    record = job.record
    style = (_STATIC / "fxgraph.css").read_text(encoding="utf-8")
    script = (_STATIC / "fxgraph.js").read_text(encoding="utf-8")
    picture = compose.scene(job)
    drawing = document.page_svg(picture, figure=_FIGURE, title=title, description=summary.describe(record), rows=True)
    insides = compose.insides(job)
    verdict = record.verdict.kind if record.verdict else ""
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<style>{_STYLE}{style}</style></head>\n<body><h1>{escape(title)}</h1>\n"
    yield f'<figure class="fxgraph" id="{_FIGURE}"><div class="fxg-graph" data-figure="{_FIGURE}"'
    yield f' data-model="{escape(title)}" data-tracer="{escape(record.tracer)}" data-verdict="{escape(verdict)}">'
    yield f'<div class="fxg-view">{drawing}</div>{_data(insides)}'
    yield f"{legend.html_list(picture, (inside.picture for inside in insides.values()))}</div>\n"
    facts = [*summary.facts(record), *filter(None, [compose.remark(job)])]
    yield f'<p class="fxg-facts">{escape(" · ".join(facts))}</p></figure>\n'
    yield f'<div class="fxg-tables" data-figure="{_FIGURE}">'
    yield from _stages(record)
    yield from _nodes(record, ids(drawing))
    yield f"</div>\n<script>{script}</script></body></html>\n"


def _data(insides: Mapping[str, compose.Inside]) -> str:
    found = {name: document.inside_svg(inside, figure=_FIGURE, rows=True) for name, inside in insides.items()}
    content = json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return f'<script type="application/json" class="fxg-insides">{content}</script>' if found else ""


def _stages(record: Record) -> Iterator[str]:
    rows = [
        (
            stage.name,
            stage.made_of,
            stage.output,
            f"{stage.parameters:,}",
            macs_text(f"{stage.macs:,}" if stage.macs else None, stage.uncounted),
        )
        for stage in stages(record)
    ]
    cells = (("", "", [f"<td>{escape(text)}</td>" for text in row]) for row in rows)
    heads = ("stage", "blocks", "output shape", "parameters", "MACs")
    yield from _opening(f"Stages ({len(rows)} rows)", html_table("fxg-stages", heads, cells))


def _nodes(record: Record, drawn: frozenset[str]) -> Iterator[str]:
    groups = node_rows(record)
    rows = sum(len(group.rows) for group in groups)
    near = functools.partial(nearest, prefix=_FIGURE, drawn=drawn, figure=_FIGURE)
    table = node_table(groups, COLUMNS, PLAIN, prefix=_FIGURE, drawn=near)
    yield from _opening(f"Node table ({rows} rows)", [table])


def _opening(title: str, content: Iterable[str]) -> Iterator[str]:
    """What opens on a click."""
    yield f"<details><summary>{title}</summary>"
    yield from content
    yield "</details>\n"
