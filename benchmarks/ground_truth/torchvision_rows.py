"""Prints what torchvision has published of its models as rows of ``published.csv``, from its weights' metadata.

    python benchmarks/ground_truth/torchvision_rows.py

The metadata have the numbers of a model with trained weights, and not what it was called with. That stands in
torchvision's own check of them, ``test/common_extended_utils.py``, and is repeated here: images as the weights'
transforms give them from 512×512, 16 frames of a video. A detector's numbers depend on what its weights find in a
picture; those which do not are the ones whose heads look at every anchor. With trained weights torchvision builds the
older detectors with frozen batch norms, whose weights are buffers, and leaves the auxiliary heads of GoogLeNet out.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from typing import Any

import torchvision

SOURCE = f'torchvision {torchvision.__version__.partition("+")[0]}, weights metadata ("num_params", "_ops")'

_BACKBONE = "torchvision.models.detection.backbone_utils.resnet_fpn_backbone(backbone_name='resnet50', weights=None{})"
_LEVELS = ", returned_layers=[2, 3, 4], extra_blocks=torchvision.ops.feature_pyramid_network.LastLevelP6P7({}, 256)"
_MOBILENET = _BACKBONE.format(", fpn=True").replace("resnet_fpn", "mobilenet").replace("resnet50", "mobilenet_v3_large")
_ANCHORS = (
    "rpn_anchor_generator=torchvision.models.detection.anchor_utils.AnchorGenerator("
    f"{((32, 64, 128, 256, 512),) * 3}, {((0.5, 1.0, 2.0),) * 3})"
)
_SMALL = "min_size=320, max_size=640, rpn_pre_nms_top_n_test=150, rpn_post_nms_top_n_test=150, rpn_score_thresh=0.05"
_LARGE = "rpn_score_thresh=0.05"
FROZEN = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": f"FasterRCNN({_MOBILENET}, 91, {_ANCHORS}, {_SMALL})",
    "fasterrcnn_mobilenet_v3_large_fpn": f"FasterRCNN({_MOBILENET}, 91, {_ANCHORS}, {_LARGE})",
    "fasterrcnn_resnet50_fpn": f"FasterRCNN({_BACKBONE.format('')}, 91)",
    "maskrcnn_resnet50_fpn": f"MaskRCNN({_BACKBONE.format('')}, 91)",
    "keypointrcnn_resnet50_fpn": f"KeypointRCNN({_BACKBONE.format('')}, 2, num_keypoints=17)",
    "retinanet_resnet50_fpn": f"RetinaNet({_BACKBONE.format(_LEVELS.format(256))}, 91)",
    "fcos_resnet50_fpn": f"FCOS({_BACKBONE.format(_LEVELS.format(256))}, 91)",
}
"""What the builders of the older detectors make when they are given weights."""

SIZES = {"ssd300_vgg16": 300, "ssdlite320_mobilenet_v3_large": 320}
"""Of detectors that resize to a size of their own; the others take 800×800 of a square image."""


def target(name: str, weights: Any) -> str:
    """The expression that builds the model that the numbers are of."""
    builder = torchvision.models.get_model_builder(name)
    rooms = builder.__module__.split(".")[:-1]
    if name in FROZEN:
        return f"{'.'.join(rooms)}.{FROZEN[name]}"
    options: dict[str, object] = {"weights": None}
    if rooms[-1] in ("detection", "segmentation"):
        options["weights_backbone"] = None
    if rooms[-1] == "segmentation" and "lraspp" not in name:
        options["aux_loss"] = True
    size = getattr(weights.transforms, "keywords", {}).get("crop_size")
    if name.startswith("vit_") and size != 224:
        options["image_size"] = size
    if "googlenet" in name:
        options |= {"aux_logits": False, "init_weights": False}
    if "inception" in name:
        options["init_weights"] = False
    written = ", ".join(f"{option}={value!r}" for option, value in options.items())
    return f"{'.'.join(rooms)}.{builder.__name__}({written})"


def inputs(name: str, weights: Any) -> str:
    """What torchvision has called it with."""
    room = torchvision.models.get_model_builder(name).__module__.split(".")[-2]
    sizes = getattr(weights.transforms, "keywords", {})
    if room == "detection":
        size = SIZES.get(name, 800)
        return f"[f32[3, {size}, {size}]]"
    if room == "optical_flow":
        return "f32[1, 3, 512, 512], f32[1, 3, 512, 512]"
    if room == "segmentation":
        return f"f32[1, 3, {sizes['resize_size']}, {sizes['resize_size']}]"
    crop = sizes["crop_size"]
    height, width = crop if isinstance(crop, tuple) else (crop, crop)
    return f"f32[1, 3, 16, {height}, {width}]" if room == "video" else f"f32[1, 3, {height}, {width}]"


def rows() -> Iterator[tuple[str, str, str, str, int, float]]:
    """Each model at each size once."""
    told = set()
    for name in torchvision.models.list_models():
        for weights in torchvision.models.get_model_weights(name):
            row = target(name, weights), inputs(name, weights), weights.meta["num_params"], weights.meta["_ops"]
            if row not in told:
                told.add(row)
                yield SOURCE, "torchvision", *row


if __name__ == "__main__":
    csv.writer(sys.stdout, lineterminator="\n").writerows(rows())
