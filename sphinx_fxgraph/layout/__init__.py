"""Coordinates of a level: Graphviz, its fallback, placement and edge routes."""
