"""Five small models, one for each kind of data."""

from tinyzoo.models import AutoEncoder, ConvNet, Encoder, Recurrent, UNet

__all__ = ["AutoEncoder", "ConvNet", "Encoder", "Recurrent", "UNet", "list_models"]

INPUTS = {
    "AutoEncoder": "f32[8, 784]",
    "ConvNet": "f32[1, 3, 32, 32]",
    "Encoder": "f32[1, 16, 64]",
    "Recurrent": "f32[4, 12, 8]",
    "UNet": "f32[1, 3, 64, 64]",
}


def list_models() -> list[dict[str, str]]:
    """Return the name of each model and the shapes of its inputs."""
    return [{"name": name, "inputs": inputs} for name, inputs in INPUTS.items()]
