"""The directive ``settings``: every value of conf.py, from the one place where they are declared."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, get_type_hints

from sphinx.util.docutils import SphinxDirective
from sphinx.util.rst import escape

from sphinx_fxgraph.sphinxext.config import Config

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


class Settings(SphinxDirective):
    """A ``confval`` for each field of the configuration."""

    def run(self) -> list[nodes.Node]:
        """The descriptions."""
        default = dataclasses.asdict(Config())
        hints = get_type_hints(Config)
        text = "".join(
            f".. confval:: fxgraph_{field.name}\n"
            f"   :type: {getattr(hints[field.name], '__origin__', hints[field.name]).__name__}\n"
            f"   :default: ``{default[field.name]!r}``\n\n"
            f"   {escape(field.metadata['help'])}.\n\n"
            for field in dataclasses.fields(Config)
        )
        return self.parse_text_to_nodes(text)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Add the directive."""
    app.add_directive("settings", Settings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
