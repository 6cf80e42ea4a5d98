"""transformers' models by their type: the default configuration with two layers, and what such a model may take.

Experts, vocabularies and the insides of feed-forward networks are made small: they add size, and nothing to a graph.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from transformers import AutoModel, PretrainedConfig
from transformers.initialization import no_init_weights
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING, MODEL_MAPPING_NAMES

if TYPE_CHECKING:
    from torch import nn

_LAYERS = (
    "num_hidden_layers",
    "num_layers",
    "n_layer",
    "n_layers",
    "encoder_layers",
    "decoder_layers",
    "num_encoder_layers",
    "num_decoder_layers",
    "depth",
)

_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts")
_WIDTHS = (
    "intermediate_size",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "ffn_dim",
    "d_ff",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "ffn_hidden_size",
    "expert_ffn_hidden_size",
)
"""Of what stands inside feed-forward networks, which nothing else has to fit."""
_TOKENS = 2_000


def kinds() -> Iterator[str]:
    """All types that have a base model."""
    yield from sorted(MODEL_MAPPING_NAMES)


def build(kind: str) -> nn.Module:
    """The base model of a type, two layers of it; with all layers where that configuration is none."""
    cls = CONFIG_MAPPING[kind]
    for arguments in (_small(cls), _small(cls, widths=True)):
        with contextlib.suppress(Exception):  # a configuration that must have its own number of layers
            return _built(cls(**arguments))
    return _built(cls())


def _built(config: PretrainedConfig) -> nn.Module:
    with no_init_weights():  # the values of weights are in no graph, and most of the time
        model: nn.Module = AutoModel.from_config(config)
    model.config.use_cache = False
    return model


def config_of(kind: str) -> PretrainedConfig:
    """The configuration that `build` takes first."""
    cls = CONFIG_MAPPING[kind]
    try:
        return cls(**_small(cls))
    except Exception:  # noqa: BLE001 - as in `build`
        return cls()


def _small(cls: type[PretrainedConfig], *, widths: bool = False) -> dict[str, Any]:
    """The arguments of a configuration that make it shallow; ``widths`` keeps all sizes."""
    default = cls()
    if hasattr(default, "depths"):  # stages of so many layers each, whose sizes stand in other lists
        return {}
    small: dict[str, Any] = {
        name: 2 for name in _LAYERS if isinstance(getattr(default, name, None), int) and getattr(default, name) > 2
    }
    if not widths:
        most = {**dict.fromkeys(_EXPERTS, _experts(default)), **dict.fromkeys(_WIDTHS, 512), "vocab_size": _TOKENS}
        small |= {name: number for name, number in most.items() if _is_more(default, name, number)}
        if "vocab_size" in small:
            tokens = [name for name in default.to_dict() if "token_i" in name and _is_more(default, name, _TOKENS - 1)]
            small |= {name: getattr(default, name) % _TOKENS for name in tokens}
    layers = getattr(default, "num_hidden_layers", None)
    if "num_hidden_layers" in small:  # what is said layer by layer
        listed = {name: value for name, value in default.to_dict().items() if isinstance(value, list)}
        small |= {name: _two(value) for name, value in listed.items() if len(value) == layers}
    for name in getattr(cls, "sub_configs", {}):
        value = getattr(default, name, None)
        if isinstance(value, PretrainedConfig):
            kind = type(value)
            with contextlib.suppress(Exception):  # a part that must have its own number of layers
                small[name] = kind(**{**value.to_diff_dict(), **_small(kind, widths=widths)})
    return small


def _two(layers: list[Any]) -> list[Any]:
    """Two layers, of two kinds if there are."""
    return [layers[0], next((layer for layer in layers if layer != layers[0]), layers[0])]


def _experts(config: PretrainedConfig) -> int:
    """How many are enough for those that a token is sent to, from several groups."""
    groups, chosen = (getattr(config, name, None) or 1 for name in ("n_group", "num_experts_per_tok"))
    return max(8, 4 * groups, chosen)


def _is_more(config: PretrainedConfig, name: str, than: int) -> bool:
    value = getattr(config, name, None)
    return isinstance(value, int) and value > than


def inputs(kind: str) -> list[str]:
    """Texts of inputs, the likeliest first."""
    cls = CONFIG_MAPPING[kind]
    config = config_of(kind)
    models = MODEL_MAPPING[cls]
    model = models[0] if isinstance(models, tuple) else models
    parameters = inspect.signature(model.forward).parameters
    names = set(parameters)
    main = model.main_input_name
    needed = [name for name in names if name.endswith("_input_ids") and parameters[name].default is inspect._empty]
    extra = "".join(f", {name}=i64[1, 16] < 1000" for name in sorted(needed))
    if "decoder_input_ids" in names:
        extra += f", decoder_input_ids={_ids(config)}"
    texts = []
    if "input_ids" in names:
        pixels = [f", pixel_values={text}" for text in _pixels(config)] if "pixel_values" in names else []
        texts += [f"input_ids={_ids(config)}{pixel}{extra}" for pixel in ["", *pixels]]
    if main == "pixel_values" or "pixel_values" in names:
        texts += [f"pixel_values={text}" for text in _pixels(config)]
    if main == "input_values" or "input_values" in names:
        texts += [f"input_values=f32[1, 16000]{extra}"]
        texts += [f"input_values=f32[1, {_dim(config, 'max_length', 1024)}, {_dim(config, 'num_mel_bins', 128)}]"]
    if main == "input_features" or "input_features" in names:
        bins = _dim(config, "num_mel_bins", _dim(config, "feature_size", 80))
        texts += [f"input_features=f32[1, {bins}, 3000]{extra}", f"input_features=f32[1, 100, {bins}]{extra}"]
    if "past_values" in names:
        texts += [f"past_values=f32[1, {_dim(config, 'context_length', 32)}, {_dim(config, 'num_input_channels', 1)}]"]
    texts += _more(config, names, main, texts)
    return list(dict.fromkeys(texts)) or ["1, 3, 224, 224"]


def _more(config: PretrainedConfig, names: set[str], main: str, texts: list[str]) -> Iterator[str]:
    """What takes several inputs that must fit each other."""
    sounds = [text for text in texts if text.startswith(("input_values", "input_features"))]
    if "input_features" in names:
        sounds.append("input_features=f32[1, 1, 1001, 64]")  # a spectrogram as an image
        yield sounds[-1]
    if "input_features_mask" in names:
        frames = (text.partition("]")[0].rpartition(", ")[2] for text in sounds)
        yield from (
            f"{text}, input_features_mask=1 <= i64[1, {count}] < 2" for text, count in zip(sounds, frames, strict=True)
        )
    if "input_ids" in names:
        yield from (f"input_ids={_ids(config)}, {sound}" for sound in sounds)
        token = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
        if "pixel_values" in names and token:  # nothing but places for the image
            places = f"input_ids={token} <= i64[1, {{}}] < {token + 1}, pixel_values={_pixels(config)[0]}"
            yield from (places.format(count) for count in _image_tokens(config))
    if "grid_thw" in names:  # four times four times four patches, each a row
        size = _dim(config, "in_channels", _dim(config, "num_channels", 3)) * _dim(config, "patch_size", 14) ** 2
        rows = f"f32[64, {size * _dim(config, 'temporal_patch_size', 1)}]"
        name = "pixel_values" if "pixel_values" in names else "hidden_states"
        yield f"{name}={rows}, grid_thw=4 <= i64[1, 3] < 5"
    if "input_values" in names or "audio_codes" in names:  # a wave of one channel, as codecs take it
        yield from (f"input_values=f32[1, {channels}, 19200]" for channels in (1, _dim(config, "audio_channels", 2)))
        yield f"input_values=f32[1, 19200, {_dim(config, 'num_mel_bins', 80)}]"
    if "bbox" in names:
        yield from (f"input_ids={_ids(config)}, bbox={boxes}" for boxes in ("i64[1, 16, 4] < 1000", "f32[1, 16, 8]"))
    if "pixel_values_videos" in names:
        yield f"pixel_values_videos=f32[1, 8, 3, {_dim(config, 'image_size', 224)}, {_dim(config, 'image_size', 224)}]"
    if {"visual_feats", "visual_pos"} <= names:
        yield f"input_ids={_ids(config)}, visual_feats=f32[1, 10, 2048], visual_pos=f32[1, 10, 4]"
    if main == "pixel_values":  # a pair of grey images
        yield "pixel_values=f32[1, 2, 1, 224, 224]"
    if main == "inputs":
        yield f"inputs=f32[1, 16, {_dim(config, 'd_model', 768)}]"
    if {"query_embeds", "encoder_hidden_states"} <= names:
        width = _dim(config, "encoder_hidden_size", 768)
        yield f"query_embeds=f32[1, 8, {_dim(config, 'hidden_size', 768)}], encoder_hidden_states=f32[1, 16, {width}]"


def _image_tokens(config: PretrainedConfig) -> list[int]:
    """How many tokens an image may be: as the configuration says, or one for each patch."""
    inner = getattr(config, "vision_config", config)
    side = _dim(inner, "image_size", 224) // _dim(inner, "patch_size", 16)
    told = (_dim(config, name, 0) for name in ("num_query_tokens", "image_seq_length", "mm_tokens_per_image"))
    return [count for count in (*told, side**2, side**2 + 1, side**2 // 4) if count]


def _ids(config: PretrainedConfig) -> str:
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    size = _dim(text, "vocab_size", _dim(config, "vocab_size", 1000))
    return f"i64[1, 16] < {size}"


def _pixels(config: PretrainedConfig) -> list[str]:
    """Images of the size that the configuration, or the part of it for images, names."""
    inner = next(
        (value for name in ("vision_config", "backbone_config") if (value := getattr(config, name, None))), config
    )
    size = getattr(inner, "image_size", None) or getattr(config, "image_size", None) or 224
    if isinstance(size, dict):
        size = [size.get("height", 224), size.get("width", 224)]
    height, width = size if isinstance(size, list | tuple) and len(size) == 2 else (size, size)
    if not isinstance(height, int):
        height = width = 224
    channels = _dim(inner, "num_channels", 3)
    frames = _dim(config, "num_frames", 8)
    return [
        f"f32[1, {channels}, {height}, {width}]",
        f"f32[1, {frames}, {channels}, {height}, {width}]",
        "f32[1, 3, 512, 512]",
    ]


def _dim(config: PretrainedConfig, name: str, otherwise: int) -> int:
    value = getattr(config, name, None)
    return value if isinstance(value, int) and value > 0 else otherwise
