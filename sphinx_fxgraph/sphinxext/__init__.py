"""The only rooms that know Sphinx: the directive, the events between reading and writing, and the writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sphinx_fxgraph
from sphinx_fxgraph.sphinxext import assets, config, nodes, roles
from sphinx_fxgraph.sphinxext.build import builders, capture
from sphinx_fxgraph.sphinxext.directives import autodoc, diff, graph, table, zoo
from sphinx_fxgraph.sphinxext.writers import latex, transforms

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register everything, in the order in which a build needs it."""
    config.setup(app)
    roles.setup(app)
    graph.setup(app)
    diff.setup(app)
    autodoc.setup(app)
    capture.setup(app)
    transforms.setup(app)
    latex.setup(app)
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
