"""The eight hues: which operator has which, and what they look like on light and on dark pages.

Never colour alone: every box says its kind in words. All pairs keep a contrast of 4.5:1 for text and 3:1 for lines
(WCAG 2.2, 1.4.3 and 1.4.11), which a test computes.
"""

from __future__ import annotations

from dataclasses import dataclass

from sphinx_fxgraph.record.model import Node

CATEGORIES = ("matmul", "norm", "act", "pool", "math", "shape", "param", "io", "other")

_KINDS = {
    "matmul": """
        Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Linear Bilinear Embedding
        EmbeddingBag MultiheadAttention LSTM GRU RNN LSTMCell GRUCell RNNCell TransformerEncoderLayer
        TransformerDecoderLayer LazyLinear LazyConv1d LazyConv2d LazyConv3d conv1d conv2d conv3d
        conv_transpose1d conv_transpose2d conv_transpose3d linear bilinear embedding matmul mm bmm addmm
        baddbmm einsum tensordot dot mv scaled_dot_product_attention multi_head_attention_forward
    """,
    "norm": """
        BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LayerNorm GroupNorm RMSNorm InstanceNorm1d
        InstanceNorm2d InstanceNorm3d LocalResponseNorm CrossMapLRN2d batch_norm layer_norm group_norm
        rms_norm instance_norm local_response_norm normalize
    """,
    "act": """
        ReLU ReLU6 LeakyReLU PReLU RReLU ELU SELU CELU GELU SiLU Mish Sigmoid Tanh Softplus Softmax
        LogSoftmax Softmax2d Softmin Softsign Hardswish Hardsigmoid Hardtanh GLU LogSigmoid Threshold
        Tanhshrink Softshrink Hardshrink relu relu_ relu6 leaky_relu prelu elu selu celu gelu silu mish
        sigmoid tanh softplus softmax log_softmax hardswish hardsigmoid hardtanh glu logsigmoid softmin
        softsign threshold
    """,
    "pool": """
        MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d
        AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d LPPool1d LPPool2d
        FractionalMaxPool2d MaxUnpool2d Upsample UpsamplingBilinear2d UpsamplingNearest2d max_pool1d
        max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d
        adaptive_avg_pool3d adaptive_max_pool2d interpolate upsample grid_sample
    """,
    "math": """
        add sub mul div truediv floordiv mod neg pow sqrt rsqrt exp log sin cos abs clamp clamp_min
        clamp_max mean sum prod max min amax amin maximum minimum var std cumsum norm addcmul addcdiv
        reciprocal square iadd isub imul itruediv add_ sub_ mul_ div_ clamp_ rsub where masked_fill
        masked_fill_ erf floor ceil round eq ne lt le gt ge and_ or_ not_ invert logical_and logical_or
        logical_not outer cross lerp argmax argmin topk sort tril triu index_add index_add_ scatter_add scatter_add_
        log1p expm1 atan2
    """,
    "shape": """
        view reshape flatten Flatten Unflatten unflatten permute transpose t T contiguous expand expand_as
        repeat squeeze unsqueeze cat concat stack chunk split getitem narrow select index_select gather roll
        pad to float half double type type_as bfloat16 int long clone detach Dropout Dropout1d Dropout2d
        Dropout3d AlphaDropout dropout dropout1d dropout2d dropout3d Identity PixelShuffle PixelUnshuffle
        pixel_shuffle pixel_unshuffle ChannelShuffle ZeroPad2d ReflectionPad1d ReflectionPad2d
        ReplicationPad2d ConstantPad1d ConstantPad2d CircularPad1d CircularPad2d Fold Unfold unfold fold
        movedim swapaxes unbind tile repeat_interleave flip view_as reshape_as size getattr dim item bool to_dense
        scatter scatter_ one_hot
    """,
    "param": """
        arange zeros ones full empty eye linspace tensor zeros_like ones_like full_like empty_like new_zeros new_ones
        new_full new_empty rand randn rand_like randn_like
    """,
}
_CATEGORY = {kind: category for category, kinds in _KINDS.items() for kind in kinds.split()}


def category(node: Node) -> str:
    """The hue of an operator: by its kind, for a class of the model's own by torch's class it derives from."""
    if node.op in ("placeholder", "output"):
        return "io"
    if node.op == "get_attr":
        return "param"
    return _CATEGORY.get(node.kind) or _CATEGORY.get(node.kind.rstrip("_")) or _CATEGORY.get(node.base) or "other"


@dataclass(frozen=True)
class Colours:
    """One appearance. Fill and stroke by category; the rest by what it is used for."""

    paper: str
    ink: str
    muted: str
    edge: str
    weak: str
    frame: str
    frames: tuple[str, str, str]
    """Fill of module frames by depth."""
    fills: dict[str, str]
    strokes: dict[str, str]
    shares: tuple[str, ...]
    """Fill of boxes by their share of parameters, MACs or memory (see `shares`); all text on them is ``ink``."""


ACCENT = "#c2410c"
"""Of what failed, in print; the style sheet has one for each page."""

LIGHT = Colours(
    paper="#ffffff",
    ink="#1c2430",
    muted="#545f6f",
    edge="#667182",
    weak="#7d8897",
    frame="#c3ccd8",
    frames=("#f1f4f8", "#fafbfd", "#e8edf4"),
    fills={
        "matmul": "#dbe9ff", "norm": "#dff4e2", "act": "#ffe9cf", "pool": "#fbdfe8", "math": "#fff4c2",
        "shape": "#eceff3", "param": "#efe6fb", "io": "#ffffff", "other": "#e4f3f3",
    },
    strokes={
        "matmul": "#4d7fd0", "norm": "#3f8f52", "act": "#b87420", "pool": "#c05f83", "math": "#97800f",
        "shape": "#77828f", "param": "#8a66c2", "io": "#3c4757", "other": "#3f8a8c",
    },
    shares=("#ffffff", "#fff3e3", "#ffe4c4", "#ffd0a0", "#fdb77a", "#f79a55", "#ee7d33"),
)  # fmt: skip

DARK = Colours(
    paper="#14181f",
    ink="#e6eaf0",
    muted="#a3aebd",
    edge="#7f8b9c",
    weak="#6b7687",
    frame="#3a4557",
    frames=("#1a202a", "#171c25", "#212936"),
    fills={
        "matmul": "#1d3357", "norm": "#1c3b28", "act": "#44301a", "pool": "#43222f", "math": "#3d3617",
        "shape": "#252c37", "param": "#2f2544", "io": "#14181f", "other": "#17383a",
    },
    strokes={
        "matmul": "#5f90e0", "norm": "#58a86b", "act": "#c98d43", "pool": "#cf6f94", "math": "#b79d35",
        "shape": "#7b8798", "param": "#9b80c9", "io": "#b4bfcd", "other": "#4fa3a5",
    },
    shares=("#14181f", "#2b2319", "#3f2c18", "#553617", "#6b4016", "#824a15", "#995514"),
)  # fmt: skip
