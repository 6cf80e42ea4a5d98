"""Trimmed docs layouts of five model zoos: their themes and extensions, our own text, models from their packages."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "coverage"))
from targets import Target, graph_networks, monai, written_out


@dataclass(frozen=True)
class Site:
    """A docs layout.

    Attributes:
        name: of the project.
        theme: its HTML theme.
        extensions: those of its conf.py that are installed by the requirements of this benchmark.
        models: target and inputs of each graph.
        markdown: whether its pages are MyST.
    """

    name: str
    theme: str
    extensions: tuple[str, ...]
    models: tuple[tuple[str, str], ...]
    markdown: bool = False


_COMMON = ("sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode", "sphinx.ext.mathjax")

Models = Iterable[tuple[str, str]]


def _swept(targets: Iterable[Target], zoo: str) -> Iterator[tuple[str, str]]:
    """Yield the models of a zoo that the sweep captures, too."""
    for target in targets:
        if target.zoo == zoo:
            yield target.target, target.candidates()[0]


def _monai() -> Models:
    nets = "monai.networks.nets."
    yield from _swept(monai(), "monai")
    for width in (8, 16, 24):
        for dims, size in ((2, "1, 1, 64, 64"), (3, "1, 1, 32, 32, 32")):
            features = (width, width, 32, 64, 128, width)
            yield f"{nets}BasicUNet(spatial_dims={dims}, features={features})", size
        yield f"{nets}UNet(2, 1, 2, channels=({width}, {2 * width}), strides=(2,))", "1, 1, 64, 64"
        yield f"{nets}SegResNet(spatial_dims=2, init_filters={width})", "1, 1, 64, 64"
        yield f"{nets}AutoEncoder(2, 1, 1, channels=({width}, {2 * width}), strides=(2, 2))", "1, 1, 32, 32"
        yield f"{nets}AttentionUnet(2, 1, 3, ({width}, {2 * width}), (2,))", "1, 1, 64, 64"
    for name in ("resnet10", "resnet18", "resnet34", "resnet50"):
        yield f"{nets}{name}(spatial_dims=2, n_input_channels=1, num_classes=3)", "1, 1, 64, 64"
    for depth in (121, 169, 201):
        yield f"{nets}DenseNet{depth}(2, 1, 3)", "1, 1, 64, 64"
    for depth in (50, 101):
        yield f"{nets}SEResNext{depth}(spatial_dims=2, in_channels=1, num_classes=3)", "1, 1, 64, 64"
    for number in range(1, 5):
        name = f"efficientnet-b{number}"
        yield f"{nets}EfficientNetBN({name!r}, spatial_dims=2, in_channels=1, pretrained=False)", "1, 1, 64, 64"


def _neuraloperator() -> Models:
    yield from _swept(written_out(), "neuraloperator")
    for modes in (8, 12):
        for width in (16, 32, 64):
            for layers in (2, 3, 4):
                sizes = f"n_modes=({modes}, {modes}), hidden_channels={width}, n_layers={layers}"
                yield f"neuralop.models.FNO({sizes}, in_channels=1, out_channels=1)", "1, 1, 32, 32"


def _snntorch() -> Models:
    for neuron in ("Leaky", "Lapicque", "Synaptic"):
        more = ", alpha=0.9" if neuron == "Synaptic" else ""
        for width in (16, 32, 64, 128, 256):
            made = f"snntorch.{neuron}(beta=0.8{more}, init_hidden=True)"
            yield f"torch.nn.Sequential(torch.nn.Linear(28, {width}), {made})", "1, 28"


def _geometric() -> Models:
    yield from _swept(graph_networks(), "torch-geometric")
    for name in ("GCN", "GraphSAGE", "GIN", "GAT", "EdgeCNN"):
        for width in (16, 32):
            for layers in (2, 3, 4):
                sizes = f"16, {width}, num_layers={layers}"
                yield f"torch_geometric.nn.{name}({sizes})", "f32[10, 16], i64[2, 30] < 10"


SITES = (
    Site(
        "monai",
        "pydata_sphinx_theme",
        (*_COMMON, "sphinx.ext.napoleon", "sphinx.ext.intersphinx", "sphinx_autodoc_typehints"),
        tuple(_monai()),
    ),
    Site(
        "kornia",
        "furo",
        (
            *_COMMON,
            "sphinx.ext.napoleon",
            "sphinx.ext.githubpages",
            "sphinx_design",
            "sphinx_copybutton",
            "notfound.extension",
        ),
        tuple(_swept(written_out(), "kornia")),
    ),
    Site(
        "neuraloperator",
        "sphinx_book_theme",
        (*_COMMON, "numpydoc", "sphinx_gallery.load_style"),
        tuple(_neuraloperator()),
    ),
    Site(
        "snntorch",
        "sphinx_rtd_theme",
        (*_COMMON, "sphinx.ext.napoleon", "sphinx_tabs.tabs", "sphinx_copybutton"),
        tuple(_snntorch()),
    ),
    Site(
        "pytorch-geometric",
        "alabaster",
        (*_COMMON, "sphinx.ext.napoleon", "myst_nb", "sphinxext.opengraph", "sphinx_sitemap"),
        tuple(_geometric()),
        markdown=True,
    ),
)
