"""A Sphinx extension that draws PyTorch models as they are implemented.

Importing this package imports neither torch nor Sphinx: the names of `sphinx_fxgraph.api` are looked up when used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx  # for types only
    from sphinx.util.typing import ExtensionMetadata  # for types only

    from sphinx_fxgraph.api import DrawOptions, ModelOptions, ModelRecord, autograd_graph, model_graph, model_record
    from sphinx_fxgraph.capture.errors import CaptureError
    from sphinx_fxgraph.errors import SpecError

__version__ = "0.1.0.dev0"

__all__ = [
    "CaptureError",
    "DrawOptions",
    "ModelOptions",
    "ModelRecord",
    "SpecError",
    "__version__",
    "autograd_graph",
    "model_graph",
    "model_record",
    "setup",
]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directives, domain and builders."""
    from sphinx_fxgraph import sphinxext

    return sphinxext.setup(app)


def __getattr__(name: str) -> Any:
    if name == "CaptureError":
        from sphinx_fxgraph.capture.errors import CaptureError

        return CaptureError
    if name == "SpecError":
        from sphinx_fxgraph.errors import SpecError

        return SpecError
    if name in __all__:
        from sphinx_fxgraph import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
