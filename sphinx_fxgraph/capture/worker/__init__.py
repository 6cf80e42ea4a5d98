"""Processes that capture: one that serves, a child for each capture, and those who ask."""
