"""What the sweep captures, by tier. A package that is not installed gives no targets."""

from __future__ import annotations

import csv
import functools
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))  # zoo, the gallery's models


@dataclass(frozen=True)
class Target:
    """One model and what it may be called with."""

    zoo: str
    """The distribution it is from."""
    name: str
    target: str
    inputs: Sequence[str] | Callable[[], Sequence[str]]
    """The first of these texts that the model takes is used; a function where it takes a package to know them."""
    code: str = ""
    method: str = ""

    def candidates(self) -> Sequence[str]:
        """The texts of inputs to try."""
        return self.inputs() if callable(self.inputs) else self.inputs


def of_tier(tier: str) -> Iterator[Target]:
    """The targets of a tier that can be imported here."""
    yield from plain()
    if _installed("monai"):
        yield from monai()
    if tier == "smoke":
        return
    yield from corpus()
    if _installed("efficientnet_pytorch"):
        yield from others()
    yield from written_out()
    if _installed("torch_geometric"):
        yield from graph_networks()
    if _installed("torchvision"):
        yield from torchvision(tier == "all")
    if _installed("segmentation_models_pytorch"):
        yield from segmentation()
    if _installed("transformers"):
        yield from transformers(tier == "all")
    if _installed("timm"):
        yield from timm(tier == "all")


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _rows(zoo: str, prefix: str, rows: Sequence[tuple[str, str]]) -> Iterator[Target]:
    for target, inputs in rows:
        yield Target(zoo, target, f"{prefix}{target}", (inputs,))


def written_out() -> Iterator[Target]:
    """The small configurations in ``zoos.csv``: of diffusers, kornia, neuraloperator, torchaudio and braindecode."""
    with Path(__file__).with_name("zoos.csv").open(encoding="utf-8", newline="") as file:
        for zoo, package, target, inputs in list(csv.reader(file))[1:]:
            if _installed(package):
                yield Target(zoo, target, f"{package}.{target}", (inputs,))


# -- torch alone


def plain() -> Iterator[Target]:
    """Torch's own modules as whole models, and the gallery's."""
    yield from _rows("torch", "torch.nn.", _TORCH)
    yield from _rows("torch", "zoo.", _GALLERY)


_TORCH = [
    ("TransformerEncoderLayer(64, 4, batch_first=True)", "2, 10, 64"),
    ("TransformerDecoderLayer(64, 4, batch_first=True)", "(2, 10, 64), (2, 7, 64)"),
    ("Transformer(64, 4, 2, 2, batch_first=True)", "(2, 10, 64), (2, 7, 64)"),
    ("LSTM(8, 16, 2, batch_first=True)", "2, 5, 8"),
    ("GRU(8, 16, bidirectional=True)", "5, 2, 8"),
    ("LSTMCell(8, 16)", "2, 8"),
    ("MultiheadAttention(32, 4)", "(5, 2, 32), (5, 2, 32), (5, 2, 32)"),
    ("BatchNorm2d(4)", "1, 4, 8, 8"),
    ("EmbeddingBag(100, 8)", "i64[2, 5] < 100"),
    ("Bilinear(4, 5, 6)", "(2, 4), (2, 5)"),
    ("ConvTranspose3d(2, 4, 3)", "1, 2, 4, 4, 4"),
    ("AdaptiveLogSoftmaxWithLoss(16, 100, [10, 50])", "f32[4, 16], i64[4] < 100"),
    ("CrossEntropyLoss()", "f32[4, 5], i64[4] < 5"),
    ("MaxPool2d(2, return_indices=True)", "1, 3, 8, 8"),
]
_GALLERY = [
    ("two_inputs.TwoInputs", "(1, 3, 16, 16), (1, 2, 8, 8)"),
    ("resnet.resnet18", "1, 3, 64, 64"),
    ("mobilenet.mobilenet_v2", "1, 3, 64, 64"),
    ("densenet.densenet121", "1, 3, 64, 64"),
    ("unet.UNet", "1, 3, 64, 64"),
    ("examples.TextClassifier", "i64[2, 6] < 1000, weights=f32[2, 6]"),
    ("examples.Batched", '{"image": f32[2, 3, 8, 8], "text": f32[2, 8]}'),
    ("examples.Autoencoder", "4, 16"),
]


def corpus() -> Iterator[Target]:
    """What is in no other list (see `corpus`)."""
    import corpus

    for zoo, target, inputs in corpus.ROWS:
        if _installed(zoo.replace("torch-geometric", "torch_geometric")):
            yield Target(zoo, target, target, (inputs,))


# -- packages


def monai() -> Iterator[Target]:
    """MONAI's networks."""
    yield from _rows("monai", "monai.networks.nets.", _MONAI)


_MONAI = [
    (
        (
            "UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(16, 32, 64, 128, 256), strides=(2, 2, 2, 2),"
            " num_res_units=2)"
        ),
        "1, 1, 64, 64, 64",
    ),
    (
        "UNet(spatial_dims=2, in_channels=1, out_channels=1, channels=(4, 8, 16, 32, 64), strides=(2, 2, 2, 2))",
        "1, 1, 128, 128",
    ),
    ("BasicUNet(spatial_dims=2, in_channels=1, out_channels=2)", "1, 1, 64, 64"),
    ("DenseNet121(spatial_dims=3, in_channels=1, out_channels=2)", "1, 1, 64, 64, 64"),
    ("SegResNet(spatial_dims=3, in_channels=1, out_channels=2, init_filters=8)", "1, 1, 64, 64, 64"),
    (
        (
            "UNETR(in_channels=1, out_channels=2, img_size=(64, 64, 64), feature_size=16, hidden_size=192, mlp_dim=384,"
            " num_heads=6)"
        ),
        "1, 1, 64, 64, 64",
    ),
    ("SwinUNETR(in_channels=1, out_channels=2, feature_size=12)", "1, 1, 64, 64, 64"),
    (
        (
            "ViT(in_channels=1, img_size=(64, 64), patch_size=(16, 16), spatial_dims=2, hidden_size=192, mlp_dim=384,"
            " num_layers=4, num_heads=6, classification=True)"
        ),
        "1, 1, 64, 64",
    ),
    ("VNet(spatial_dims=3, in_channels=1, out_channels=2)", "1, 1, 32, 32, 32"),
    ("AttentionUnet(2, 1, 2, (8, 16, 32), (2, 2))", "1, 1, 64, 64"),
    ("AutoEncoder(2, 1, 1, (4, 8), (2, 2))", "1, 1, 32, 32"),
    (
        (
            "DiffusionModelUNet(spatial_dims=2, in_channels=1, out_channels=1, channels=(32, 64),"
            " attention_levels=(False, True), num_res_blocks=1, num_head_channels=32)"
        ),
        "f32[1, 1, 32, 32], i64[1] < 1000",
    ),
    ("Regressor((1, 32, 32), (2,), (4, 8), (2, 2))", "1, 1, 32, 32"),
    ("HighResNet(spatial_dims=3, in_channels=1, out_channels=2)", "1, 1, 32, 32, 32"),
    ("SEResNet50(spatial_dims=2, in_channels=1, num_classes=2)", "1, 1, 64, 64"),
    ("EfficientNetBN('efficientnet-b0', spatial_dims=2, in_channels=1, pretrained=False)", "1, 1, 64, 64"),
    ("DynUNet(2, 1, 2, (3, 3, 3), (1, 2, 2), (2, 2))", "1, 1, 64, 64"),
    ("ResNetFeatures('resnet18', spatial_dims=2, in_channels=1, pretrained=False)", "1, 1, 64, 64"),
]


def others() -> Iterator[Target]:
    """Small packages that each do something unusual."""
    for zoo, target, inputs in _OTHERS:
        if _installed(zoo):
            yield Target(zoo, target, target, (inputs,))


_OTHERS = [
    ("efficientnet_pytorch", "efficientnet_pytorch.EfficientNet.from_name('efficientnet-b0')", "1, 3, 224, 224"),
    (
        "e3nn",
        "e3nn.o3.FullyConnectedTensorProduct('4x0e+2x1o', '0e+1o', '4x0e+2x1o')",
        "(3, 10), (3, 4)",
    ),
    ("snntorch", "snntorch.Leaky(beta=0.9)", "2, 10"),
    (
        "x_transformers",
        (
            "x_transformers.TransformerWrapper(num_tokens=1000, max_seq_len=64,"
            " attn_layers=x_transformers.Decoder(dim=64, depth=2, heads=2))"
        ),
        "i64[1, 16] < 1000",
    ),
]


def graph_networks() -> Iterator[Target]:
    """torch-geometric's models and layers, on five nodes with six edges."""
    edges = "i64[2, 6] < 5"
    for target, inputs in _GRAPH_NETWORKS:
        yield Target("torch-geometric", target, f"torch_geometric.nn.{target}", (inputs or f"f32[5, 16], {edges}",))


_GRAPH_NETWORKS = [
    ("models.GCN(16, 32, 2, out_channels=7)", ""),
    ("models.GAT(16, 32, 2, out_channels=7, heads=4)", ""),
    ("models.GIN(16, 32, 2, out_channels=7)", ""),
    ("models.GraphSAGE(16, 32, 2, out_channels=7)", ""),
    ("models.PNA(16, 32, 2, out_channels=7, aggregators=['mean', 'max'], scalers=['identity'])", ""),
    ("models.EdgeCNN(16, 32, 2, out_channels=7)", ""),
    ("models.JumpingKnowledge('cat')", "[f32[5, 16], f32[5, 16]]"),
    ("GCNConv(16, 7)", ""),
    ("GATv2Conv(16, 7)", ""),
    ("TransformerConv(16, 7)", ""),
    ("SAGEConv(16, 7)", ""),
    ("ChebConv(16, 7, 2)", ""),
    ("GraphConv(16, 7)", ""),
    ("ResGatedGraphConv(16, 7)", ""),
    ("LEConv(16, 7)", ""),
    ("TAGConv(16, 7)", ""),
    ("SGConv(16, 7)", ""),
    ("APPNP(2, 0.1)", ""),
    ("TopKPooling(16)", ""),
    ("models.SchNet()", "i64[5] < 10, f32[5, 3]"),
]


def torchvision(every: bool) -> Iterator[Target]:
    """Every builder of torchvision, or one of each module."""
    from torchvision import models

    families = set()
    for name in models.list_models():
        builder = models.get_model_builder(name)
        family = builder.__module__
        if not every and family in families:
            continue
        families.add(family)
        target, inputs = f"{family}.{builder.__name__}", "1, 3, 224, 224"
        if ".detection." in family:
            boxes = ", box_score_thresh=0.0, box_detections_per_img=2" if "mask" in name or "keypoint" in name else ""
            target = f"{target}(weights=None, weights_backbone=None{boxes})"  # with boxes their heads have some work
            inputs = "[f32[3, 320, 320]]"
        elif "lraspp" in name:
            target = f"{target}(weights=None, weights_backbone=None)"
        elif ".segmentation." in family:
            target = f"{target}(weights=None, weights_backbone=None, aux_loss=True)"
        elif ".video." in family:
            inputs = "1, 3, 16, 224, 224" if name == "s3d" or "mvit" in name else "1, 3, 16, 112, 112"
        elif ".optical_flow." in family:
            inputs = "(1, 3, 128, 128), (1, 3, 128, 128)"
        elif "inception" in name:
            target, inputs = f"{target}(init_weights=False)", "1, 3, 299, 299"
        elif "googlenet" in name:
            target = f"{target}(aux_logits=False, init_weights=False)"
        yield Target("torchvision", name, target, (inputs,))


def segmentation() -> Iterator[Target]:
    """segmentation_models_pytorch's decoders."""
    for name in ("Unet", "UnetPlusPlus", "FPN", "PSPNet", "DeepLabV3Plus", "Linknet", "MAnet", "PAN", "Segformer"):
        target = f"segmentation_models_pytorch.{name}(encoder_name='resnet18', encoder_weights=None, classes=2)"
        yield Target("segmentation_models_pytorch", name, target, ("1, 3, 128, 128",))


def transformers(every: bool) -> Iterator[Target]:
    """The base model of every type of transformers, two layers of it."""
    import scaled

    for kind in scaled.kinds():
        if every or kind in _WELL_KNOWN:
            candidates = functools.partial(scaled.inputs, kind)
            yield Target("transformers", kind, f'scaled.build("{kind}")', candidates)


_WELL_KNOWN = frozenset(
    [
        "albert",
        "bart",
        "bert",
        "clip",
        "convnext",
        "deberta-v2",
        "deformable_detr",
        "detr",
        "dinov2",
        "distilbert",
        "electra",
        "gemma",
        "gpt2",
        "gpt_neox",
        "gpt_oss",
        "llama",
        "mamba",
        "marian",
        "mistral",
        "mixtral",
        "mobilevit",
        "mpt",
        "phi",
        "qwen2",
        "qwen2_moe",
        "resnet",
        "roberta",
        "rwkv",
        "sam",
        "segformer",
        "swin",
        "t5",
        "time_series_transformer",
        "videomae",
        "vilt",
        "vit",
        "wav2vec2",
        "whisper",
        "xlnet",
        "yolos",
    ]
)


def timm(every: bool) -> Iterator[Target]:
    """Every default architecture of timm, or the first of each module."""
    import timm as package

    families = set()
    for name in package.list_models():
        family = package.models._registry._model_to_module[name]
        if every or family not in families:
            families.add(family)
            target = f'timm.create_model("{name}", pretrained=False)'
            yield Target("timm", name, target, functools.partial(_timm_inputs, name))


def _timm_inputs(name: str) -> Sequence[str]:
    """What timm says of a model."""
    import timm as package

    config = package.get_pretrained_cfg(name)
    size = config.input_size if config else (3, 224, 224)
    return (", ".join(map(str, (1, *size))),)
