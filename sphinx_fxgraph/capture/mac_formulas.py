"""Formulas for the multiply-accumulate operations of each operator, by convention.

It is the convention of fvcore's ``FlopCountAnalysis``, which timm's published tables are made with, to the digit:
https://github.com/facebookresearch/fvcore/blob/main/fvcore/nn/jit_handles.py. There activations and every other pooling
count nothing, so they count nothing here.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.utils.flop_counter import flop_registry

from sphinx_fxgraph.capture.torch_private import OpOverload, OpOverloadPacket

Operator = Any
"""A `OpOverload`, or a higher-order operator."""
Formula = Callable[..., int]
"""From the operator's arguments, and its result as ``out_val``, to MACs."""


class Product(NamedTuple):
    """The cost of an operator."""

    macs: int = 0
    uncounted: str = ""
    """The operator's name if ``macs`` does not count it."""
    other: int = 0
    """What another convention counts beside ``macs``: Fourier transforms, the real products in complex ones."""


def product(func: Operator, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> Product:
    """Return the MACs of an operator that has run.

    Args:
        func: the operator.
        args: its positional arguments.
        kwargs: its keyword arguments.
        out: its result.
    """
    formula = formula_of(func)
    if formula is None:
        return Product() if _is_free(func) else _uncounted(func, args, out)
    try:
        count = int(_nested(formula, args, kwargs, out))
    except Exception:  # noqa: BLE001 - a formula that does not fit these operands
        return Product(0, operator_name(func))
    if isinstance(args[0], torch.Tensor) and args[0].is_complex():
        return Product(count, COMPLEX, 3 * count)
    return Product(count)


COMPLEX = "complex products"
"""A complex multiply-accumulate operation counts as one, as in torch's counter. It takes four real ones."""


def operator_name(func: Operator) -> str:
    """Return the short name of an operator: ``_fft_r2c`` for torch's own, ``torchvision.nms`` for others."""
    name = str((getattr(func, "_schema", None) and func._schema.name) or getattr(func, "_name", func))
    return name.removeprefix("aten::").replace("::", ".")


def _functional_name(func: Operator) -> str:
    """Return the name of an operator without the underscore of its in-place form."""
    name = operator_name(func)
    return name if name.endswith("__") else name.removesuffix("_")


@functools.cache
def formula_of(func: Operator) -> Formula | None:
    """Return the formula of an operator, or None if there is none."""
    packet = getattr(func, "overloadpacket", func)
    name = _functional_name(func)
    if found := _FORMULAS.get(name):
        return found
    if found := next((formula for pattern, formula in _PATTERNS if re.fullmatch(pattern, name)), None):
        return found
    registered = flop_registry.get(packet)
    return None if registered is None else lambda *args, **kwargs: registered(*args, **kwargs) // 2


def _nested(formula: Formula, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> int:
    """Apply a formula; to strided nested tensors component by component."""
    parts = [_components(value) for value in (*args, out)]
    length = max((len(part) for part in parts if part is not None), default=0)
    if not length:
        return formula(*args, **kwargs, out_val=out)
    rows = [[value] * length if part is None else part for part, value in zip(parts, (*args, out), strict=True)]
    return sum(formula(*row[:-1], **kwargs, out_val=row[-1]) for row in zip(*rows, strict=True))


def _components(value: Any) -> list[torch.Tensor] | None:
    strided = isinstance(value, torch.Tensor) and value.is_nested and value.layout == torch.strided
    return [part[None] if part.dim() == 2 else part for part in value.unbind()] if strided else None


# -- formulas


def _matmul(left: torch.Tensor, right: torch.Tensor, *_: Any, **__: Any) -> int:
    """Count a product of two matrices, of batches of them, of a matrix and a vector, or of two vectors."""
    if left.layout != torch.strided or right.layout != torch.strided:
        return _sparse(left, right)
    return left.numel() * (right.shape[-1] if right.dim() > 1 else 1)


def _sparse(left: torch.Tensor, right: torch.Tensor) -> int:
    """Count a product with a sparse matrix: only its stored elements are multiplied."""
    if right.layout == torch.strided:
        return _stored(left) * (right.shape[-1] if right.dim() > 1 else 1)
    if left.layout == torch.strided:
        return _stored(right) * (left.shape[-2] if left.dim() > 1 else 1)
    columns = torch.bincount(left.to_sparse().coalesce().indices()[1], minlength=left.shape[1])
    rows = torch.bincount(right.to_sparse().coalesce().indices()[0], minlength=right.shape[0])
    return int(columns @ rows)


def _stored(tensor: torch.Tensor) -> int:
    return tensor._values().numel() if tensor.layout == torch.sparse_coo else tensor.values().numel()


def _added(_: Any, left: torch.Tensor, right: torch.Tensor, *__: Any, **___: Any) -> int:
    """Count a product that is added to the first argument."""
    return _matmul(left, right)


def _sampled(_: torch.Tensor, left: torch.Tensor, *__: Any, out_val: torch.Tensor, **___: Any) -> int:
    """Count a product of which only the elements of a sparse pattern are computed."""
    return _stored(out_val) * left.shape[-1]


def _grouped_mm(left: torch.Tensor, right: torch.Tensor, *_: Any, **__: Any) -> int:
    """Count a product by groups of rows or columns: each row meets the matrix of its own group.

    The groups' ends (``offs``) are values of a tensor; as many rows are counted as there are.
    """
    groups = left.shape[0] if left.dim() > right.dim() else 1  # of columns, each of which meets one matrix on the left
    return left.numel() * right.shape[-1] // groups


def _linear(given: torch.Tensor, *_: Any, out_val: torch.Tensor, **__: Any) -> int:
    return out_val.numel() * given.shape[-1]


def _foreach_mm(left: Sequence[torch.Tensor], right: Sequence[torch.Tensor], *_: Any, **__: Any) -> int:
    return sum(map(_matmul, left, right))


def _attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> int:
    """Count two products: the scores, and the values weighted by them; groups of queries may share a key and value."""
    return math.prod(query.shape[:-1]) * key.shape[-2] * (query.shape[-1] + value.shape[-1])


def _attention_backward(
    _: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *__: Any, **___: Any
) -> int:
    """Count five products: the scores once more, and the gradients of values, scores, queries and keys."""
    return math.prod(query.shape[:-1]) * key.shape[-2] * (3 * query.shape[-1] + 2 * value.shape[-1])


def _recurrent(sequence: torch.Tensor, weight: torch.Tensor, recurrent: torch.Tensor, *_: Any, **__: Any) -> int:
    """Count a layer of an LSTM, which the CPU runs as one operator: two products a step."""
    return math.prod(sequence.shape[:-1]) * (weight.numel() + recurrent.numel())


def _convolution(_: torch.Tensor, weight: torch.Tensor, *__: Any, out_val: torch.Tensor, **___: Any) -> int:
    """Count a convolution by its result: the elements of one filter for each."""
    return out_val.numel() * (weight.numel() // weight.shape[0])


def _transposed(given: torch.Tensor, weight: torch.Tensor, *_: Any, **__: Any) -> int:
    """Count a transposed convolution by its input."""
    return given.numel() * (weight.numel() // weight.shape[0])


def _over_time(given: torch.Tensor, weight: torch.Tensor, *_: Any, out_val: torch.Tensor, **__: Any) -> int:
    """Count `torch.conv_tbc`: sequences of time, batch, channels with a weight of width, channels in, channels out."""
    return out_val.numel() * weight.shape[0] * given.shape[-1]


def _distances(left: torch.Tensor, *_: Any, out_val: torch.Tensor, **__: Any) -> int:
    """Count distances between all pairs of rows: an operation for each coordinate of each pair."""
    return out_val.numel() * left.shape[-1]


def _own_distances(given: torch.Tensor, *_: Any, out_val: torch.Tensor, **__: Any) -> int:
    return out_val.numel() * given.shape[-1]


def _packed_linear(_: torch.Tensor, packed: Any, *__: Any, out_val: torch.Tensor, **___: Any) -> int:
    """Count a quantized linear layer, whose weight is packed."""
    return int(out_val.numel() * packed.unpack()[0].shape[-1])


def _packed_convolution(_: torch.Tensor, packed: Any, *__: Any, out_val: torch.Tensor, **___: Any) -> int:
    weight = packed.unpack()[0]
    return int(out_val.numel() * (weight.numel() // weight.shape[0]))


def _packed_transposed(given: torch.Tensor, packed: Any, *_: Any, **__: Any) -> int:
    weight = packed.unpack()[0]
    return int(given.numel() * (weight.numel() // weight.shape[0]))


_FORMULAS: dict[str, Formula] = {
    "mm": _matmul,
    "bmm": _matmul,
    "mv": _matmul,
    "dot": _matmul,
    "vdot": _matmul,
    "addmm": _added,
    "baddbmm": _added,
    "addmv": _added,
    "addbmm": _added,
    "addr": lambda _, left, right, *__, **___: left.numel() * right.numel(),
    "linear": _linear,
    "mkldnn_linear": _linear,
    "matmul": lambda left, *_, out_val, **__: out_val.numel() * left.shape[-1],  # of nested tensors
    "_addmm_activation": _added,
    "_foreach_mm": _foreach_mm,
    "_int_mm": _matmul,
    "_scaled_mm": _matmul,
    "_scaled_mm_v2": _matmul,
    "_grouped_mm": _grouped_mm,
    "_scaled_grouped_mm": _grouped_mm,
    "_scaled_grouped_mm_v2": _grouped_mm,
    "_mixed_dtypes_linear": _linear,
    "_weight_int8pack_mm": _linear,
    "_weight_int4pack_mm": _linear,
    "_weight_int4pack_mm_for_cpu": _linear,
    "_weight_int4pack_mm_with_scales_and_zeros": _linear,
    "_dyn_quant_matmul_4bit": _linear,
    "_sparse_mm": _matmul,
    "_sparse_addmm": _added,
    "_sparse_sparse_matmul": _matmul,
    "hspmm": _matmul,
    "sspaddmm": _added,
    "sparse_sampled_addmm": _sampled,
    "_trilinear": lambda left, weight, *_, **__: left.shape[0] * weight.numel(),  # nn.Bilinear
    "_cdist_forward": _distances,
    "_euclidean_dist": _distances,
    "_pdist_forward": _own_distances,
    "mkldnn_rnn_layer": _recurrent,
    "quantized.matmul": lambda left, *_, out_val, **__: out_val.numel() * left.shape[-1],
    "conv_tbc": _over_time,
    "torchvision.deform_conv2d": _convolution,
}
"""By the operator's name."""

_PATTERNS: tuple[tuple[str, Formula], ...] = (
    (r"_scaled_dot_product_\w*_backward", _attention_backward),
    (r"_scaled_dot_product_\w+", _attention),
    (r"slow_conv_transpose[23]d|(cudnn|miopen)_convolution_transpose", _transposed),
    (r"slow_conv3d_forward|slow_conv_dilated[23]d|_?conv_depthwise[23]d|mkldnn_convolution", _convolution),
    (r"(cudnn|miopen)(_depthwise)?_convolution(_add)?(_relu)?|_nnpack_spatial_convolution", _convolution),
    (r"_?quantized\.linear(_dynamic|_relu|_relu_dynamic|_dynamic_fp16|_leaky_relu|_tanh)?", _packed_linear),
    (r"_?quantized\.conv[123]d(_relu|_add|_add_relu|_dynamic)*", _packed_convolution),
    (r"_?quantized\.conv_transpose[123]d(_dynamic)?", _packed_transposed),
)


# -- operators without a formula


def _uncounted(func: Operator, args: Sequence[Any], out: Any) -> Product:
    name = operator_name(func)
    return Product(0, name, _fourier(args, out) if name.startswith("_fft_") else 0)


def _fourier(args: Sequence[Any], out: Any) -> int:
    """Count a fast Fourier transform by the usual estimate: 5 n log2(n) floating-point operations, two to a MAC.

    One between real and complex numbers takes half. The source is https://www.fftw.org/speed/method.html.
    """
    given, dims = args[0], args[1]
    whole = out if given.numel() < out.numel() else given  # the real side of a transform holds all elements
    points = math.prod(whole.shape[dim] for dim in dims)
    real = not (given.is_complex() and out.is_complex())
    return int(whole.numel() * (1.25 if real else 2.5) * math.log2(max(points, 1)))


@functools.cache
def _is_free(func: Operator) -> bool:
    """Return whether an operator multiplies no matrices: elementwise, a reduction, a view, a copy, a sort and so on."""
    if not isinstance(func, OpOverload):
        return False
    return _is_view(func) or _is_elementwise(func) or _FREE.fullmatch(_functional_name(func)) is not None


def _is_elementwise(func: OpOverload) -> bool:
    """Return whether any overload of the operator has the tag: some of them, and in-place forms, lack it."""
    base = getattr(getattr(torch.ops, func.namespace), _functional_name(func).rpartition(".")[2], func.overloadpacket)
    names = base.overloads() if isinstance(base, OpOverloadPacket) else ()  # type: ignore[no-untyped-call] # torch has no type for it
    return torch.Tag.pointwise in func.tags or any(torch.Tag.pointwise in getattr(base, name).tags for name in names)


def _is_view(func: OpOverload) -> bool:
    returns = func._schema.returns
    return bool(returns) and all(each.alias_info and not each.alias_info.is_write for each in returns)


_FREE = re.compile(
    r"(prims?|profiler|c10d|c10d_functional|_c10d_functional(_autograd)?|rngprims|debugprims|debug_mode_ops|export|_dtensor"
    r"|quantized_decomposed)\..*|(_?quantized|mkldnn_prepacked|onednn)\.\w*_(un|pre)pack\w*"
    r"|torchvision\.(nms|(ps_)?roi_(align|pool)|_\w+)"
    r"|torch_scatter\.\w+|pyg\.(index_sort|segment_\w+|softmax_csr)"
    r"|_?quantized\.(add|mul|cat|celu|elu|hardswish|instance_norm|layer_norm|group_norm|batch_norm|leaky_relu|sigmoid"
    r"|softmax|threshold|relu6?|prelu|clamp|dropout|max_pool[12]d|embedding)\w*"
    # families of torch's own operators
    r"|_foreach_\w+|_fused_\w+|_nested_\w+|_amp_\w+|_test_\w+|_philox_\w+|_to_\w+|\w+_copy|_?copy\w*|\w+_scatter"
    r"|_?(un)?safe_\w+|_?unsafe_\w+|_?upsample_\w+|\w*pool[123]d\w*|max_unpool[23]d|\w*_pad[123]d|constant_pad_nd"
    r"|\w*softmax\w*|\w*batch_norm\w*|native_\w+|_native_batch_norm\w*|_fake_quantize_\w+|fake_quantize_\w+|q_\w+"
    r"|_?(empty|full|new|ones|zeros|rand|randn|randint|randperm)(_\w+)?|\w+_window|\w+_like|\w+_indices|\w+_loss\w*"
    r"|is_\w+|_is_\w+|_has_\w+|_?functional_\w+|_functional_\w+|_?assert_\w+|_sparse_(sum|mask|broadcast|coo|csr|comp)\w*"
    r"|sparse_(resize|dim|mask|compressed|coo)\w*|_?(row|col|crow|ccol|)_?indices\w*|_?values\w*|_convert_\w+|_make_\w+"
    r"|_?linalg_(check_errors|cross|diagonal|vector_norm|norm)|quantize_per_\w+|_?unique\w*|sym_\w+|_mkldnn_\w+"
    r"|_?embedding_?\w*|_thnn_fused_\w+_cell|\w*_?ctc_loss|_sample_\w+|resize\w*|_resize\w*|set\w*|lift\w*|index\w*"
    r"|_index\w*|scatter\w*|gather\w*|masked_\w+|_masked_\w+|fft_r?fftfreq|grid_sampler_[23]d|_grid_sampler_\w+"
    r"|(cudnn_)?(affine_grid_generator|grid_sampler)|_histogramdd_\w+|_efficientzerotensor|_validate_\w+|_pin_memory"
    # single ones
    r"|(abs|all|alias|allclose|amax|amin|aminmax|_aminmax|any|arange|argmax|argmin|argsort|as_strided|bernoulli|bincount"
    r"|binomial|block_diag|bucketize|cat|cauchy|_chunk_cat|channel_shuffle|_coalesced?|col2im|complex|contiguous|count_nonzero"
    r"|_cudnn_init_dropout_state|cummax|cummin|_cummax_helper|_cummin_helper|cumprod|cumsum|cosine_similarity|dense_dim|dequantize"
    r"|detach|diag_embed|_dimI|_dimV|_dirichlet_grad|dist|equal|exponential|eye|fill|_fill_mem_eff_dropout_mask|flip"
    r"|floor_divide|from_file|_fw_primal|geometric|glu|glu_jvp|hash_tensor|histc|histogram|im2col|int_repr|isin"
    r"|_jagged_to_padded_dense_forward|_padded_dense_to_jagged_forward|kthvalue|_lazy_clone|linspace|_local_scalar_dense"
    r"|log_normal|log_sigmoid_forward|logcumsumexp|_logcumsumexp|logspace|logsumexp|lu_unpack|max|mean|median|min|mode|multinomial"
    r"|mvlgamma|nanmedian|_nnz|nonzero|nonzero_static|norm|normal|normal_functional|_pack_padded_sequence|pixel_shuffle"
    r"|pixel_unshuffle|poisson|polar|_prelu_kernel|_print|prod|put|qscheme|random|range|record_stream|renorm"
    r"|repeat|repeat_interleave|roll|rot90|rrelu_with_noise|rrelu_with_noise_functional|scalar_tensor|searchsorted"
    r"|segment_reduce|sort|_spdiags|squeeze|_stack|stack|_standard_gamma|_standard_gamma_grad|std|std_mean|sum|t|take|threshold"
    r"|to_mkldnn|to_padded_tensor|topk|trace|_transform_bias_rescale_qkv|transpose|tril|triu|uniform|unsqueeze|var|var_mean"
    r"|_unsafe_view|_use_(cudnn|miopen)_ctc_loss|_weight_norm_interface|zero|_add_relu|_masked_scale|_reshape_alias"
    r"|rms_norm|binary_cross_entropy|binary_cross_entropy_with_logits|hardswish|nansum|where|__[lr]shift__|__i[lr]shift__|_conj_physical|rsub|dropout|feature_dropout|clone|split|unbind|item|tolist|max_pool\w*|avg_pool\w*)_?"
    # gradients of these, in a model that takes gradients itself
    r"|(?!\w*(conv|linear|rnn|lstm_(?!cell)|attention|dist_|matmul|_mm_|trilinear|linalg))\w+_backward\w*"
)
"""The names of the operators that multiply no matrices and are not tagged as elementwise."""


ExtraFormula = Callable[[tuple[Any, ...], Any], int]
"""From arguments and result."""


def extra_macs(func: Any, args: tuple[Any, ...], out: Any) -> int:
    """Return what a dispatched operator counts in the convention ``all``, beside its MACs."""
    formula = _formula(func)
    return formula(args, out) if formula else 0


def pooled(graph: fx.Graph, model: nn.Module) -> None:
    """Add adaptive average pooling, an element for each of its input's, to the nodes of a graph that was run.

    The dispatcher sees such pooling to one place as a mean, which may as well be one that the model has asked for.
    """
    for node in graph.nodes:
        if _pools(node, model) and node.all_input_nodes:
            meta = node.all_input_nodes[0].meta
            given = meta.get("sizes", meta.get("outputs", ()))
            elements = sum(torch.Size(d for d in meta.shape if isinstance(d, int)).numel() for meta in given[:1])
            node.meta["extra_macs"] = (node.meta.get("extra_macs") or 0) + elements or None


def _pools(node: fx.Node, model: nn.Module) -> bool:
    if node.op == "call_module":
        try:
            return isinstance(model.get_submodule(node.target) if node.target else model, _MODULES)  # type: ignore[arg-type]  # a path
        except AttributeError:  # one that the model has not registered
            return False
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return node.op.startswith("call_") and name.lstrip("_").startswith("adaptive_avg_pool")


_MODULES = nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d


@functools.cache
def _formula(func: Any) -> ExtraFormula | None:
    packet = getattr(func, "overloadpacket", func)
    return _EXTRA_FORMULAS.get(getattr(packet, "__name__", ""))


def _norm(args: tuple[Any, ...], _: Any) -> int:
    """Mean and variance are computed; weight and bias are applied where there are any."""
    affine = any(isinstance(arg, torch.Tensor) for arg in args[1:3])
    return int(args[0].numel()) * (5 if affine else 4)


def _layer_norm(args: tuple[Any, ...], out: Any) -> int:
    return _norm((args[0], *args[2:4]), out)


def _batch_norm(args: tuple[Any, ...], out: Any) -> int:
    """With its running statistics a scale, and a shift where it is affine."""
    training = next((arg for arg in args[5:] if isinstance(arg, bool)), False)
    return _norm(args, out) if training else int(args[0].numel()) * (1 if args[1] is None else 2)


def _resized(weight: int) -> ExtraFormula:
    return lambda _, out: weight * int(out.numel())


_EXTRA_FORMULAS: dict[str, ExtraFormula] = {
    "native_batch_norm": _batch_norm,
    "cudnn_batch_norm": _batch_norm,
    "native_group_norm": _norm,
    "native_layer_norm": _layer_norm,
    "upsample_nearest2d": _resized(1),
    "upsample_bilinear2d": _resized(4),
    "grid_sampler_2d": _resized(4),
}
