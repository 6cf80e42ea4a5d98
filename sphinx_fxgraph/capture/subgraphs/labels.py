"""What a box adds to the kind of an operator: ``7×7 s2``, ``512→1000``, ``dim=1``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.nn.modules import adaptive, conv, dropout, fold, padding, pixelshuffle, pooling, rnn

from sphinx_fxgraph.capture.formatting import kind_of, short_dtype, short_name, text

MOST = 20
"""Characters of a detail made from arguments; a longer one is left to the tables."""


def module_detail(module: nn.Module) -> str:
    """The sizes that tell a leaf module from others of its class."""
    return next((write(module) for types, write in _MODULES if isinstance(module, types)), "")


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
    all amax amin any argmax argmin cat chunk concat cummax cumprod cumsum diff flatten gather index_select log_softmax
    logsumexp max mean median min norm prod scatter softmax sort split squeeze stack std sum tensor_split topk unbind
    unflatten unsqueeze var
    """.split()  # noqa: SIM905 - words read better than a list of strings
)
"""Functions that take a dimension as ``dim`` or as the first argument after the tensors."""

_SHAPED = frozenset({"broadcast_to", "contiguous", "expand", "expand_as", "reshape", "reshape_as", "view", "view_as"})
"""Functions of which the shape of the result says it all."""


def function_detail(node: fx.Node) -> str:
    """The arguments that are no tensors, where they are short."""
    kind = kind_of(short_name(node.target))
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
        dim = next((named[key] for key in ("dim", "start_dim", "axis") if key in named), None)
        if dim is None:
            at = 1 if kind in ("chunk", "split", "topk", "tensor_split") else 0
            dim = rest[at] if len(rest) > at else None
        return _short("" if dim is None else f"dim={text(dim)}")
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
