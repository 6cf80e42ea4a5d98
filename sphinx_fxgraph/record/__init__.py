"""The record of a capture: plain frozen data, its file format, its numbers and its differences."""
