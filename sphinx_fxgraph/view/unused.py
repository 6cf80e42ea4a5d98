"""View options that change nothing, most likely for a slip of the pen."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from sphinx_fxgraph.record.model import Record, join

if TYPE_CHECKING:
    from sphinx_fxgraph.options import ViewOptions


def unused_options(record: Record, look: ViewOptions) -> Iterator[str]:
    """Return a sentence for each pattern of ``open`` that no module has, and for ``dims`` that fit no input."""
    paths = [join(path, node.name) for path, _, node in record.walk() if node.body] if look.open else []
    for pattern in look.open:
        if not any(fnmatchcase(path, pattern) for path in paths):
            close = difflib.get_close_matches(pattern, paths, 1) or paths[:1]
            hint = f"; for example {close[0]}" if close else "; there is none"
            yield f"open: no module of the graph is called {pattern!r}{hint}"
    root = record.bodies.get(record.root)
    inputs = [node for node in root.nodes if node.op == "placeholder" and node.outputs] if root else []
    if not look.dims or not inputs:
        return
    if len(look.dims) > len(inputs):
        yield f"dims: names for {len(look.dims)} inputs, and the model has {len(inputs)}"
    groups = (
        list(zip(inputs, look.dims, strict=False)) if len(look.dims) > 1 else [(node, look.dims[0]) for node in inputs]
    )
    fits = [any(len(meta.shape) == len(group) for meta in node.outputs) for node, group in groups]
    if len(look.dims) == 1 and not any(fits):
        found = ", ".join(sorted({str(len(meta.shape)) for node in inputs for meta in node.outputs}))
        yield f"dims: {len(look.dims[0])} names, and the inputs have {found} dimensions"
    for (node, group), fit in zip(groups, fits, strict=True):
        if len(look.dims) > 1 and not fit:
            yield f"dims: {len(group)} names for {node.name}, which has {len(node.outputs[0].shape)} dimensions"
