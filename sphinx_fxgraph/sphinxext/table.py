"""The ``fxgraph-table`` directive: one row a model, or with ``:compare:`` one column a model and one row a stage.

A row is the name of a graph of this project, a pattern of such names, or a target. Names are looked up when the page is
written, since they may stand on pages that are read later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from sphinx_fxgraph.errors import SpecError
from sphinx_fxgraph.spec.parser import parse_target
from sphinx_fxgraph.sphinxext.domain import ModelUse, fx_domain
from sphinx_fxgraph.sphinxext.graph import CAPTURE, defaults, spec_of
from sphinx_fxgraph.sphinxext.messages import warn

if TYPE_CHECKING:
    from sphinx.application import Sphinx


logger = logging.getLogger(__name__)


# -- the columns

NUMBERS = ("parameters", "trainable", "buffers", "size", "MACs", "activations", "depth", "ops")
"""The columns that are numbers."""

COLUMNS = ("name", *NUMBERS, "input", "output", "verdict")
DEFAULT = ("name", "parameters", "MACs", "activations", "input", "output", "depth", "verdict")


def parse_columns(written: str) -> tuple[str, ...]:
    """The columns that ``:columns:`` asks for, in its order.

    Raises:
        ValueError: there is no such column.
    """
    known = {column.lower(): column for column in COLUMNS}
    asked = [part.strip().lower() for part in re.split(r"[,\n]", written) if part.strip()]
    for column in asked:
        if column not in known:
            raise ValueError(f"no column {column!r}; there are {', '.join(COLUMNS)}")
    return tuple(dict.fromkeys(known[column] for column in asked)) or DEFAULT


# -- the directive


class Entry(NamedTuple):
    """An entry of the directive's content: a row, or the rows that a pattern stands for."""

    title: str
    """Empty where none was given."""
    text: str
    """A name, a pattern of names, or a target."""
    spec: str
    """Id of the spec, where it may be a target."""


class FxgraphTable(SphinxDirective):
    """``.. fxgraph-table::`` with names, patterns and targets, separated by commas or one a line."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "caption": directives.unchanged_required,
        "class": directives.class_option,
        "columns": parse_columns,
        "compare": directives.flag,
        "name": directives.unchanged_required,
        **dict.fromkeys(CAPTURE, directives.unchanged_required),
    }

    def run(self) -> list[nodes.Node]:
        """Leave a table without rows, and note what it depends on."""
        entries = [self._entry(part) for part in _parts("\n".join([*self.arguments, *self.content]))]
        if not entries:
            self.env.note_reread()
            warn("which models? For example .. fxgraph-table:: resnet*", "option", self.get_location())
        columns = self.options.get("columns", DEFAULT)
        return [*model_table(self, [entry for entry in entries if entry], columns, compare="compare" in self.options)]

    def _entry(self, written: str) -> Entry | None:
        explicit = re.fullmatch(r"(.+?)\s*<([^<>]+)>", written)
        title, asked = explicit.groups() if explicit else ("", written)
        try:
            if not re.search(r"[.(:\[]", asked):  # a mere word is a name, and what is no expression is a pattern
                return Entry(title, asked, "")
            parse_target(asked)
        except SpecError:
            if "(" not in asked:
                return Entry(title, asked, "")
        try:
            spec = spec_of(asked, "", defaults(self.config, asked) | self.options)
        except SpecError as error:
            self.env.note_reread()
            warn(str(error), "input" if str(error).startswith("inputs") else "option", self.get_location())
            return None
        use = ModelUse(spec, None, self.get_location())
        fx_domain(self.env).note_use(self.env.docname, use)
        return Entry(title, asked, spec.id)


def model_table(
    directive: SphinxDirective, entries: Sequence[Entry], columns: Sequence[str], *, compare: bool = False
) -> Iterator[nodes.Node]:
    """A table node that is filled when the page is written, with the directive's name, caption and classes.

    With a caption it is numbered as every table is.
    """
    domain = fx_domain(directive.env)
    domain.tables[directive.env.docname] = True
    for entry in entries:
        domain.note_mention(directive.env.docname, entry.text)
    kind = ["fxg-table", "fxg-compare"] if compare else ["fxg-table"]
    table = nodes.table("", classes=[*kind, *directive.options.get("class", ())])
    table["fxgraph"] = {"rows": [tuple(entry) for entry in entries], "columns": tuple(columns), "compare": compare}
    yield from captioned(directive, table)


def captioned(directive: SphinxDirective, table: nodes.table) -> Iterator[nodes.Node]:
    """A table with the directive's name and caption; what is wrong with the latter stands before it."""
    directive.set_source_info(table)
    if "caption" in directive.options:
        inline, messages = directive.parse_inline(directive.options["caption"])
        title = nodes.title(directive.options["caption"], "", *inline)
        directive.set_source_info(title)
        table += title
        yield from messages
    directive.add_name(table)
    yield table


def _parts(written: str) -> Iterator[str]:
    """The entries: commas and line ends separate them, but for those within brackets and strings."""
    depth, quote, part = 0, "", ""
    for letter in f"{written}\n":
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter in ",\n" and depth <= 0:
            if part.strip():
                yield " ".join(part.split())
            part, depth = "", 0
            continue
        part += letter
    if part.strip():
        yield " ".join(part.split())


# -- the report


def _only(written: str) -> str:
    return directives.choice(written, ("failed",))


class FxgraphReport(SphinxDirective):
    """``.. fxgraph-report::``: a row a model; with ``:only: failed`` those alone whose capture went wrong."""

    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "caption": directives.unchanged_required,
        "class": directives.class_option,
        "name": directives.unchanged_required,
        "only": _only,
    }

    def run(self) -> list[nodes.Node]:
        """Leave a table without rows: the pages that are read later have models too."""
        domain, docname = fx_domain(self.env), self.env.docname
        domain.tables[docname] = domain.reports[docname] = True
        table = nodes.table("", classes=["fxg-table", "fxg-report", "longtable", *self.options.get("class", ())])
        table["fxgraph_report"] = self.options.get("only", "")
        return [*captioned(self, table)]


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("fxgraph-table", FxgraphTable)
    app.add_directive("fxgraph-report", FxgraphReport)
