"""Placeholders resolved and written, in each format with what it knows."""
