"""Where the boxes of a level stand: through Graphviz, and around it."""
