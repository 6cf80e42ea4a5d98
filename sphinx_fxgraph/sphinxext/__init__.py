"""The only rooms that know Sphinx: the directive, the events between reading and writing, and the writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sphinx_fxgraph
from sphinx_fxgraph.sphinxext import (
    api_links,
    assets,
    autodoc,
    builders,
    capture,
    config,
    diff,
    domain,
    graph,
    nodes,
    resolve,
    static_image,
    table,
    zoo,
)

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register everything, in the order in which a build needs it."""
    config.setup(app)
    domain.setup(app)
    api_links.setup(app)
    graph.setup(app)
    diff.setup(app)
    autodoc.setup(app)
    capture.setup(app)
    resolve.setup(app)
    static_image.setup(app)
    nodes.setup(app)
    assets.setup(app)
    table.setup(app)
    zoo.setup(app)
    builders.setup(app)
    return {
        "version": sphinx_fxgraph.__version__,
        "env_version": 1,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
