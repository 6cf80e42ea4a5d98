"""The source files that a capture depends on."""
