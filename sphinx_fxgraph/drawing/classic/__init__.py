"""One DOT of the whole model or of a backward graph, for `graphviz` as it is."""
