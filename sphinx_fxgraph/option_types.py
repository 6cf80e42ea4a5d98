"""The kinds of values of options: each reads text or a Python value, and says what to write where it is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from sphinx_fxgraph.errors import suggestion


class Kind(Protocol):
    """How the value of an option is written and checked."""

    def read(self, value: Any, *, exact: bool = False) -> Any:
        """Return the value in canonical form.

        Args:
            value: text, as in a directive or on the command line, or a Python value.
            exact: whether words must be written as they are declared, as in Python code.

        Raises:
            ValueError: the value is wrong; the message says what to write.
        """


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]
    nearest: Callable[[str], str] | None = None
    """Finds the word that was meant, where spelling alone does not tell."""
    optional: bool = False
    """Whether the empty word is one of them."""

    def read(self, value: Any, *, exact: bool = False) -> str:
        """Return the word; text in a page may differ in case."""
        text = value if exact else str(value).strip()
        known = {word.lower(): word for word in self.words}
        if text in self.words or (self.optional and text == ""):
            return str(text)
        if not exact and text.lower() in known:
            return known[text.lower()]
        meant = self.nearest(str(text)) if self.nearest else ""
        hint = f"; did you mean {meant}?" if meant in self.words else suggestion(str(text), self.words)
        raise ValueError(f"{text!r} is none of {', '.join(self.words)}{hint}")


@dataclass(frozen=True)
class Whole:
    """A whole number from 0 up."""

    example: str
    most: int = 10**9
    optional: bool = False
    """Whether it may be left open, as None."""

    def read(self, value: Any, *, exact: bool = False) -> int | None:  # noqa: ARG002 - a number is a number
        """Return the number."""
        if value is None and self.optional:
            return None
        text = str(value).strip()
        if not re.fullmatch(r"[0-9]{1,15}", text) or isinstance(value, bool):
            raise ValueError(f"{text!r} is no whole number from 0 up; for example {self.example}")
        if int(text) > self.most:
            raise ValueError(f"{text} is more than {self.most:,}; for example {self.example}")
        return int(text)


@dataclass(frozen=True)
class Switch:
    """Yes or no; an option of a directive that is written without a value is yes."""

    def read(self, value: Any, *, exact: bool = False) -> bool:  # noqa: ARG002 - True is True
        """Return whether it is on."""
        words = {"": True, "yes": True, "true": True, "no": False, "false": False}
        word = "" if value is None else str(value).strip().lower()
        if word not in words:
            raise ValueError(f"{value!r} is none of no, yes")
        return words[word]


@dataclass(frozen=True)
class Patterns:
    """Names with ``*`` and ``?``, separated by commas or spaces."""

    example: str
    ordered: bool = True

    def read(self, value: Any, *, exact: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - there are no words to know
        """Return the patterns; those whose order does not count are sorted, each once."""
        parts = re.split(r"[\s,]+", value) if isinstance(value, str) else value
        found = tuple(parts) if isinstance(parts, Iterable) else (parts,)
        if not all(isinstance(part, str) for part in found):
            raise ValueError(f"{value!r} is no pattern; for example {self.example}")
        return tuple(filter(None, found if self.ordered else sorted(set(found))))


@dataclass(frozen=True)
class Text:
    """Text, with a pattern that all of it must match."""

    pattern: str = ""
    wrong: str = ""
    """What a text is that does not match, with an example."""
    collapse: bool = False
    """Whether runs of white space count as one space."""

    def read(self, value: Any, *, exact: bool = False) -> str:  # noqa: ARG002 - there are no words to know
        """Return the text without white space around it."""
        text = " ".join(str(value).split()) if self.collapse else str(value).strip()
        if self.pattern and not re.fullmatch(self.pattern, text):
            raise ValueError(f"{text!r} {self.wrong}")
        return text


@dataclass(frozen=True)
class Length:
    """A CSS length; a bare number is in pixels."""

    def read(self, value: Any, *, exact: bool = False) -> str:  # noqa: ARG002 - there are no words to know
        """Return the length with its unit."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(px|em|rem|vh|vw|cm|mm|in|pt)?", str(value).strip())
        if not match:
            raise ValueError(f"{value!r} is no height; for example 400px or 60vh")
        return match[1] + (match[2] or "px")


@dataclass(frozen=True)
class Names:
    """Some of a list of names, in any order, or ``none``."""

    known: tuple[str, ...]
    what: str

    def read(self, value: Any, *, exact: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - case never counts here
        """Return the names as they are declared, each once; none for ``none``."""
        if isinstance(value, str) and value.strip() == "none":
            return ()
        parts = re.split(r"[,\n]", value) if isinstance(value, str) else value
        asked = [" ".join(str(part).split()) for part in parts if str(part).strip()]
        spelled = {name.lower(): name for name in self.known}
        for name in asked:
            if name.lower() not in spelled:
                hint = suggestion(name, self.known)
                raise ValueError(f"no {self.what} {name!r}; there are {', '.join(self.known)}, or none{hint}")
        if not asked and isinstance(value, str):
            raise ValueError(f"which {self.what}s? For example {', '.join(self.known)}")
        return tuple(dict.fromkeys(spelled[name.lower()] for name in asked))


@dataclass(frozen=True)
class Dimensions:
    """Names of dimensions: ``N C H W``, or ``N C H W, N T`` for two inputs."""

    def read(self, value: Any, *, exact: bool = False) -> tuple[tuple[str, ...], ...]:  # noqa: ARG002 - any names do
        """Return the names by input."""
        groups = [part.split() for part in value.split(",")] if isinstance(value, str) else value
        if isinstance(value, str) or value:
            names = [name for group in groups for name in group]
            if not names or not all(isinstance(name, str) and name.isidentifier() for name in names):
                raise ValueError(f"{value!r} names no dimensions; for example N C H W, or N C H W, N T for two inputs")
        return tuple(tuple(group) for group in groups)


@dataclass(frozen=True)
class Classes:
    """Class names for a style sheet."""

    def read(self, value: Any, *, exact: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - any names do
        """Return the class names, separated by white space in text."""
        names = value.split() if isinstance(value, str) else list(value)
        for name in names:
            if not re.fullmatch(r"-?[_a-zA-Z][-_a-zA-Z0-9]*", name):
                raise ValueError(f"{name!r} is no class name; for example wide")
        return tuple(names)
