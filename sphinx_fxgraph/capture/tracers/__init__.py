"""The tracers: each writes one flat graph of a model's operators."""
