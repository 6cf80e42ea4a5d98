import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

project = "tinyseg"
extensions = ["sphinx_fxgraph"]

fxgraph_timeout = 120  # seconds for a model; a whole build has 15 minutes
