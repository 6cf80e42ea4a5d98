"""From a spec to a model and its inputs, and the model left as it was."""
