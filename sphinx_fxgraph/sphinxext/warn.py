"""Warnings: all of type ``fxgraph``, with a subtype and a place, so that ``suppress_warnings`` can name each kind."""

from __future__ import annotations

from sphinx.util import logging

logger = logging.getLogger(__name__)

SUBTYPES = (
    *("import", "build", "input", "trace", "probe", "limit", "mock"),
    *("verdict", "expect", "layout", "cache", "option"),
)
"""The stages of a failed capture, and what else can be wrong."""


def warn(message: str, subtype: str, location: str | None = None) -> None:
    """Warn of something at a place in the docs; without a place it concerns the whole build."""
    assert subtype in SUBTYPES, subtype
    logger.warning("%s", message, type="fxgraph", subtype=subtype, location=location)
