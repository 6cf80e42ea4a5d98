"""The gallery: families of models as zoos, published numbers, and records of models that are not installed here.

The records of ``docs/gallery/records`` are copied into the cache before it is opened, so that a build of these docs
needs none of their packages; all other models are captured. ``benchmarks/gallery/capture.py`` makes the records.
"""

from __future__ import annotations

import csv
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

GALLERY = Path(__file__).parents[1] / "gallery"
RESULTS = Path(__file__).parents[2] / "benchmarks" / "ground_truth" / "results.csv"

_SOURCES = {
    "torchvision": ("torchvision's weights", "the metadata of torchvision's weights has the published ones"),
    "timm": (
        "timm's table",
        "like timm, the multiply-adds include normalization, resizing and pooling (``fxgraph_macs = 'all'``)",
    ),
    "transformers": ("the configuration", "the parameters were counted by hand from the default configuration"),
}


def zoos() -> dict[str, Any]:
    """Return the value of ``fxgraph_zoo``: a zoo for each family."""
    with RESULTS.open(encoding="utf-8", newline="") as file:
        results = {(row["target"], row["inputs"]): row for row in csv.DictReader(file)}
    families = tomllib.loads((GALLERY / "models.toml").read_text(encoding="utf-8"))
    # These pages exist, so the target is not used: the zoo is their index.
    written = {"folder": "gallery", "registry": _written(), "target": "gallery.{name}"}
    found: dict[str, Any] = {"written": written}
    for family, models in families.items():
        registry = [
            _entry(name, *model, results.get(tuple(model), {})) for name, model in models.items() if name != "title"
        ]
        found[family] = {"folder": "gallery/models", "registry": registry, "template": "gallery/model.rst.jinja"}
    return found


def _entry(name: str, target: str, inputs: str, result: Mapping[str, str]) -> dict[str, Any]:
    """Return what the template of a page asks for."""
    package = target.partition(".")[0]
    label, remark = _SOURCES.get(package, ("", ""))
    parameters = result.get("published_parameters", "")
    return {
        "name": name,
        "target": target,
        "inputs": inputs,
        "package": {"torch_geometric": "torch-geometric", "neuralop": "neuraloperator"}.get(package, package),
        "parameters": f"{int(parameters):,}" if parameters.isdigit() else parameters.replace("M", " million"),
        "gmacs": result.get("published_gmacs", ""),
        "counted": result.get("gmacs", ""),
        "label": label,
        "remark": remark,
    }


def _written() -> list[dict[str, Any]]:
    """Return the models whose pages were written by hand, as the index shows them."""
    pages = {
        "two_inputs": ("Two inputs", "fig-two-inputs"),
        "resnet18": ("ResNet-18", "fig-resnet18"),
        "mobilenet_v2": ("MobileNetV2", "fig-mobilenet-v2"),
        "densenet121": ("DenseNet-121", "fig-densenet121"),
        "unet": ("U-Net", "fig-unet"),
        "monai_unet": ("MONAI's U-Net", "fig-monai-unet"),
        "monai_segresnet": ("MONAI's SegResNet", "fig-monai-segresnet"),
        "efficientnet": ("EfficientNet-B0", "fig-efficientnet"),
        "transformer_layer": ("Transformer encoder layer", "fig-transformer-layer"),
        "bert": ("BERT-base", "fig-bert"),
        "recurrent": ("LSTM in a loop", "fig-recurrent"),
        "graph_network": ("Graph network", "fig-graph-network"),
        "detector": ("Detector", "fig-detector"),
        "branch": ("Early exit", "fig-branch"),
    }
    return [{"name": name, "title": title, "options": {"name": graph}} for name, (title, graph) in pages.items()]


def _seed(app: Sphinx) -> None:
    """Copy the committed records into the cache of this build."""
    cache = Path(app.doctreedir, "fxgraph")
    cache.mkdir(parents=True, exist_ok=True)
    for record in (GALLERY / "records").glob("*.json"):
        copy = cache / record.name
        if not copy.exists() or copy.read_bytes() != record.read_bytes():
            shutil.copy(record, copy)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Copy the records before the cache is read."""
    app.connect("builder-inited", _seed, priority=1)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
