"""``python -m sphinx_fxgraph`` is the command line."""

import sys

from sphinx_fxgraph.cli import main

sys.exit(main())
