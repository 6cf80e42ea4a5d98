import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))  # so that a record whose source has changed is told

project = "tinyseg"
extensions = ["sphinx_fxgraph"]

fxgraph_cache_dir = "graphs"
