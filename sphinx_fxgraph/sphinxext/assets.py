"""Style sheets and scripts: in the output, and linked on the pages that need them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from docutils import nodes

from sphinx_fxgraph.sphinxext.domain import fx_domain

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders import Builder

STATIC = Path(__file__).parent.parent / "static"


class _Part(NamedTuple):
    """Files that some nodes need."""

    files: tuple[str, ...]
    kind: type[nodes.Element]
    marked: str
    """A class of the nodes."""
    noted: str
    """The pages that have any, in the domain."""


_PARTS = (
    _Part(("fxgraph.css", "fxgraph.js"), nodes.figure, "fxgraph", "uses"),
    # The script finds out whether the page is dark.
    _Part(("fxgraph.css", "fxgraph.js"), nodes.bullet_list, "fxg-thumbs", "zoos"),
    _Part(("fxgraph-table.css", "fxgraph-table.js"), nodes.table, "fxg-table", "tables"),
    _Part(("fxgraph-diff.css",), nodes.figure, "fxg-diff", "differences"),
)


_LOADED = {"fxgraph.js": "fxgraph-nodes.js"}
"""What a script loads when a reader first asks for it."""


def copy_assets(app: Sphinx, builder: Builder) -> None:  # noqa: ARG001 - an event handler
    """Put the files that any page needs into the output.

    Not by Sphinx's copy_asset_file: it warns of the file that an older version of ours has left there.
    """
    needed = {name for part in _PARTS if getattr(fx_domain(builder.env), part.noted) for name in part.files}
    needed |= {_LOADED[name] for name in needed & _LOADED.keys()}
    for name in sorted(needed) if builder.format == "html" else ():
        content = (STATIC / name).read_text(encoding="utf-8")
        write(Path(builder.outdir, "_static", name), compact(content) if name.endswith(".css") else content)


def compact(sheet: str) -> str:
    """Return a style sheet without comments and white space; none of ours has either in a string."""
    sheet = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    sheet = re.sub(r"\s+", " ", sheet)
    return re.sub(r" ?([{};,>]) ?", r"\1", sheet).replace(": ", ":").replace(";}", "}").strip() + "\n"


def add_assets(
    app: Sphinx,
    pagename: str,  # noqa: ARG001 - an event handler
    templatename: str,  # noqa: ARG001 - an event handler
    context: dict[str, Any],  # noqa: ARG001 - an event handler
    doctree: nodes.document | None,
) -> None:
    """Link the files that a page needs; no script in e-books."""
    if doctree is None:
        return
    parts = [part for part in _PARTS if any(part.marked in node["classes"] for node in doctree.findall(part.kind))]
    for name in dict.fromkeys(name for part in parts for name in part.files):
        if name.endswith(".css"):
            app.add_css_file(name)
        elif app.builder.name != "epub":
            app.add_js_file(name, loading_method="defer")


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
