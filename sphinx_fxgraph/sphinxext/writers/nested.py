"""Graphs and tables inside of table cells, footnotes and boxes, where formats other than HTML allow less.

The text writer of Sphinx refuses a table in a table, the one of manual pages ends with an error, and LaTeX allows no
table over several pages and no float inside of a box.
"""

from __future__ import annotations

from docutils import nodes

_CELLS = (nodes.entry, nodes.footnote, nodes.citation)
_BOXES = (*_CELLS, nodes.Admonition, nodes.sidebar, nodes.topic, nodes.legend)


def container(node: nodes.Node, format: str) -> nodes.Element | None:  # noqa: A002 - as builders call it
    """Return the outermost element around a node that holds no tables, or None if tables can stand where the node is.

    Args:
        node: a part of the document.
        format: of the builder.
    """
    kinds = _BOXES if format == "latex" else _CELLS
    found: nodes.Element | None = None
    around: nodes.Element | None = node.parent
    while around is not None:
        becomes_cell = type(around).__name__ == "Need"  # sphinx-needs makes tables of them later
        if isinstance(around, kinds) or becomes_cell or (isinstance(around, nodes.table) and found is not None):
            found = around
        around = around.parent
    return found


def flatten(table: nodes.table, format: str) -> None:  # noqa: A002
    """Replace a table with a head by a list if it is where no table can be: an item for each row.

    Args:
        table: has the names of its columns as its head.
        format: of the builder.
    """
    if format == "html" or container(table, format) is None:
        return
    heads = [entry.astext() for head in table.findall(nodes.thead) for entry in head.findall(nodes.entry)]
    items = nodes.bullet_list(bullet="*")
    for body in table.findall(nodes.tbody):
        for row in body.findall(nodes.row):
            first, *others = row.children
            told = [
                f"{head}: {cell.astext().replace(chr(10), ' ')}"
                for head, cell in zip(heads[1:], others, strict=False)
                if cell.astext()
            ]
            text = nodes.Text(": " if told and first.astext() else "")
            content = [child for part in first.children for child in part.children]
            items += nodes.list_item("", nodes.paragraph("", "", *content, text, nodes.Text(", ".join(told))))
    title = [nodes.paragraph("", "", nodes.strong("", "", *part.children)) for part in table.findall(nodes.title)]
    table.parent.replace(table, [*title, items])
