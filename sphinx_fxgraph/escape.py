r"""Make text that others chose fit for where it is written: XML, JSON in HTML, DOT, terminals, reST, file names.

Names of classes, messages of exceptions, arguments, ``extra_repr`` and every string in the cache come from code or
files that we do not control. Every writer passes them through one of these functions. Each returns a result for every
``str``, also for one with lone surrogates or control characters, and none of them raises.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Container
from typing import Any

_PLAIN = re.compile(r"[A-Za-z0-9._-]*").fullmatch
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]")


def anchor(figure: str, path: str) -> str:
    """The id of a node: ``<figure>-<path>``, ``..2`` for the ``@2`` of a second call, ``_xHHHH_`` for odd letters."""
    if not _PLAIN(path):
        path = _NOT_PLAIN.sub(lambda c: f"_x{ord(c[0]):04X}_", re.sub(r"@(\d+)", r"..\1", path))
    return f"{figure}-{path}"


def ids(drawing: str) -> frozenset[str]:
    """All ids in an SVG."""
    return frozenset(re.findall(r' id="([^"]+)"', drawing))


def nearest(path: str, *, prefix: str, drawn: Container[str], figure: str) -> str:
    """The id of an operator in a drawing, of the module around it that is drawn, or of the figure.

    Args:
        path: of the operator.
        prefix: what the ids of the drawing start with.
        drawn: the ids in it.
        figure: the id of the figure.
    """
    while path and anchor(prefix, path) not in drawn:
        path = path.rpartition(".")[0]
    return anchor(prefix, path) if path else figure


_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)")
"""Escape sequences of terminals: colours, cursor movement, window titles (ECMA-48, sections 5.3 and 5.4)."""

_UNSAFE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters but tab and the ends of lines
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they reorder the text around them (CVE-2021-42574)
    r"\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"  # no characters; XML 1.0 forbids them (section 2.2)
)
_SUSPICIOUS = re.compile(r"[^\n\t -~\xa0-\u061b\u061d-\u200d\u2010-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufdcf]")
"""What `printable` has to look at: most texts have none of it."""

_JSON_ESCAPES = {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}

_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
"""Names that are devices on Windows, with every suffix."""


def printable(text: str) -> str:
    """Return text without escape sequences, control characters and lone surrogates, on as many lines as before."""
    if not _SUSPICIOUS.search(text):
        return text
    text = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub("\ufffd", text)


def one_line(text: str, most: int = 0) -> str:
    """Return printable text on one line, for warnings, terminals and fields of reST.

    Args:
        text: any text.
        most: characters that it may have; what is longer is cut in the middle. 0 is no limit.
    """
    text = " ".join(printable(text).split())
    if not text.isprintable():
        text = "".join(char if char.isprintable() else "\ufffd" for char in text)
    if most and len(text) > most:
        head = (most - 1) * 2 // 3
        text = f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"
    return text


def xml(text: str) -> str:
    """Return text for the content or a quoted attribute of XML and HTML."""
    return html.escape(printable(text))


def printable_json(text: str | bytes) -> str | bytes:
    """Return JSON in which every string is printable; what is not JSON is not JSON afterwards.

    Raises:
        UnicodeDecodeError: bytes that are not UTF-8.
    """
    if isinstance(text, bytes):
        if not _SUSPICIOUS_BYTES.search(text):
            return text
        text = text.decode()
    return _UNSAFE.sub("\ufffd", _JSON_TOKEN.sub(_printable_token, text))


_SUSPICIOUS_BYTES = re.compile(rb"\\(?:[bf]|u(?:00[01]|00[789]|[dD][89a-fA-F]|[fF][dD]|[fF]{3}|20|061))|[\x7f-\xff]")
_JSON_TOKEN = re.compile(
    r"\\u001[bB](?:\[[0-?]*[ -/]*[@-~])?"  # an escape sequence
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a character of two surrogates
    r"|\\u[0-9a-fA-F]{4}|\\.",
    re.DOTALL,
)


def _printable_token(match: re.Match[str]) -> str:
    token = match[0]
    if token[:6].lower() == "\\u001b":
        return ""
    if token in ("\\b", "\\f") or (len(token) == 6 and _UNSAFE.match(chr(int(f"0x{token[2:]}", 0)))):
        return "\ufffd"
    return token


def json_block(value: Any) -> str:
    """Return JSON that may stand in a ``<script>`` element or in a script file.

    ``<`` is written as an escape, since ``<!--<script>`` in a string makes a browser read the rest of the page as part
    of the script (HTML standard, "Restrictions for contents of script elements").
    """
    import msgspec  # only who writes JSON needs it

    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # a lone surrogate
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for char, escape in _JSON_ESCAPES.items():  # several times as fast as str.translate
        text = text.replace(char, escape)
    return _UNSAFE.sub("\ufffd", text)


def dot_html(text: str) -> str:
    r"""Return text for an HTML-like label of DOT.

    A backslash is doubled: Graphviz replaces ``\N`` by the name of the node in the text of such labels too.
    """
    plain = printable(text)
    plain = plain if plain.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in plain)
    return html.escape(plain).replace("\\", "\\\\")


def file_stem(text: str, most: int = 64) -> str:
    """Return a file name without suffix: one path component of letters, digits, ``.``, ``_`` and ``-``.

    It is readable and not unique: two texts may give the same. It is never empty, never begins with a dot, has at
    most ``most`` characters and is no reserved name on Windows.
    """
    stem = re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:most].rstrip("-.") or "model"
    return f"_{stem}"[:most] if _RESERVED.fullmatch(stem) else stem


def unique_file_stem(text: str, most: int = 64) -> str:
    """Return a file name as `file_stem` does, with a digest of the text wherever the two differ."""
    stem = file_stem(text, most)
    if stem == text:
        return stem
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{file_stem(text, most - 9)}-{digest}"
