"""The whole model or a backward graph as one DOT file for Graphviz."""
