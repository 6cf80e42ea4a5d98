"""A record in words, and how numbers and shapes are written."""
