"""Write a self-contained HTML page: drawing, facts, stages, node table, and the viewer's script and style."""

from __future__ import annotations

import functools
from pathlib import Path
from string import Template

from sphinx_fxgraph.options import COLUMNS
from sphinx_fxgraph.record.conventions import macs_text
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import document, legend, summary
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.tables.data import node_data
from sphinx_fxgraph.tables.html import html_table, node_table
from sphinx_fxgraph.tables.rows import node_rows
from sphinx_fxgraph.tables.stages import stages
from sphinx_fxgraph.text.escape import json_block, xml
from sphinx_fxgraph.text.ids import ids, nearest
from sphinx_fxgraph.text.units import PLAIN

_STATIC = Path(__file__).parents[1] / "static"
_FIGURE = "fx"
_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { background: #fff; color: #1c2430; font: 15px/1.5 system-ui, sans-serif; margin: 1.5em auto; max-width: 1400px;
  padding: 0 1em }
h1 { font-size: 1.3em } table { border-collapse: collapse } td, th { padding: 2px 8px; text-align: start }
tbody tr:nth-child(odd) { background: #8881 } .fxg-tables a { color: inherit }
@media (prefers-color-scheme: dark) { body { background: #14181f; color: #e6eaf0 } }
$style</style></head>
<body><h1>$title</h1>
<figure class="fxgraph" id="$figure">
<div class="fxg-graph" data-figure="$figure" data-model="$title" data-tracer="$tracer" data-verdict="$verdict">
<div class="fxg-view">$drawing</div>$data$legend</div>
<p class="fxg-facts">$facts</p></figure>
<div class="fxg-tables" data-figure="$figure" data-prefix="$figure">
<details><summary>Stages</summary>
$stages</details>
<details class="fxg-node-rows"><summary>Node table ($rows rows)</summary>
<noscript>$nodes</noscript></details>
</div>
<script>$nodes_script</script>
<script>$script</script></body></html>
""")


def page(job: compose.Job, title: str) -> str:
    """Return the page of a picture that is laid out.

    Args:
        job: with the insides of closed modules, if they should open.
        title: of the page.

    Raises:
        ValueError: the job is not laid out yet.
    """
    record = job.record
    picture = compose.scene(job)
    drawing = document.page_svg(picture, figure=_FIGURE, title=title, description=summary.describe(record), rows=True)
    insides = compose.insides(job)
    found = {name: document.inside_svg(inside, figure=_FIGURE, rows=True) for name, inside in insides.items()}
    groups = node_rows(record)
    near = functools.partial(nearest, prefix=_FIGURE, drawn=ids(drawing), figure=_FIGURE)
    return _PAGE.substitute(
        title=xml(title),
        style=(_STATIC / "fxgraph.css").read_text(encoding="utf-8"),
        figure=_FIGURE,
        tracer=xml(record.tracer),
        verdict=xml(record.verdict.kind if record.verdict else ""),
        drawing=drawing,
        data=_block("insides", found) + _block("nodes", node_data(record, PLAIN, columns=COLUMNS)),
        legend=legend.html_list(picture, (inside.picture for inside in insides.values())),
        facts=xml(" · ".join([*summary.facts(record, left_out=job.left_out), *filter(None, [compose.remark(job)])])),
        stages=_stages(record),
        rows=sum(len(group.rows) for group in groups),
        nodes=node_table(groups, COLUMNS, PLAIN, prefix=_FIGURE, drawn=near),
        nodes_script=(_STATIC / "fxgraph-nodes.js").read_text(encoding="utf-8"),
        script=(_STATIC / "fxgraph.js").read_text(encoding="utf-8"),
    )


def _block(name: str, value: object) -> str:
    return f'<script type="application/json" class="fxg-{name}">{json_block(value)}</script>' if value else ""


def _stages(record: Record) -> str:
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
    cells = (("", "", [f"<td>{xml(text)}</td>" for text in row]) for row in rows)
    return "".join(html_table("fxg-stages", ("stage", "blocks", "output shape", "parameters", "MACs"), cells))
