"""The models of a small package, for the samples of this folder."""

from tinyseg.unet import UNet

__all__ = ["UNet"]
