"""Names for the dimensions of inputs: ``N=1×C=3×H=224×W=224``, and ``N×512`` where torch.export says ``s0×512``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from sphinx_fxgraph.record.arguments import Argument, Size, Text, map_argument
from sphinx_fxgraph.record.model import Body, Dim, Node, Record, TensorMeta


def named(record: Record, dims: Sequence[Sequence[str]]) -> Record:
    """The record with its symbolic sizes renamed everywhere, and the fixed sizes of its inputs labelled.

    Args:
        record: what is shown.
        dims: names for each input, in their order; if there is one group, for all inputs of as many dimensions. Where
            the number of names is not that of dimensions, the input stays as it is.
    """
    root = record.bodies.get(record.root)
    if root is None or not dims:
        return record
    inputs = [node for node in root.nodes if node.op == "placeholder" and node.outputs]
    groups = dims if len(dims) > 1 else [dims[0]] * len(inputs)
    words = {node.name: group for node, group in zip(inputs, groups, strict=False)}
    symbols: dict[str, str] = {}
    for node in inputs:
        for meta in node.outputs:
            for size, word in _pairs(meta, words.get(node.name, ())):
                if isinstance(size, str):
                    symbols.setdefault(size, word)

    def label(node: Node) -> Node:
        given = words.get(node.name, ())
        outputs = tuple(
            replace(meta, shape=tuple(size if isinstance(size, str) else f"{word}={size}" for size, word in pairs))
            if (pairs := _pairs(meta, given))
            else meta
            for meta in node.outputs
        )
        return replace(node, outputs=outputs)

    labelled = tuple(label(node) if node.name in words else node for node in root.nodes)
    bodies = {**record.bodies, record.root: replace(root, nodes=labelled)}
    if symbols:
        rename = _renamer(symbols)
        bodies = {name: _body(body, rename) for name, body in bodies.items()}
    return replace(record, bodies=bodies)


def _pairs(meta: TensorMeta, words: Sequence[str]) -> list[tuple[Dim, str]]:
    return list(zip(meta.shape, words, strict=True)) if len(words) == len(meta.shape) else []


def _renamer(symbols: Mapping[str, str]) -> Callable[[str], str]:
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, symbols))})\b")
    return lambda text: pattern.sub(lambda found: symbols[found[1]], text)


def _body(body: Body, rename: Callable[[str], str]) -> Body:
    def metas(found: Sequence[TensorMeta]) -> tuple[TensorMeta, ...]:
        return tuple(
            replace(meta, shape=tuple(rename(size) if isinstance(size, str) else size for size in meta.shape))
            for meta in found
        )

    def size(argument: Argument) -> Argument:
        match argument:
            case Size(text) | Text(text):
                return type(argument)(rename(text))
        return argument

    inputs = tuple(replace(given, tensors=metas(given.tensors)) for given in body.inputs)
    nodes = tuple(
        replace(
            node,
            outputs=metas(node.outputs),
            args=tuple(map_argument(argument, size) for argument in node.args),
            kwargs={key: map_argument(argument, size) for key, argument in node.kwargs.items()},
            detail=rename(node.detail),
            result=rename(node.result),
        )
        for node in body.nodes
    )
    return replace(body, inputs=inputs, nodes=nodes)
