"""One self-contained HTML page: drawing, facts, stages and node table, with the viewer's script and style in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from sphinx_fxgraph.drawing import compose
from sphinx_fxgraph.drawing.svg import legend, svg
from sphinx_fxgraph.drawing.svg.svg import anchor
from sphinx_fxgraph.drawing.text import text
from sphinx_fxgraph.drawing.text.stages import stages
from sphinx_fxgraph.drawing.text.units import PLAIN
from sphinx_fxgraph.record import Record

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
    drawing = svg.page_svg(picture, figure=_FIGURE, title=title, description=text.describe(record), rows=True)
    insides = compose.insides(job)
    verdict = record.verdict.kind if record.verdict else ""
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<style>{_STYLE}{style}</style></head>\n<body><h1>{escape(title)}</h1>\n"
    yield f'<figure class="fxgraph" id="{_FIGURE}"><div class="fxg-graph" data-figure="{_FIGURE}"'
    yield f' data-model="{escape(title)}" data-tracer="{escape(record.tracer)}" data-verdict="{escape(verdict)}">'
    yield f'<div class="fxg-view">{drawing}</div>{_data(insides)}'
    yield f"{legend.html_list(picture, (inside.picture for inside in insides.values()))}</div>\n"
    facts = [*text.facts(record), *filter(None, [compose.remark(job)])]
    yield f'<p class="fxg-facts">{escape(" · ".join(facts))}</p></figure>\n'
    yield f'<div class="fxg-tables" data-figure="{_FIGURE}">'
    yield from _stages(record)
    yield from _nodes(record)
    yield f"</div>\n<script>{script}</script></body></html>\n"


def _data(insides: Mapping[str, compose.Inside]) -> str:
    found = {name: svg.inside_svg(inside, figure=_FIGURE, rows=True) for name, inside in insides.items()}
    content = json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return f'<script type="application/json" class="fxg-insides">{content}</script>' if found else ""


def _stages(record: Record) -> Iterator[str]:
    rows = [
        (stage.name, stage.made_of, stage.output, f"{stage.parameters:,}", f"{stage.macs:,}" if stage.macs else "")
        for stage in stages(record)
    ]
    heads = ("stage", "blocks", "output shape", "parameters", "MACs")
    yield from _table(f"Stages ({len(rows)} rows)", "fxg-stages", heads, (("", map(escape, row)) for row in rows))


def _nodes(record: Record) -> Iterator[str]:
    heads = ("name", "op", "target", "arguments", "input shape", "output shape", "dtype", "parameters", "MACs")
    rows: list[tuple[str, list[str]]] = []
    for group in text.node_rows(record):
        for row in group.rows:
            counts = (row.parameters, row.macs)
            cells = (row.op, row.target, row.arguments, row.input_shape, row.output_shape, row.dtype)
            link = f'<a href="#{anchor(_FIGURE, row.path)}">{escape(row.path)}</a>'
            numbers = ("" if number is None else PLAIN.count(number) for number in counts)
            rows.append((anchor(f"{_FIGURE}-row", row.path), [link, *map(escape, cells), *numbers]))
    yield from _table(f"Node table ({len(rows)} rows)", "fxg-nodes", heads, rows)


def _table(title: str, kind: str, heads: Sequence[str], rows: Iterable[tuple[str, Iterable[str]]]) -> Iterator[str]:
    """A table that opens on a click: its rows have an id and cells of HTML."""
    yield f'<details><summary>{title}</summary><table class="{kind}"><thead><tr>'
    yield "".join(f"<th>{head}</th>" for head in heads) + "</tr></thead><tbody>\n"
    for name, cells in rows:
        own = f' id="{name}"' if name else ""
        yield f"<tr{own}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n"
    yield "</tbody></table></details>\n"
