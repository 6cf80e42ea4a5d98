import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

project = "tinyzoo"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_fxgraph"]
exclude_patterns = ["_build"]
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]  # Read the Docs: graphs come from the committed cache
nitpick_ignore_regex = [("py:.*", r"torch\..*|nn\..*|Tensor|Module")]  # PyTorch's inventory is not loaded

fxgraph_cache_dir = "graphs"
fxgraph_commit = "records"
fxgraph_zoo = {
    "models": {
        "folder": "models",
        "registry": "tinyzoo:list_models",
        "target": "tinyzoo.{name}",
        "options": {"*": {"stages": "yes"}},
    },
}
fxgraph_autodoc = {"tinyzoo.ConvNet": {"inputs": "f32[1, 3, 32, 32]"}, "tinyzoo.UNet": {"inputs": "f32[1, 3, 64, 64]"}}
