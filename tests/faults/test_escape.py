"""Text that others chose, in every format that we write: nothing of it is markup, a command or a path."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphinx_fxgraph import escape

NASTY = st.text(st.characters(codec=None), max_size=60) | st.text(
    st.sampled_from("\x00\x07\x1b[1m\\\"'<>&!-/\n\r\t\x7f\x9b\u202e\u2028\ud800\udfff\ufffe😀ab"), max_size=40
)


@given(NASTY)
def test_printable_text_can_be_written_and_shown(text: str) -> None:
    plain = escape.printable(text)
    plain.encode("utf-8")
    assert all(char.isprintable() or char in "\n\t" or ord(char) > 127 for char in plain)
    assert escape.printable(plain) == plain
    line = escape.one_line(text, 30)
    assert "\n" not in line
    assert len(line) <= 30


@given(NASTY)
def test_xml_is_well_formed_and_says_the_same(text: str) -> None:
    found = ET.fromstring(f'<a b="{escape.xml(text)}">{escape.xml(text)}</a>')
    assert (found.text or "") == escape.printable(text)
    assert " ".join(found.attrib["b"].split()) == " ".join(escape.printable(text).split())


class _Scripts(HTMLParser):
    """The tags of a page, as a browser sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - as it is called
        self.tags.append(tag)


@given(st.lists(NASTY | st.sampled_from(["<!--<script>", "</script>", "<script>", "-->", "\u2028"])))
def test_json_in_a_page_neither_ends_nor_begins_a_script(values: list[str]) -> None:
    block = escape.json_block(values)
    assert not re.search("[<>&\u2028\u2029]", block)
    parser = _Scripts()
    parser.feed(f"<script>{block}</script><p>")
    assert parser.tags == ["script", "p"]
    assert isinstance(json.loads(block), list)


@given(NASTY)
def test_a_file_name_is_one_plain_component(text: str) -> None:
    for name in (escape.file_stem(text), escape.unique_file_stem(text)):
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name)
        assert not name.startswith(".")
        assert name.upper() not in ("CON", "PRN", "AUX", "NUL", "COM1", "LPT1")


@pytest.mark.parametrize("text", ["con", "NUL", "aux.h", "com1", "..", "...", "", "/", "a" * 500, "-", "~"])
def test_file_names_that_systems_keep_for_themselves(text: str) -> None:
    name = escape.unique_file_stem(text)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", name)
    assert not re.fullmatch(r"(?i)(con|nul|aux|com1)(\..*)?", name)


@given(NASTY, NASTY)
def test_two_texts_have_two_unique_file_names(one: str, other: str) -> None:
    assert one == other or escape.unique_file_stem(one) != escape.unique_file_stem(other)


@given(NASTY, st.booleans())
def test_every_string_of_json_that_is_read_is_printable(text: str, ascii_only: bool) -> None:
    written = json.dumps({"a": text}, ensure_ascii=ascii_only)
    for source in (written, written.encode("utf-8", "replace")):
        try:
            found = msgspec.json.decode(escape.printable_json(source))["a"]
        except (msgspec.DecodeError, UnicodeError):
            continue  # half a surrogate pair
        assert found.replace("\r\n", "\n").replace("\r", "\n") == escape.printable(found)
    plain = "a\\u0041 é \\ud83d\\ude00 \\\\u0000 \\n"
    assert json.loads(escape.printable_json(f'"{plain}"')) == json.loads(f'"{plain}"')


@given(NASTY)
def test_dot_labels_hold_no_markup_and_no_escape_of_graphviz(text: str) -> None:
    label = escape.dot_html(text)
    assert not re.search(r"[<>\x00-\x1f]", label)
    assert not re.search(r"(?<!\\)(\\\\)*\\(?!\\)", label)
