"""Shapes, MACs and totals of a traced graph."""
