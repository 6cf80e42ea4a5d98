"""Numbers, shapes and ids as text."""
