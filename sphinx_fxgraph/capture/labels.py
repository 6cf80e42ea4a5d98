"""Label an operator from its schema: ``7×7 s2``, ``512→1000``, ``dim=1``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.nn.modules import adaptive, conv, dropout, fold, padding, pixelshuffle, pooling, rnn

from sphinx_fxgraph.capture.formatting import kind_of, short_dtype, short_name, text
from sphinx_fxgraph.capture.torch_private import OpOverload

MOST = 20
"""Characters of a detail made from arguments; a longer one is left to the tables."""


def module_detail(module: nn.Module) -> str:
    """Return the sizes that tell a leaf module from others of its class."""
    try:
        return next((write(module) for types, write in _MODULES if isinstance(module, types)), "")
    except Exception:  # noqa: BLE001 - a label must not hide what the model itself says: Upsample without a size
        return ""


def _times(sizes: Any) -> str:
    """``3×3``; ``k3`` where there is only one dimension."""
    sizes = sizes if isinstance(sizes, Sequence) else (sizes,)
    return "×".join(map(str, sizes)) if len(sizes) > 1 else f"k{sizes[0]}"


def _window(module: Any) -> str:
    """Kernel, and what differs from the usual of stride, dilation and groups."""
    rank = _rank(module)
    parts = [_times(_spread(module.kernel_size, rank))]
    for mark, name in (("s", "stride"), ("d", "dilation")):
        sizes = _spread(getattr(module, name, 1), rank)
        if set(sizes) != {1}:
            parts.append(mark + ("×".join(map(str, sizes)) if len(set(sizes)) > 1 else str(sizes[0])))
    if getattr(module, "groups", 1) > 1:
        parts.append(f"g{module.groups}")
    return " ".join(parts)


def _rank(module: nn.Module) -> int:
    """How many dimensions a window slides in: the digit in the name of torch's class."""
    names = (cls.__name__ for cls in type(module).__mro__)
    return next((int(name[-2]) for name in names if name[-2:] in ("1d", "2d", "3d")), 2)


def _spread(sizes: Any, rank: int) -> tuple[Any, ...]:
    return tuple(sizes) if isinstance(sizes, Sequence) else (sizes,) * rank


def _adaptive(module: Any) -> str:
    sizes = _spread(module.output_size, _rank(module))
    return "→" + "×".join("n" if size is None else str(size) for size in sizes)


def _recurrent(module: Any) -> str:
    marks = f" ×{module.num_layers}" * (module.num_layers > 1) + " both ways" * module.bidirectional
    return f"{module.input_size}→{module.hidden_size}{marks}"


def _upsample(module: Any) -> str:
    if module.size is not None:
        return f"→{_joined(module.size)} {module.mode}"
    return f"×{_joined(module.scale_factor)} {module.mode}"


def _joined(sizes: Any) -> str:
    return "×".join(f"{size:g}" for size in (sizes if isinstance(sizes, Sequence) else (sizes,)))


_MODULES: tuple[tuple[Any, Any], ...] = (
    (conv._ConvNd, _window),
    (nn.Linear, lambda m: f"{m.in_features}→{m.out_features}"),
    (nn.Bilinear, lambda m: f"{m.in1_features}, {m.in2_features}→{m.out_features}"),
    ((nn.Embedding, nn.EmbeddingBag), lambda m: f"{m.num_embeddings}→{m.embedding_dim}"),
    ((pooling._AdaptiveAvgPoolNd, pooling._AdaptiveMaxPoolNd), _adaptive),
    ((pooling._MaxPoolNd, pooling._AvgPoolNd, pooling._LPPoolNd), _window),
    (dropout._DropoutNd, lambda m: f"p={m.p:g}"),
    (nn.LayerNorm, lambda m: "×".join(map(str, m.normalized_shape))),
    (nn.GroupNorm, lambda m: f"{m.num_groups} groups"),
    (rnn.RNNBase, _recurrent),
    (rnn.RNNCellBase, lambda m: f"{m.input_size}→{m.hidden_size}"),
    (nn.MultiheadAttention, lambda m: f"{m.embed_dim}, {m.num_heads} heads"),
    (nn.Upsample, _upsample),
    (nn.Flatten, lambda m: f"dim={m.start_dim}"),
    ((nn.Softmax, nn.LogSoftmax, nn.Softmin, nn.GLU), lambda m: f"dim={m.dim}"),
    (nn.LeakyReLU, lambda m: f"{m.negative_slope:g}"),
    (pixelshuffle.PixelShuffle, lambda m: f"×{m.upscale_factor}"),
    ((fold.Fold, fold.Unfold), _window),
    ((padding._ConstantPadNd, padding._ReflectionPadNd, padding._ReplicationPadNd), lambda m: text(m.padding)),
    (adaptive.AdaptiveLogSoftmaxWithLoss, lambda m: f"{m.in_features}→{m.n_classes}"),
)


# -- functions

_DIM = frozenset(
    """
    all amax amin any argmax argmin cat chunk concat cummax cumprod cumsum diff flatten gather index_select
    linalg_vector_norm log_softmax logsumexp max mean median min norm prod scatter softmax sort split squeeze
    stack std sum tensor_split topk unbind unflatten unsqueeze var
    """.split()  # noqa: SIM905 - words read better than a list of strings
)
"""Functions of which the dimension says most; without one, the other arguments by name."""

_SHAPED = frozenset({"broadcast_to", "contiguous", "expand", "expand_as", "reshape", "reshape_as", "view", "view_as"})
"""Functions of which the shape of the result says it all."""


def function_detail(node: fx.Node) -> str:
    """Return the arguments that are no tensors, where they are short."""
    try:
        return _function_detail(node, kind_of(short_name(node.target)))
    except Exception:  # noqa: BLE001 - a label must not end a capture, whatever a model calls its functions with
        return ""


def _function_detail(node: fx.Node, kind: str) -> str:
    if kind in _SHAPED:
        return ""
    rest = [arg for arg in node.args if not _has_node(arg) and not isinstance(arg, torch.device)]
    named = {
        key: arg for key, arg in node.kwargs.items() if not _has_node(arg) and not isinstance(arg, torch.device)
    }  # a device is that of the capture
    if kind == "interpolate":
        return text(named.get("mode", rest[2] if len(rest) > 2 else "nearest")).strip("'")
    if "dropout" in kind:
        return f"p={named.get('p', rest[0] if rest else 0.5):g}"
    if kind in _DIM:
        return _short(_dimension(node))
    if kind == "getitem" and rest:
        return _short(text(rest[-1]).strip("()"))
    if kind == "getattr" and rest:
        return _short(str(rest[-1]))
    parts = [_brief(arg) for arg in rest if arg is not None and arg is not False]
    parts += [
        f"{key}={_brief(arg)}"
        for key, arg in named.items()
        if arg is not None and arg is not False and key != "inplace"
    ]
    return _short(", ".join(parts))


def _dimension(node: fx.Node) -> str:
    """Return the dimension that a function works along, else its other arguments, by the names of its parameters."""
    given = {name: value for name, value in bound(node).items() if not _has_node(value)}
    dim = next((given[name] for name in ("dim", "start_dim", "axis") if given.get(name) is not None), None)
    if dim is not None:
        return f"dim={text(dim)}"
    said = {
        name: value
        for name, value in given.items()
        if value is not None and not isinstance(value, torch.device) and (name != "keepdim" or value)
    }
    return ", ".join(f"{name}={_brief(value)}" for name, value in said.items())


def bound(node: fx.Node) -> dict[str, Any]:
    """Return the arguments of a call by the names of the function's parameters, those that its schema or signature has.

    What torch writes in C has a schema for each overload: the first that takes these arguments is meant.
    """
    function = getattr(torch.Tensor, node.target, None) if isinstance(node.target, str) else node.target
    if inspect.isfunction(function):
        try:
            return dict(inspect.signature(function).bind(*node.args, **node.kwargs).arguments)
        except (TypeError, ValueError):
            return dict(node.kwargs)
    for schema in _schemas(function, short_name(node.target)):
        parameters = [each for each in schema.arguments if not each.kwarg_only]
        by_name = dict(zip((each.name for each in parameters), node.args, strict=False)) | dict(node.kwargs)
        known = {each.name: each for each in schema.arguments}
        if len(node.args) <= len(parameters) and all(
            name in known and _takes(str(known[name].type), value) for name, value in by_name.items()
        ):
            return by_name
    return dict(node.kwargs)


def _schemas(function: Any, name: str) -> list[Any]:
    """Return the schemas that a function of torch may have."""
    if isinstance(function, OpOverload):
        return [function._schema]
    packet = getattr(torch.ops.aten, name.rstrip("_"), None) if _is_builtin(function) else None
    return [getattr(packet, overload)._schema for overload in packet.overloads()] if packet else []


def _is_builtin(function: Any) -> bool:
    """Return whether a function is one of torch's that are written in C."""
    return callable(function) and not isinstance(function, type) and not inspect.isfunction(function)


def _takes(kind: str, value: Any) -> bool:
    """Return whether a parameter of a schema, ``Optional[List[int]]``, takes a value."""
    optional = kind.startswith("Optional[")
    kind = kind.removeprefix("Optional[").removesuffix("]") if optional else kind
    if value is None:
        return optional
    if isinstance(value, fx.Node):
        return bool(value.meta.get("outputs")) == (kind == "Tensor") or "outputs" not in value.meta
    if isinstance(value, tuple | list):
        return kind.startswith("List[") and all(_takes(kind[5:].removesuffix("]"), item) for item in value)
    if isinstance(value, bool):
        return kind == "bool"
    if isinstance(value, int):
        return kind in ("int", "SymInt", "number", "float", "Scalar", "List[int]", "List[int")
    if isinstance(value, float):
        return kind in ("float", "number", "Scalar")
    return kind == "str" if isinstance(value, str) else kind not in ("bool", "number", "float", "Tensor", "str")


def _brief(value: Any) -> str:
    """A number with four digits that count, a dtype by its abbreviation; the tables have them in full."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return short_dtype(value) if isinstance(value, torch.dtype) else text(value)


def _short(written: str) -> str:
    return written if len(written) <= MOST else ""


def _has_node(value: Any) -> bool:
    found: list[fx.Node] = []
    fx.node.map_arg(value, found.append)
    return bool(found)
