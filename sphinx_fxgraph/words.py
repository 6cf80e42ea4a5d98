"""The words of the viewer, which are translated with all others: a test compares them with its source."""

from __future__ import annotations

from collections.abc import Callable


class _Catalogue:
    """The function that looks up a message: gettext's in a docs build."""

    lookup: Callable[[str], str] = staticmethod(str)


def use_catalogue(lookup: Callable[[str], str]) -> None:
    """Translate from now on with a function that returns the translation of an English message."""
    _Catalogue.lookup = staticmethod(lookup)


def _(message: str, *values: object) -> str:
    """Return a message in the language of the docs, with values in the place of each ``{}``."""
    text = str(_Catalogue.lookup(message)) if message else ""  # Sphinx looks messages up lazily
    return text.format(*values) if values else text


def mark(message: str) -> str:
    """Return a message as it is. It is found for the catalogues here, and translated where it is shown."""
    return message


def count(number: int, one: str, many: str) -> str:
    """Return a number with what is counted.

    Args:
        number: of things.
        one: the message for one thing, with ``{}`` for the number; marked with `mark`.
        many: likewise for any other number.
    """
    message = one if number == 1 else many
    written = f"{number:,}"
    return _(message, written)


PAGE_WORDS = (
    *(mark("Node table"), mark("Changes"), mark("change"), mark("operator"), mark("before"), mark("after")),
    *(mark("added"), mark("removed"), mark("changed"), mark("moved"), mark("renamed")),
    *(mark("stage"), mark("blocks"), mark("trainable"), mark("buffers"), mark("size"), mark("depth"), mark("ops")),
    *(mark("input"), mark("output"), mark("verdict"), mark("model"), mark("page"), mark("outcome"), mark("tracer")),
    *(mark("holds for"), mark("bytes of activations")),
)
"""Heads of tables and the like, which are data elsewhere."""


VIEWER_WORDS = (
    mark("path"),
    mark("class"),
    mark("calls"),
    mark("settings"),
    mark("arguments"),
    mark("inputs"),
    mark("outputs"),
    mark("parameters"),
    mark("MACs"),
    mark("activations"),
    mark("used by"),
    mark("source"),
    mark("remarks"),
    mark("name"),
    mark("op"),
    mark("target"),
    mark("input shape"),
    mark("output shape"),
    mark("dtype"),
    mark("connected to"),
    mark("share"),
    mark("Details of %1 in %2"),
    mark("Close the details"),
    mark("source of the class"),
    mark("Copy path"),
    mark("Copy link"),
    mark("Show row"),
    mark("Copied"),
    mark("Search"),
    mark("Search the graph by path, kind, argument or shape"),
    mark("Hits"),
    mark("%1 found"),
    mark("%1 of %2"),
    mark("Filter"),
    mark("Filter the rows"),
    mark("Operators"),
    mark("Modules"),
    mark("Columns"),
    mark("Rows of %1"),
    mark("%1 of %2 rows"),
    mark("Graph of %1: arrows move it, plus and minus zoom, 0 shows all of it, Enter goes to its nodes"),
    mark("Graph of %1"),
    mark("Open"),
    mark("Open or close modules"),
    mark("More: save, copy, view"),
    mark("Fit"),
    mark("Show all of it"),
    mark("Natural size"),
    mark("Full screen"),
    mark("This browser does not allow it"),
    mark("Save as SVG"),
    mark("Save as PNG"),
    mark("Save as DOT"),
    mark("Save as JSON"),
    mark("Copy image"),
    mark("Zoom out"),
    mark("Zoom in"),
    mark("One finger moves it sideways, two move and zoom; a tap shows details"),
    mark("Drag to move, Ctrl + wheel or double click to zoom; a click shows details"),
    mark("There are more; open the rest one by one"),
    mark("All"),
    mark("To depth %1"),
    mark("None"),
    mark("Each %1"),
    mark("Opened modules"),
)
"""``%1`` and ``%2`` stand for values."""
