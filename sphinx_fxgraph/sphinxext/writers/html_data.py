"""Data that the viewer loads: in the page if it is small, else in a file of its own.

Files are scripts and not JSON, since pages are also read from disk, where a script may not fetch.
"""

from __future__ import annotations

import hashlib
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from docutils import nodes
from sphinx.locale import get_translation

from sphinx_fxgraph.sphinxext.assets import write
from sphinx_fxgraph.text.escape import file_stem, json_block, xml
from sphinx_fxgraph.text.viewer_words import VIEWER_WORDS

if TYPE_CHECKING:
    from sphinx.builders.html import StandaloneHTMLBuilder

CATALOG = "sphinx_fxgraph"
"""Of the translations."""
_MOST_INLINE = 48_000
"""Characters of one block of data in a page."""
_ROW = 500
"""Characters of a row of a node table, about."""
_MOST_ON_PAGE = 100_000
"""Characters of all data and tables in a page."""


class PageData:
    """Puts data of one graph into the page, or into a file beside it.

    Args:
        builder: of the site.
        document: the page.
        prefix: what the graph's ids start with.
    """

    def __init__(self, builder: StandaloneHTMLBuilder, document: nodes.document, prefix: str) -> None:
        self._builder, self._document, self._prefix = builder, document, prefix

    def put(self, kind: str, value: Any, attributes: dict[str, str]) -> str:
        """Return a block for the page; if it is too large, write a file and note its address in ``data-<kind>``.

        Args:
            kind: what it is called; ``nodes`` are always a file, since not every reader asks for them.
            value: plain data; nothing is written for an empty one.
            attributes: of the graph's element.
        """
        if not value:
            return ""
        content = json_block(value)
        if kind != "nodes" and self._takes(len(content)):
            return f'<script type="application/json" class="fxg-{kind}">{content}</script>'
        name = self._name(content, f"{kind}.js")
        script = f"(globalThis.fxgraphData ??= {{}})[{json_block(name)}] = {content};\n"
        write(Path(self._builder.outdir, "_static", "fxgraph", name), script)
        attributes[f"data-{kind}"] = self._address(name)
        return ""

    def table_page(self, rows: int) -> str:
        """Return the address of a page of its own for a table that is too large for this one, else nothing.

        Args:
            rows: how many the table has.
        """
        if self._builder.name == "epub" or self._takes(rows * _ROW):
            return ""
        place = f"{self._builder.current_docname}#{self._prefix}"
        return self._address(self._name(place, "html"))

    def write_table(self, address: str, content: str, title: str) -> None:
        """Write the page of a table.

        Args:
            address: as `table_page` has given it.
            content: HTML.
            title: of the page.
        """
        builder = self._builder
        base = "../../" + builder.get_target_uri(builder.current_docname)
        style = self._address("../fxgraph.css")
        content = _PAGE.format(base=quote(base), style=style, title=xml(title), content=content)
        write(Path(builder.outdir, "_static", "fxgraph", unquote(posixpath.basename(address))), content)

    def _takes(self, size: int) -> bool:
        """Return whether there is room for more characters in the page, and take it."""
        taken = self._document.get("fxgraph-data", 0)
        if size > _MOST_INLINE or taken + size > _MOST_ON_PAGE:
            return False
        self._document["fxgraph-data"] = taken + size
        return True

    def words(self) -> str:
        """Return the viewer's words in the language of the project, once in a page; nothing in English."""
        translate = get_translation(CATALOG)
        words = {word: said for word in VIEWER_WORDS if (said := translate(word)) != word}
        if not words or self._document.get("fxgraph-words"):
            return ""
        self._document["fxgraph-words"] = True
        return f'<script type="application/json" class="fxg-words">{json_block(words)}</script>'

    def _name(self, content: str, suffix: str) -> str:
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        return f"{file_stem(self._prefix)}-{digest}.{suffix}"

    def _address(self, name: str) -> str:
        folder = posixpath.join(self._builder.imgpath, "..", "_static", "fxgraph")
        return posixpath.normpath(posixpath.join(folder, quote(name)))


def address(link: nodes.Node) -> str:
    """Return the address of a resolved reference; empty for anything else."""
    if not isinstance(link, nodes.reference):
        return ""
    return str(link.get("refuri") or f"#{link['refid']}")


_PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><base href="{base}"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="{style}"></head>
<body class="fxg-table-page"><h1>{title}</h1>
<div class="fxg-tables">{content}</div></body></html>
"""
