"""The directive ``example``: reStructuredText as it is written, the same in MyST, and what becomes of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.addnodes import only
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

_DIRECTIVE = re.compile(
    r"""^\.\.\ (?P<name>[\w-]+)::
    (?:\ (?P<argument>.*(?:\n\ {3,}(?!:).+)*))?  # goes on over lines that are no option
    (?P<rest>(?:\n\ {3}.*|\n)*)""",
    re.MULTILINE | re.VERBOSE,
)

_ROLE = re.compile(r":([a-z][\w:-]*):(`[^`]+`)")


def as_myst(text: str) -> str:
    """Directives and roles of reStructuredText in MyST; other text stays as it is."""

    def fence(match: re.Match[str]) -> str:
        argument = " ".join(line.strip() for line in (match["argument"] or "").splitlines())
        rest = "\n".join(line[3:] for line in match["rest"].strip("\n").splitlines())
        head = f"```{{{match['name']}}} {argument}".rstrip()
        return f"{head}\n{rest}\n```\n\n" if rest else f"{head}\n```\n\n"

    return _ROLE.sub(r"{\1}\2", _DIRECTIVE.sub(fence, text)).rstrip("\n")


_TABS = """\
<div class="example-tabs" role="group" aria-label="Language of the example">
<input type="radio" name="{0}" id="{0}-rst" checked><label for="{0}-rst">reStructuredText</label>
<input type="radio" name="{0}" id="{0}-myst"><label for="{0}-myst">MyST</label>
<div>"""


class Example(SphinxDirective):
    """Shows its content in both languages, as tabs in HTML and one after the other elsewhere, then the result."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the code in both languages and the parsed content."""
        text = "\n".join(self.content)
        elsewhere = only(expr="not html")
        elsewhere += nodes.paragraph("", "or in MyST")
        return [
            self._html(_TABS.format(f"example-{self.env.new_serialno('example')}")),
            self._block(text, "rst"),
            self._html("</div><div>"),
            elsewhere,
            self._block(as_myst(text), "md"),
            self._html("</div></div>"),
            *self.parse_content_to_nodes(),
        ]

    def _html(self, text: str) -> nodes.raw:
        return nodes.raw("", text, format="html")

    def _block(self, text: str, language: str) -> nodes.literal_block:
        block = nodes.literal_block(text, text, language=language)
        self.set_source_info(block)
        return block


def setup(app: Sphinx) -> ExtensionMetadata:
    """Add the directive and the style of its tabs."""
    app.add_directive("example", Example)
    app.add_css_file("handbook.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
