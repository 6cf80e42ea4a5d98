"""What has changed from one architecture to another. It knows records, and neither torch nor Sphinx."""

from sphinx_fxgraph.record.diff.changes import SIGNS, Change, Difference, Fact, compare, sentence
from sphinx_fxgraph.record.diff.merged import merged

__all__ = ["SIGNS", "Change", "Difference", "Fact", "compare", "merged", "sentence"]
