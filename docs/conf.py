import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "extensions")]  # zoo, the gallery's models; what only this handbook needs

import gallery  # noqa: E402 - an extension of this handbook

import sphinx_fxgraph  # noqa: E402 - after the path, so that a checkout documents itself

project = "sphinx-fxgraph"
author = "The sphinx-fxgraph authors"
copyright = "2026, The sphinx-fxgraph authors"
version = release = sphinx_fxgraph.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
extensions += ["sphinx_fxgraph", "example", "gallery", "settings"]
exclude_patterns = ["_build", "examples", "samples"]
nitpicky = True
numfig = True

autodoc_typehints = "description"
# Graphs that are in the cache need neither; autodoc imports what it documents.
autodoc_mock_imports = [name for name in ("torch", "graphviz") if not importlib.util.find_spec(name)]
nitpick_ignore_regex = [
    (
        "py:.*",
        r"(torch|nn|graphviz|os|collections|pathlib)\..*|Tensor",
    ),  # no inventory is fetched: the docs build offline
    (
        "py:class",
        r"sphinx_fxgraph\.(record|render)\..*|Body|Node|Frame|Fact|Change",
    ),  # a page of its own shows the source
    ("py:exc", "(Capture|EngineMissing)Error"),  # stand on the page by their full names
]

html_theme = "furo"
html_title = "sphinx-fxgraph"
html_static_path = ["_static"]

fxgraph_autodoc = {
    "zoo.recurrent.*": {"inputs": "f32[2, 3, 8]", "table": "none"},
}
fxgraph_zoo = {
    "resnets": {
        "folder": "usage/zoo",
        "registry": ["resnet18", "resnet34", "resnet50"],
        "target": "zoo.resnet.{name}",
        "options": {"*": {"inputs": "f32[1, 3, 224, 224]"}},
    }
}
fxgraph_zoo |= gallery.zoos()
fxgraph_ignore_packages = ["torch"]  # the gallery's records come from several environments
