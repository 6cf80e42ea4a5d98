"""The errors that say what an author wrote is wrong, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SpecError(ValueError):
    """A target, an input or an option is wrong.

    The message is one line: the place, what is wrong, and a right example or the nearest right word.
    """


def suggestion(word: str, words: Iterable[str]) -> str:
    """Return ``; did you mean ...?`` with the public word nearest to ``word``; empty if none is near.

    Args:
        word: as it was written.
        words: what could have been meant; those that start with an underscore are not suggested.
    """
    known = {each.lower(): each for each in sorted(words) if not each.startswith("_")}
    close = difflib.get_close_matches(word.lower(), known, 1)
    return f"; did you mean {known[close[0]]}?" if close else ""
