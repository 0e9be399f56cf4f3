"""The maps that the paper compares NAO with."""

from kernelmap.maps.baselines.afno import AFNO, AFNOOptions
from kernelmap.maps.baselines.autoencoder import Autoencoder, AutoencoderOptions

__all__ = ["AFNO", "AFNOOptions", "Autoencoder", "AutoencoderOptions"]
