"""Style sheets and scripts: in the output, and linked on the pages that need them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

from sphinx_fxgraph.sphinxext.domain import fx_domain

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders import Builder

STATIC = Path(__file__).parent.parent / "static"


def copy_assets(app: Sphinx, builder: Builder) -> None:  # noqa: ARG001 - an event handler
    """Put style sheet and script into the output, if any page has a graph."""
    if builder.format == "html" and fx_domain(builder.env).uses:
        copy_static(builder, "fxgraph.css", "fxgraph.js")


def copy_static(builder: Builder, *names: str) -> None:
    """Put files of ours into the output.

    Not by Sphinx's copy_asset_file: it warns of the file that an older version of ours has left there.
    """
    for name in names:
        write(Path(builder.outdir, "_static", name), (STATIC / name).read_text(encoding="utf-8"))


def add_assets(app: Sphinx, *page: Any) -> None:
    """Link them on the pages that have a graph."""
    link_static(app, page, nodes.figure, "fxgraph", "fxgraph")


def link_static(app: Sphinx, page: Sequence[Any], kind: type[nodes.Element], marked: str, name: str) -> None:
    """Link a style sheet of ours and its script on a page that has a node with a class.

    Args:
        app: adds them; no script in e-books.
        page: what Sphinx says of it, the doctree last.
        kind: of the node.
        marked: its class.
        name: that of the files.
    """
    doctree: nodes.document | None = page[-1]
    if doctree is not None and any(marked in found["classes"] for found in doctree.findall(kind)):
        app.add_css_file(f"{name}.css")
        if app.builder.name != "epub":
            app.add_js_file(f"{name}.js", loading_method="defer")


def write(path: Path, content: str | bytes) -> None:
    """Put a file into the output. Pages are written by several processes, and two of them may show one model."""
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    temporary.write_bytes(data)
    temporary.replace(path)


def setup(app: Sphinx) -> None:
    """Tell Sphinx where they are needed."""
    app.connect("write-started", copy_assets)
    app.connect("html-page-context", add_assets)
