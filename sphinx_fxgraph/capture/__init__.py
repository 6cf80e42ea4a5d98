"""From a model to its record. The only rooms that import torch."""
