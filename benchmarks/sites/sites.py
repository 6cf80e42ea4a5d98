"""Trimmed docs layouts of five model zoos: their themes and extensions, our own text, models from their packages."""

from __future__ import annotations

from dataclasses import dataclass


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

SITES = (
    Site(
        "monai",
        "pydata_sphinx_theme",
        (*_COMMON, "sphinx.ext.napoleon", "sphinx.ext.intersphinx", "sphinx_autodoc_typehints"),
        (
            *(
                (
                    f"monai.networks.nets.BasicUNet(spatial_dims={dims}, features=({width},{width},32,64,128,{width}))",
                    size,
                )
                for dims, size in ((2, "1, 1, 64, 64"), (3, "1, 1, 32, 32, 32"))
                for width in (8, 16)
            ),
            *(
                (f"monai.networks.nets.UNet(2, 1, 2, channels=({w}, {2 * w}, {4 * w}), strides=(2, 2))", "1, 1, 64, 64")
                for w in (4, 8, 16)
            ),
            *((f"monai.networks.nets.SegResNet(spatial_dims=2, init_filters={w})", "1, 1, 64, 64") for w in (8, 16)),
            *((f"monai.networks.nets.DenseNet121(2, 1, {classes})", "1, 1, 64, 64") for classes in (2, 5)),
            *(
                (f"monai.networks.nets.AutoEncoder(2, 1, 1, channels=({w}, {2 * w}), strides=(2, 2))", "1, 1, 32, 32")
                for w in (4, 8)
            ),
        ),
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
        (
            *((f"kornia.feature.{name}()", "4, 1, 32, 32") for name in ("HardNet", "HyNet", "SOSNet")),
            ("kornia.feature.TFeat()", "4, 1, 32, 32"),
            ("kornia.feature.LAFOrienter(19)", "1, 1, 32, 32"),
            ("kornia.feature.OriNet(False)", "4, 1, 32, 32"),
            ("kornia.feature.LAFAffNetShapeEstimator(False).features", "4, 1, 32, 32"),
        )[:4],
    ),
    Site(
        "neuraloperator",
        "sphinx_book_theme",
        (*_COMMON, "numpydoc", "sphinx_gallery.load_style"),
        tuple(
            (
                (
                    f"neuralop.models.FNO(n_modes=({modes}, {modes}), in_channels=1, out_channels=1, "
                    f"hidden_channels={width}, n_layers={n})"
                ),
                "1, 1, 32, 32",
            )
            for modes in (8, 12)
            for width in (16, 32)
            for n in (2, 4)
        ),
    ),
    Site(
        "snntorch",
        "sphinx_rtd_theme",
        (*_COMMON, "sphinx.ext.napoleon", "sphinx_tabs.tabs", "sphinx_copybutton"),
        tuple(
            (
                f"torch.nn.Sequential(torch.nn.Linear(28, {width}), snntorch.{neuron}(beta=0.9, init_hidden=True))",
                "1, 28",
            )
            for neuron in ("Leaky", "Lapicque")
            for width in (16, 32, 64)
        ),
    ),
    Site(
        "pytorch-geometric",
        "alabaster",
        (*_COMMON, "sphinx.ext.napoleon", "myst_nb", "sphinxext.opengraph", "sphinx_sitemap"),
        tuple(
            (f"torch_geometric.nn.{name}(16, {width}, num_layers={layers})", "f32[10, 16], i64[2, 30] < 10")
            for name in ("GCN", "GraphSAGE", "GIN", "GAT")
            for width in (16, 32)
            for layers in (2, 3)
        ),
        markdown=True,
    ),
)
