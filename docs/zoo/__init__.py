"""The gallery's models, in plain torch: what the pictures are checked against is here to be read."""
