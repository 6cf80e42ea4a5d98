"""Sites in other languages: our words are translated, the author's are in the message catalogues."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from babel.messages.extract import extract
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po
from bs4 import BeautifulSoup
from conftest import Project

import sphinx_fxgraph

PACKAGE = Path(sphinx_fxgraph.__file__).parent
LANGUAGES = ("de", "es", "fr", "ja", "zh_CN", "zh_TW")

PAGE = """\
Net
===

.. fxgraph:: torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
   :inputs: 1, 4
   :describe:
   :caption: A caption
   :alt: What it looks like

.. fxgraph:: torch.nn.Linear(4, 8)
   :inputs: 1, 4

.. fxgraph:: torch.nn.Linear(4, 8)
   :inputs: 1, 5
   :expect: error
"""


def messages() -> set[str]:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        with path.open("rb") as file:
            for _, message, _, _ in extract("python", file, {"_": None, "mark": None}):
                found.add(message)
    return found - {""}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_message_is_translated(language: str) -> None:
    folder = PACKAGE / "locale" / language / "LC_MESSAGES"
    catalogue = read_po(io.BytesIO((folder / "sphinx_fxgraph.po").read_bytes()), locale=language)
    translations = {entry.id: entry.string for entry in catalogue if entry.id}
    assert translations.keys() == messages()
    for message, translation in translations.items():
        assert translation, message
        assert sorted(re.findall(r"{}|%\d", message)) == sorted(re.findall(r"{}|%\d", translation))
    compiled = read_mo(io.BytesIO((folder / "sphinx_fxgraph.mo").read_bytes()))
    assert {entry.id: entry.string for entry in compiled if entry.id} == translations


@pytest.mark.torch
def test_languages_share_one_capture(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.configure("fxgraph_cache_dir = '_fxgraph'\nlocale_dirs = ['locale']\ngettext_compact = False\n")
    project.write("index.rst", PAGE)
    english = project.build("html", "-W")
    assert (english.warnings, english.status) == ("", 0)
    described = BeautifulSoup(english.page(), "lxml").select_one("p.fxg-description")
    assert described.get_text().startswith(
        "Sequential takes 1×4 and returns 1×8. It has 40 parameters. One call takes 32 MACs. It is made of"
    )
    template = project.build("gettext", "-W", "-d", str(tmp_path / "gettext")).page("index.pot")
    assert 'msgid "A caption"' in template
    assert 'msgid "What it looks like"' in template
    project.write(
        "locale/de/LC_MESSAGES/index.po",
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n\n'
        'msgid "A caption"\nmsgstr "Eine Unterschrift"\n\nmsgid "What it looks like"\nmsgstr "Wie es aussieht"\n',
    )
    german = project.build("html", "-D", "language=de")
    assert german.status == 0
    assert "Captur" not in german.output
    assert not re.search(r"(capturing|laying out)", german.output)
    page = BeautifulSoup(german.page(), "lxml")
    figures = page.select("figure.fxgraph")
    assert "Eine Unterschrift" in figures[0].get_text()
    assert "Wie es aussieht" in str(figures[0].svg)
    assert "40 Parameter" in figures[0].select_one(".fxg-facts").get_text()
    assert "gleicher Graph für jeden Eingabewert" in figures[0].select_one(".fxg-facts").get_text()
    assert "Sequential nimmt 1×4 und gibt 1×8 zurück." in page.get_text()
    assert "1 lineare Schicht" in str(figures[1].svg)
    assert "Knotentabelle (" in page.get_text()
    assert "Eingabe, Ausgabe" in page.select_one(".fxg-legend").get_text()
    assert "Das Modell kann nicht" in page.select_one(".fxg-failure").get_text()
    words = json.loads(page.select_one("script.fxg-words").string)
    assert words["Search"] == "Suchen"
    chinese = project.build("html", "-D", "language=zh_CN")
    assert "40 个参数" in BeautifulSoup(chinese.page(), "lxml").get_text()
