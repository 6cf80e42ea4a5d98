"""From a flat graph to bodies: the tree of modules, each distinct body once."""
