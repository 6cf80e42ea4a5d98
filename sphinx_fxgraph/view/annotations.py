"""Annotate nodes: categories of operators, names of dimensions, shared weights."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

from sphinx_fxgraph.record.arguments import Argument, Size, Text, map_argument
from sphinx_fxgraph.record.model import Body, Dim, Node, Record, TensorMeta, join

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
        log1p expm1 atan2 and or xor not lshift rshift bitwise_and bitwise_or bitwise_xor bitwise_not
        bitwise_left_shift bitwise_right_shift logical_xor absolute acos acosh asin asinh atan atanh arccos arccosh
        arcsin arcsinh arctan arctan2 arctanh addbmm addmv addr ceil clip conj_physical copysign cosh cumprod deg2rad
        digamma divide erfc erfinv exp2 fix float_power floor_divide fmod frac gcd greater greater_equal heaviside
        hypot i0 igamma igammac index_reduce lcm ldexp less less_equal lgamma log10 log2 logit map map2 multiply
        mvlgamma nan_to_num negative nextafter not_equal polygamma rad2deg remainder renorm scatter_reduce sgn sign
        sinc sinh subtract tan true_divide trunc xlogy linalg_vector_norm vector_norm apply tril_ triu_
    """,
    "shape": """
        view reshape flatten Flatten Unflatten unflatten permute transpose t T contiguous expand expand_as
        repeat squeeze unsqueeze cat concat stack chunk split getitem narrow select index_select gather roll
        pad to float half double type type_as bfloat16 int long clone detach Dropout Dropout1d Dropout2d
        Dropout3d AlphaDropout dropout dropout1d dropout2d dropout3d Identity PixelShuffle PixelUnshuffle
        pixel_shuffle pixel_unshuffle ChannelShuffle ZeroPad2d ReflectionPad1d ReflectionPad2d
        ReplicationPad2d ConstantPad1d ConstantPad2d CircularPad1d CircularPad2d Fold Unfold unfold fold
        movedim swapaxes unbind tile repeat_interleave flip view_as reshape_as size getattr dim item bool to_dense
        scatter scatter_ one_hot setitem copy index_copy index_fill index_put put masked_scatter as_strided swapdims
        resize resize_as resize_as_sparse sparse_resize sparse_resize_and_clear set requires_grad share_memory
        fill_diagonal to_copy
    """,
    "param": """
        arange zeros ones full empty eye linspace tensor zeros_like ones_like full_like empty_like new_zeros new_ones
        new_full new_empty rand randn rand_like randn_like zero fill normal uniform bernoulli random exponential
        cauchy geometric log_normal
    """,
}
_CATEGORY = {kind: category for category, kinds in _KINDS.items() for kind in kinds.split()}


def category(node: Node) -> str:
    """Return the category of an operator by its kind, or by the class of torch that its class derives from."""
    if node.op in ("placeholder", "output"):
        return "io"
    if node.op == "get_attr":
        return "param"
    return _CATEGORY.get(node.kind) or _CATEGORY.get(node.kind.strip("_")) or _CATEGORY.get(node.base) or "other"


def named(record: Record, dims: Sequence[Sequence[str]]) -> Record:
    """Return the record with its symbolic sizes renamed everywhere, and the fixed sizes of its inputs labelled.

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


class Sharing:
    """Finds the calls that share weights.

    Args:
        record: the model.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self._weighty: dict[str, bool] = {}
        self._calls: dict[str, Counter[str]] = {}

    def words(self, name: str, node: Node) -> str:
        """Return ``shared with backbone``, ``shared by 2 calls``, ``weight of embed``, or nothing.

        Args:
            name: of the body that the call is in.
            node: the call.
        """
        if node.op != "call_module" or not self._has_weights(node):
            return ""
        module = _module(node)
        if module != node.name:
            return f"shared with {module}"
        if name not in self._calls:
            self._calls[name] = Counter(map(_module, self.record.bodies[name].nodes))
        if self._calls[name][module] > 1:
            return f"shared by {self._calls[name][module]} calls"
        return f"weight of {other}" if (other := self._tied(name, node)) else ""

    def _has_weights(self, node: Node) -> bool:
        if not node.body:
            return bool(node.parameters)
        if node.body not in self._weighty:
            self._weighty[node.body] = any(map(self._has_weights, self.record.bodies[node.body].nodes))
        return self._weighty[node.body]

    def _tied(self, name: str, node: Node) -> str:
        """Return the last name of the module that a leaf's weight is counted at, if that is another one."""
        if not self.record.ties or node.body or name not in self._paths:
            return ""
        path = join(self._paths[name], node.name)
        for meta in node.parameters:
            if tensor := self.record.ties.get(join(path, meta.path)):
                return tensor.rpartition(".")[0].rpartition(".")[2]
        return ""

    @cached_property
    def _paths(self) -> dict[str, str]:
        """Return the paths of the bodies that run once."""
        found = {self.record.root: [""]}
        for path, _, node in self.record.walk():
            if node.body:
                found.setdefault(node.body, []).append(join(path, node.name))
        return {name: paths[0] for name, paths in found.items() if len(paths) == 1}


def _module(node: Node) -> str:
    """Return the name of the module that is called, without the number of the call."""
    return re.sub(r"@\d+$", "", node.name) if node.op == "call_module" else ""
