"""Decide what is shown of a record: simplify, fold, cluster, expand; find the main path."""
