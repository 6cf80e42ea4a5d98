"""What is shown of a record: simplified, folded, clustered, expanded; the main path."""
