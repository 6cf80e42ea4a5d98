"""Warnings and failures in words: what the console and the page say when something goes wrong.

Every warning has the type ``fxgraph``, a subtype and a location, so that ``suppress_warnings`` can name each kind.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.util import logging

from sphinx_fxgraph.escape import one_line, printable
from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.words import _, mark

logger = logging.getLogger(__name__)

_MOST_CHARACTERS = 2000
"""Of a line of a warning."""

SUBTYPES = (
    *("import", "build", "input", "trace", "probe", "limit", "mock"),
    *("verdict", "expect", "layout", "cache", "option", "sphinx"),
)
"""The stages of a failed capture, and what else can be wrong."""


def warn(message: str, subtype: str, location: str | None = None) -> None:
    """Warn of something at a place in the docs; without a place it concerns the whole build."""
    assert subtype in SUBTYPES, subtype
    text = "\n".join(line[:_MOST_CHARACTERS] for line in printable(message).splitlines())
    logger.warning("%s", text, type="fxgraph", subtype=subtype, location=location)


# -- failures

_TITLES = {
    "import": mark("The model cannot be imported"),
    "build": mark("The model cannot be built"),
    "input": mark("The inputs cannot be made"),
    "option": mark("The options cannot be used"),
    "trace": mark("The model cannot be traced"),
    "probe": mark("The model cannot be run"),
    "limit": mark("The capture ended early"),
    "cache": mark("The model is not in the cache"),
}
_OTHER_TITLE = mark("The model cannot be captured")


def sentence(failure: Failure) -> str:
    """Message, place and operator in one line, for a warning."""
    where = f" ({_place(failure)})" if _place(failure) else ""
    return one_line(f"{title(failure)}: {_message(failure)}{where}", _MOST_CHARACTERS)


def title(failure: Failure) -> str:
    """Return the title of the failure."""
    return _(_TITLES.get(failure.stage, _OTHER_TITLE))


def block(failure: Failure) -> nodes.admonition:
    """Return the failure as a block of the page."""
    told = nodes.admonition("", nodes.title("", title(failure)), classes=["fxg-failure"])
    text = _message(failure)
    told += nodes.literal_block(text, text, language="none") if "\n" in text else nodes.paragraph(text, text)
    if _place(failure):
        told += nodes.paragraph("", "", nodes.literal(_place(failure), _place(failure)))
    return told


def _message(failure: Failure) -> str:
    told = not failure.type or f"{failure.type}: " in failure.message
    return failure.message if told else f"{failure.type}: {failure.message}"


def _place(failure: Failure) -> str:
    line = f":{failure.line}" if failure.line else ""
    parts = [f"{failure.file}{line}" if failure.file else "", _("at {}", failure.node) if failure.node else ""]
    return ", ".join(filter(None, parts))
