"""The language of the words on pages: a docs build sets it, everywhere else they are English."""

from __future__ import annotations

from collections.abc import Callable


class _Catalogue:
    """What looks a message up: gettext's function in a docs build."""

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
