"""The node table as HTML: a heading for each body, its rows linked with the drawing and with each other.

A large model has thousands of cells; as text they are written in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sphinx_fxgraph.record.model import join
from sphinx_fxgraph.tables.columns import TEXTS
from sphinx_fxgraph.tables.rows import Row, Rows
from sphinx_fxgraph.text.escape import xml
from sphinx_fxgraph.text.ids import anchor
from sphinx_fxgraph.text.translate import _
from sphinx_fxgraph.text.units import Units

Written = Callable[[str, str], str]
"""Takes the dotted path of a class and its name, and gives HTML, such as a link to the class's documentation."""


def node_table(
    groups: Sequence[Rows],
    columns: Sequence[str],
    units: Units,
    *,
    prefix: str,
    drawn: Callable[[str], str],
    written: Written = lambda _, name: xml(name),
) -> str:
    """The table, its classes those that docutils gives to tables, so that themes know it.

    Args:
        groups: the rows of each body.
        columns: names, see `columns.COLUMNS`.
        units: how numbers are written, and what counts as a MAC.
        prefix: what all ids start with.
        drawn: the id in the drawing that the row of a path leads to.
        written: how a class is written.
    """
    cells = _Cells(prefix, units, drawn, written)
    rows = []
    for group in groups:
        if len(groups) > 1:
            rows.append(("fxg-body ", "", [f'<td colspan="{len(columns)}">{cells.heading(group)}</td>']))
        for row in group.rows:
            texts = [cells.text(column, row) for column in columns]
            texts[0] += cells.others(row, group)
            rows.append(("", f' id="{anchor(cells.rows, row.path)}"', [f"<td>{text}</td>" for text in texts]))
    return "".join(html_table("fxg-nodes", columns, rows))


def html_table(kind: str, heads: Sequence[str], rows: Iterable[tuple[str, str, Iterable[str]]]) -> Iterator[str]:
    """A table of a class of ours.

    Args:
        kind: the class.
        heads: names of the columns.
        rows: of each the classes of its own, other attributes, and cells.
    """
    yield f'<table class="{kind} docutils align-default">\n<thead>\n<tr class="row-odd">'
    yield "".join(f'<th class="head">{xml(_(head))}</th>' for head in heads) + "</tr>\n</thead>\n<tbody>\n"
    for number, (classes, attributes, cells) in enumerate(rows):
        parity = "odd" if number % 2 else "even"
        yield f'<tr class="{classes}row-{parity}"{attributes}>{"".join(cells)}</tr>\n'
    yield "</tbody>\n</table>\n"


class _Cells:
    """What stands in the cells of one table."""

    def __init__(self, prefix: str, units: Units, drawn: Callable[[str], str], written: Written) -> None:
        self.rows = f"{prefix}-row"
        self._units = units
        self._drawn = drawn
        self._written = written

    def text(self, column: str, row: Row) -> str:
        """The inside of a cell."""
        if column == "name":
            return _link(self._drawn(row.path), row.name)
        if column == "op" and row.type:
            return f"{row.op} {self._written(row.type, row.kind)}"
        if column == "connected to":
            return ", ".join(_link(anchor(self.rows, path), name) for path, name in row.connected)
        return xml(TEXTS[column](row, self._units))

    def heading(self, group: Rows) -> str:
        """``layer1.0 BasicBlock ×2``, the class as it is written."""
        before, kind, after = group.parts
        return xml(before) + (self._written(group.type, kind) if kind else "") + xml(after)

    def others(self, row: Row, group: Rows) -> str:
        """The row's ids for all other places where its body is called."""
        inside = row.path.removeprefix(group.paths[0]).lstrip(".")
        return "".join(f'<span id="{anchor(self.rows, join(path, inside))}"></span>' for path in group.paths[1:])


def _link(name: str, text: str) -> str:
    return f'<a class="reference internal" href="#{name}">{xml(text)}</a>'
