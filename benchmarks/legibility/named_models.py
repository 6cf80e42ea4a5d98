"""Named models whose default view is measured, and their records.

Run ``python benchmarks/legibility/named_models.py FOLDER [NAME ...]`` in each environment that has some of the
packages: it captures every model that can be imported there and has no record in the folder yet. ``figures.py FOLDER``
then draws and measures all of them without torch.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "docs"))  # the gallery's models
sys.path.append(str(Path(__file__).parent))

_SECONDS = 240
"""Time limit of one capture."""


_PACKAGES = {
    "monai": "monai",
    "torchvision": "torchvision",
    "timm": "timm",
    "segmentation": "segmentation_models_pytorch",
    "transformers": "transformers",
    "diffusers": "diffusers",
    "graph networks": "torch_geometric",
}
"""The package of each family; the others need torch alone."""


@dataclass(frozen=True)
class Model:
    """A model by its name, with the target and the inputs as they would stand on a page."""

    name: str
    family: str
    target: str
    inputs: str

    @property
    def file(self) -> str:
        """The name of its record's file."""
        return "".join(c if c.isalnum() or c in "-." else "_" for c in self.name) + ".json"

    def is_installed(self) -> bool:
        """Return whether the package that the model comes from is installed here."""
        package = _PACKAGES.get(self.family, "torch")
        return importlib.util.find_spec(package) is not None


def load(folder: Path) -> Iterator[tuple[Model, str]]:
    """The models of which the folder has a record, and these records as JSON."""
    for model in MODELS:
        file = folder / model.file
        if file.is_file():
            yield model, file.read_text(encoding="utf-8")


def hugging(family: str, kind: str, **sizes: object) -> object:
    """A model of transformers in its published shape, except for the sizes given."""
    import transformers

    config = getattr(transformers, f"{family}Config")(**sizes)
    return getattr(transformers, f"{family}{kind}")(config)


def diffuser(name: str, **sizes: object) -> object:
    """A model of diffusers."""
    import diffusers

    return getattr(diffusers, name)(**sizes)


def segmentation(name: str) -> object:
    """A decoder of segmentation_models_pytorch on ResNet-18."""
    import segmentation_models_pytorch

    return getattr(segmentation_models_pytorch, name)(encoder_name="resnet18", encoder_weights=None, classes=2)


def siamese() -> object:
    """Two inputs, one convolutional encoder for both, and a distance."""
    from torch import Tensor, nn

    class Siamese(nn.Module):
        """Compares two images."""

        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(
                nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Flatten()
            )
            self.head = nn.Linear(32 * 16 * 16, 1)

        def forward(self, one: Tensor, two: Tensor) -> Tensor:
            return self.head((self.encoder(one) - self.encoder(two)).abs())

    return Siamese()


def _rows(family: str, *rows: tuple[str, str, str]) -> list[Model]:
    return [Model(name, family, target, inputs) for name, target, inputs in rows]


_IMAGE = "1, 3, 224, 224"
_IDS = "input_ids=i64[1, 32] < 1000, use_cache=False"
_TV = "torchvision.models."
_BOXES = "weights=None, weights_backbone=None, box_score_thresh=0.0, box_detections_per_img=2"

MODELS: list[Model] = [
    *_rows(
        "gallery",
        ("ResNet-18 (gallery)", "zoo.resnet.resnet18", _IMAGE),
        ("ResNet-50 (gallery)", "zoo.resnet.resnet50", _IMAGE),
        ("DenseNet-121 (gallery)", "zoo.densenet.densenet121", _IMAGE),
        ("MobileNetV2 (gallery)", "zoo.mobilenet.mobilenet_v2", _IMAGE),
        ("U-Net (gallery)", "zoo.unet.UNet", "1, 3, 256, 256"),
        ("BERT (gallery)", "zoo.bert.Bert", "i64[1, 128] < 30522, i64[1, 128] < 2, i64[1, 128] < 2"),
        ("Siamese", "named_models.siamese()", "(1, 3, 64, 64), (1, 3, 64, 64)"),
    ),
    *_rows(
        "torch",
        ("nn.Transformer", "torch.nn.Transformer(64, 4, 2, 2, batch_first=True)", "(2, 10, 64), (2, 7, 64)"),
        (
            "nn.TransformerEncoder",
            "torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, batch_first=True), 6)",
            "2, 10, 64",
        ),
        ("nn.LSTM", "torch.nn.LSTM(8, 16, 2, batch_first=True)", "2, 5, 8"),
    ),
    *_rows(
        "monai",
        (
            "MONAI UNet 3-D",
            (
                "monai.networks.nets.UNet(spatial_dims=3, in_channels=1, out_channels=2, "
                "channels=(16, 32, 64, 128, 256), strides=(2, 2, 2, 2), num_res_units=2)"
            ),
            "1, 1, 64, 64, 64",
        ),
        (
            "MONAI BasicUNet",
            "monai.networks.nets.BasicUNet(spatial_dims=2, in_channels=1, out_channels=2)",
            "1, 1, 64, 64",
        ),
        (
            "MONAI SegResNet",
            "monai.networks.nets.SegResNet(spatial_dims=3, in_channels=1, out_channels=2, init_filters=8)",
            "1, 1, 64, 64, 64",
        ),
        (
            "MONAI UNETR",
            (
                "monai.networks.nets.UNETR(in_channels=1, out_channels=2, img_size=(64, 64, 64), feature_size=16,"
                " hidden_size=192, mlp_dim=384, num_heads=6)"
            ),
            "1, 1, 64, 64, 64",
        ),
        (
            "MONAI SwinUNETR",
            "monai.networks.nets.SwinUNETR(in_channels=1, out_channels=2, feature_size=12)",
            "1, 1, 64, 64, 64",
        ),
        ("MONAI VNet", "monai.networks.nets.VNet(spatial_dims=3, in_channels=1, out_channels=2)", "1, 1, 32, 32, 32"),
        ("MONAI AttentionUnet", "monai.networks.nets.AttentionUnet(2, 1, 2, (8, 16, 32), (2, 2))", "1, 1, 64, 64"),
        (
            "MONAI DiffusionModelUNet",
            (
                "monai.networks.nets.DiffusionModelUNet(spatial_dims=2, in_channels=1, out_channels=1,"
                " channels=(32, 64), attention_levels=(False, True), num_res_blocks=1, num_head_channels=32)"
            ),
            "f32[1, 1, 32, 32], i64[1] < 1000",
        ),
    ),
    *_rows(
        "torchvision",
        ("AlexNet", f"{_TV}alexnet.alexnet()", _IMAGE),
        ("VGG-16", f"{_TV}vgg16()", _IMAGE),
        ("ResNet-18", f"{_TV}resnet18()", _IMAGE),
        ("ResNet-50", f"{_TV}resnet50()", _IMAGE),
        ("Wide ResNet-101", f"{_TV}wide_resnet101_2()", _IMAGE),
        ("GoogLeNet", f"{_TV}googlenet.googlenet(aux_logits=False, init_weights=False)", _IMAGE),
        ("Inception v3", f"{_TV}inception_v3(init_weights=False)", "1, 3, 299, 299"),
        ("DenseNet-201", f"{_TV}densenet201()", _IMAGE),
        ("MobileNetV3", f"{_TV}mobilenet_v3_large()", _IMAGE),
        ("MNASNet", f"{_TV}mnasnet1_0()", _IMAGE),
        ("SqueezeNet", f"{_TV}squeezenet1_1()", _IMAGE),
        ("ShuffleNetV2", f"{_TV}shufflenet_v2_x1_0()", _IMAGE),
        ("EfficientNet-B0", f"{_TV}efficientnet_b0()", _IMAGE),
        ("EfficientNetV2-S", f"{_TV}efficientnet_v2_s()", _IMAGE),
        ("RegNetY-400MF", f"{_TV}regnet_y_400mf()", _IMAGE),
        ("ConvNeXt-T", f"{_TV}convnext_tiny()", _IMAGE),
        ("ViT-B/16", f"{_TV}vit_b_16()", _IMAGE),
        ("Swin-T", f"{_TV}swin_t()", _IMAGE),
        ("MaxViT-T", f"{_TV}maxvit_t()", _IMAGE),
        ("FCN-ResNet50", f"{_TV}segmentation.fcn_resnet50(weights=None, weights_backbone=None)", "1, 3, 256, 256"),
        (
            "DeepLabV3",
            f"{_TV}segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None)",
            "1, 3, 256, 256",
        ),
        ("Faster R-CNN", f"{_TV}detection.fasterrcnn_resnet50_fpn({_BOXES})", "[f32[3, 320, 320]]"),
        ("Mask R-CNN", f"{_TV}detection.maskrcnn_resnet50_fpn({_BOXES})", "[f32[3, 320, 320]]"),
        (
            "RetinaNet",
            f"{_TV}detection.retinanet_resnet50_fpn(weights=None, weights_backbone=None)",
            "[f32[3, 320, 320]]",
        ),
        (
            "SSDlite",
            f"{_TV}detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)",
            "[f32[3, 320, 320]]",
        ),
        ("RAFT", f"{_TV}optical_flow.raft_large()", "(1, 3, 128, 128), (1, 3, 128, 128)"),
        ("R3D-18", f"{_TV}video.r3d_18()", "1, 3, 16, 112, 112"),
        ("MViTv2-S", f"{_TV}video.mvit_v2_s()", "1, 3, 16, 224, 224"),
    ),
    *_rows(
        "timm",
        ("timm ResNeSt-14d", "timm.create_model('resnest14d', pretrained=False)", _IMAGE),
        ("timm MLP-Mixer", "timm.create_model('mixer_b16_224', pretrained=False)", _IMAGE),
        ("timm DeiT-T", "timm.create_model('deit_tiny_patch16_224', pretrained=False)", _IMAGE),
        ("timm CSPResNet-50", "timm.create_model('cspresnet50', pretrained=False)", "1, 3, 256, 256"),
        ("timm PoolFormer", "timm.create_model('poolformer_s12', pretrained=False)", _IMAGE),
        ("timm HRNet-W18", "timm.create_model('hrnet_w18_small', pretrained=False)", _IMAGE),
        ("timm features", "timm.create_model('resnet18', pretrained=False, features_only=True)", _IMAGE),
    ),
    *_rows(
        "segmentation",
        ("smp Unet", "named_models.segmentation('Unet')", "1, 3, 128, 128"),
        ("smp UnetPlusPlus", "named_models.segmentation('UnetPlusPlus')", "1, 3, 128, 128"),
        ("smp FPN", "named_models.segmentation('FPN')", "1, 3, 128, 128"),
        ("smp DeepLabV3Plus", "named_models.segmentation('DeepLabV3Plus')", "1, 3, 128, 128"),
    ),
    *_rows(
        "transformers",
        ("BERT", "named_models.hugging('Bert', 'Model')", "input_ids=i64[1, 32] < 1000, attention_mask=i64[1, 32] < 2"),
        ("GPT-2", "named_models.hugging('GPT2', 'LMHeadModel')", _IDS),
        ("GPT-2 with cache", "named_models.hugging('GPT2', 'LMHeadModel')", "input_ids=i64[1, 32] < 1000"),
        (
            "Llama",
            (
                "named_models.hugging('Llama', 'ForCausalLM', hidden_size=256, intermediate_size=688,"
                " num_attention_heads=8, num_hidden_layers=8)"
            ),
            _IDS,
        ),
        (
            "Mixtral",
            (
                "named_models.hugging('Mixtral', 'ForCausalLM', hidden_size=64, intermediate_size=128,"
                " num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=4, vocab_size=1000)"
            ),
            _IDS,
        ),
        (
            "T5",
            "named_models.hugging('T5', 'ForConditionalGeneration')",
            "input_ids=i64[1, 32] < 1000, decoder_input_ids=i64[1, 16] < 1000, use_cache=False",
        ),
        (
            "BART",
            "named_models.hugging('Bart', 'Model', encoder_layers=6, decoder_layers=6, d_model=256)",
            "input_ids=i64[1, 32] < 1000, use_cache=False",
        ),
        (
            "Whisper",
            "named_models.hugging('Whisper', 'Model')",
            "input_features=f32[1, 80, 3000], decoder_input_ids=i64[1, 16] < 1000, use_cache=False",
        ),
        (
            "CLIP",
            "named_models.hugging('CLIP', 'Model')",
            "input_ids=i64[1, 16] < 1000, pixel_values=f32[1, 3, 224, 224]",
        ),
        (
            "ViT (transformers)",
            "named_models.hugging('ViT', 'ForImageClassification')",
            "pixel_values=f32[1, 3, 224, 224]",
        ),
        (
            "Swin (transformers)",
            "named_models.hugging('Swin', 'ForImageClassification')",
            "pixel_values=f32[1, 3, 224, 224]",
        ),
        (
            "SegFormer",
            "named_models.hugging('Segformer', 'ForSemanticSegmentation')",
            "pixel_values=f32[1, 3, 128, 128]",
        ),
        (
            "DETR",
            "named_models.hugging('Detr', 'ForObjectDetection')",
            "pixel_values=f32[1, 3, 256, 256]",
        ),
        ("Wav2Vec2", "named_models.hugging('Wav2Vec2', 'Model')", "input_values=f32[1, 16000]"),
        ("Mamba", "named_models.hugging('Mamba', 'Model', num_hidden_layers=8)", _IDS),
        (
            "ResNet (transformers)",
            "named_models.hugging('ResNet', 'ForImageClassification')",
            "pixel_values=f32[1, 3, 224, 224]",
        ),
    ),
    *_rows(
        "diffusers",
        (
            "UNet2DCondition",
            (
                "named_models.diffuser('UNet2DConditionModel', sample_size=32, block_out_channels=(32, 64, 64, 64),"
                " cross_attention_dim=64, attention_head_dim=8)"
            ),
            "f32[1, 4, 32, 32], i64[1] < 1000, f32[1, 16, 64]",
        ),
        (
            "AutoencoderKL",
            (
                "named_models.diffuser('AutoencoderKL', block_out_channels=(32, 64), layers_per_block=1,"
                " down_block_types=('DownEncoderBlock2D', 'DownEncoderBlock2D'),"
                " up_block_types=('UpDecoderBlock2D', 'UpDecoderBlock2D'))"
            ),
            "1, 3, 64, 64",
        ),
        (
            "DiT",
            (
                "named_models.diffuser('DiTTransformer2DModel', num_attention_heads=4, attention_head_dim=16,"
                " num_layers=6)"
            ),
            "f32[1, 4, 32, 32], timestep=i64[1] < 1000, class_labels=i64[1] < 1000",
        ),
    ),
    *_rows(
        "graph networks",
        ("GCN", "torch_geometric.nn.models.GCN(16, 32, 4, out_channels=7)", "f32[5, 16], i64[2, 6] < 5"),
        ("GAT", "torch_geometric.nn.models.GAT(16, 32, 3, out_channels=7, heads=4)", "f32[5, 16], i64[2, 6] < 5"),
        ("GIN", "torch_geometric.nn.models.GIN(16, 32, 3, out_channels=7)", "f32[5, 16], i64[2, 6] < 5"),
    ),
]


def _capture(model: Model, file: Path) -> None:
    from sphinx_fxgraph.capture.capture import record_spec
    from sphinx_fxgraph.spec.spec import GraphSpec

    record = record_spec(GraphSpec.parse(model.target, model.inputs))
    if record.failure:
        print(f"{model.name}: {record.failure.type}: {record.failure.message}"[:300], flush=True)
    else:
        file.write_text(record.to_json(), encoding="utf-8")


def main() -> None:
    """Capture the models that have no record yet, each in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for model in MODELS:
        file = options.folder / model.file
        wanted = model.name in options.names if options.names else not file.is_file()
        if not wanted or not model.is_installed():
            continue
        child = multiprocessing.get_context("spawn").Process(target=_capture, args=(model, file))
        child.start()
        child.join(_SECONDS)
        if child.is_alive():
            child.terminate()
            print(f"{model.name}: more than {_SECONDS} s", flush=True)


if __name__ == "__main__":
    main()
