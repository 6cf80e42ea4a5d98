"""A flat trace as a tree of module calls with shared subgraphs."""
