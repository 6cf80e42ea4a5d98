"""Fill the places that directives left with what was captured, before Sphinx resolves references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from msgspec import structs
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from sphinx_fxgraph.escape import anchor
from sphinx_fxgraph.options import COLUMNS
from sphinx_fxgraph.sphinxext import api_links, messages, sphinx_private, static_image
from sphinx_fxgraph.sphinxext.domain import fx_domain
from sphinx_fxgraph.sphinxext.nodes import fxgraph, fxgraph_facts, fxgraph_rows, fxgraph_tables
from sphinx_fxgraph.sphinxext.state import Run, look_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.domains import Domain
    from sphinx.environment import BuildEnvironment

    from sphinx_fxgraph.record.model import Record


def fill(document: nodes.document, env: BuildEnvironment) -> None:
    """Fill the places of one page.

    HTML gets the drawing and linked tables; every other format a picture of it or an outline, and plain tables.
    """
    run = fx_domain(env).run
    taken = {name for node in document.findall(nodes.Element) for name in node["ids"]}
    for place in list(document.findall(fxgraph)):
        place["look"] = run.look(place["spec"], place["look"])
        place["prefix"] = _prefix(run, place, taken)
        _fill_figure(env, place)
    outside: dict[nodes.Element, list[nodes.Node]] = {}
    for behind in list(document.findall(fxgraph_tables)):
        behind["look"] = run.look(behind["spec"], behind["look"])
        behind["prefix"] = _prefix(run, behind, taken)
        around = None if _is_html(run) else static_image.container(behind, run.builder.format)
        parts = _behind(run, behind)
        if around is None or static_image.is_copy(around) or not parts:
            behind.parent.replace(behind, parts)
            for table in [table for part in parts for table in part.findall(nodes.table) if around is not None]:
                static_image.flatten(table, run.builder.format)
        else:
            behind.parent.remove(behind)
            outside.setdefault(around, []).extend((_heading(run, behind), *parts))
    for around, parts in outside.items():
        around.parent.insert(around.parent.index(around) + 1, parts)


def _prefix(run: Run, place: nodes.Element, taken: set[str]) -> str:
    """Return the prefix of the ids of a figure's nodes: its own id, unless the page already has an id that starts so.

    The second figure of a model called ``net`` is ``net-2``, and so is the third layer in the first, if that is a
    `Sequential`.
    """
    from sphinx_fxgraph.record.model import join

    figure: str = place["figure"]
    near = {name for name in taken if name.startswith(f"{figure}-")}
    record = run.record(place["spec"]) if near and run.shows else None
    if record and record.root:
        return figure + "-" * any(anchor(figure, join(path, node.name)) in near for path, _, node in record.walk())
    return figure


def _fill_figure(env: BuildEnvironment, place: fxgraph) -> None:
    from sphinx_fxgraph.render import summary
    from sphinx_fxgraph.view.annotations import named

    run = fx_domain(env).run
    figure = place.parent
    assert isinstance(figure, nodes.figure)
    if not figure["ids"]:  # without a caption the place had the id, so that the figure was not counted
        figure["ids"], place["ids"] = place["ids"], []
        figure["names"], place["names"] = place["names"], []
    record = run.record(place["spec"]) if run.shows else None
    drawn = _is_drawn(run, place)
    if drawn and not _is_html(run):
        first, *others = static_image.put(env, place)
        place.replace_self(first)
        figure.parent.insert(figure.parent.index(figure) + 1, others)
    elif not drawn:
        static_image.tell(run)
        place.replace_self(nodes.paragraph("", "", nodes.literal(place["target"], place["target"])))
    if record is None:
        return
    compared = run.compared.get(place["spec"])
    shown = named(record, place["look"].get("dims", ()))
    left_out = sum(job.left_out for job in run.jobs(place["spec"], look_of(place["look"]))) if drawn else 0
    told = compared.facts if compared else " · ".join(summary.facts(shown, run.config.units, left_out))
    kind_of_line: type[nodes.TextElement] = fxgraph_facts if _is_html(run) else nodes.paragraph
    text = summary.paragraph(shown, run.config.units) if place.get("describe") and not compared else ""
    if text:
        described = nodes.paragraph(text, text, classes=["fxg-description"])
        figure.parent.insert(figure.parent.index(figure), described)
    facts = kind_of_line("", told, classes=["fxg-facts"])
    if _is_html(run) and (link := api_links.documented(figure, place["target"], env)):
        facts += [nodes.Text(" · " if told else ""), nodes.Text("API "), link]
    if drawn and _is_html(run) and sphinx_private.has_downloads(run.builder):
        dot = run.dot_name(place["spec"])
        for kind in ("dot", "json"):
            name = f"{dot.removesuffix('.dot')}.{kind}"
            facts += nodes.Text(" · ")
            facts += addnodes.download_reference(
                "", kind.upper(), filename=name, reftarget=name, classes=[f"fxg-{kind}"]
            )
    if facts.children:
        figure += nodes.legend("", facts)


def _heading(run: Run, behind: fxgraph_tables) -> nodes.paragraph:
    """Return the name of the model whose tables do not stand below its figure."""
    spec = run.specs[behind["spec"]]
    return nodes.paragraph("", "", nodes.strong("", spec.target or spec.label))


def _behind(run: Run, behind: fxgraph_tables) -> list[nodes.Node]:
    """Return what stands behind a figure: a failure, the stages, the node table."""
    from sphinx_fxgraph.render import stage_table
    from sphinx_fxgraph.sphinxext import tables
    from sphinx_fxgraph.view.annotations import named

    record = run.record(behind["spec"]) if run.shows else None
    if record is None:
        return []
    record = named(record, behind["look"].get("dims", ()))
    told: list[nodes.Node] = []
    if not _is_drawn(run, behind):
        told += _outline(record)
    if record.failure:
        told.append(messages.block(record.failure))
        if record.root:  # a partial graph does not show the modules that were not reached
            told += _outline(structs.replace(record, root="", bodies={}))
    columns = COLUMNS if behind["table"] is None else behind["table"]
    compared = run.compared.get(behind["spec"])
    rows = stage_table.stages(record) if behind["stages"] and not compared else []
    if rows and _is_html(run):
        behind += tables.stage_table_node(rows, run.config.units, behind["prefix"])
    elif rows:
        told.append(tables.stage_table_node(rows, run.config.units))
    if columns and _is_html(run):
        if compared and compared.difference.changes:
            changes = tables.html_changes(compared.difference, behind["prefix"])
            behind += fxgraph_rows("", changes, rows=len(compared.difference.changes))
        elif not compared and (table := tables.html_table(record, columns)):
            behind += fxgraph_rows("", table, rows=sum(len(group.rows) for group in table["groups"]))
    elif columns and compared:
        told += tables.plain_changes(compared.difference)
    elif columns:
        told += tables.plain_tables(record, columns, run.config.units)
    if _is_html(run) and not compared and (links := tables.links(record)):
        behind += links
    return [*told, behind] if behind.children else told


def _outline(record: Record) -> list[nodes.Node]:
    from sphinx_fxgraph.render import summary

    outline = summary.outline(record).rstrip()
    return [nodes.literal_block(outline, outline, language="none", classes=["fxg-outline"])] if outline else []


def _is_drawn(run: Run, place: nodes.Element) -> bool:
    """Return whether a place shows the drawing, or a picture of it."""
    return bool(_is_html(run) or static_image.suffix(run)) and run.draws(place["spec"], look_of(place["look"]))


def _is_html(run: Run) -> bool:
    return run.builder.format == "html"


class Fill(SphinxPostTransform):
    """Fills the graphs, tables and thumbnails of a page."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:  # noqa: ARG002 - as Sphinx calls it
        """Fill the places of one page, and note what it is made from."""
        domain, docname = fx_domain(self.env), self.env.docname
        if docname in domain.run.digests:
            domain.run.written[docname] = domain.run.digests[docname]
        if domain.run.builder.name == "gettext":  # takes the author's texts from the doctree, and writes no page
            return
        api_links.add(self.document, self.env)
        # Some builders put all pages into one: what is in it counts, not which it is.
        if any(_is_place(node) for node in self.document.findall(nodes.Element)):
            from sphinx_fxgraph.sphinxext import tables, zoo

            for resolver in (fill, tables.fill_tables, tables.fill_reports, zoo.fill):
                resolver(self.document, self.env)
            if domain.run.builder.format == "latex":
                static_image.narrow(self.document)
                static_image.keep_in_place(self.document)


def _is_place(node: nodes.Element) -> bool:
    """Return whether a directive has left something to fill."""
    return isinstance(node, fxgraph | fxgraph_tables) or "fxgraph" in node or "fxgraph_report" in node


def silent(app: Sphinx, domain: Domain, node: addnodes.pending_xref) -> bool | None:  # noqa: ARG001 - an event handler
    """A class without API docs is no mistake of the author's, even when Sphinx is nitpicky."""
    return True if node.get("fxgraph") else None


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the transform."""
    app.add_post_transform(Fill)
    app.connect("warn-missing-reference", silent)
