"""Kernel maps: from the pairs of a context to the hidden kernel. NAO and its family, and baselines."""

from kernelmap.maps.base import KernelMap, NoOptions
from kernelmap.maps.baselines import AFNO, AFNOOptions, Autoencoder, AutoencoderOptions
from kernelmap.maps.componentwise import Componentwise
from kernelmap.maps.conformal import ConformalEstimate
from kernelmap.maps.loss import ContextLoss, Loss
from kernelmap.maps.nao import NAO, DiscreteNAO, NAOOptions, NAOu, SetNAO, SetNAOOptions, SoftmaxNAO
from kernelmap.maps.probabilistic import ProbabilisticMap
from kernelmap.maps.registry import MAPS, register

__all__ = [
    "AFNO",
    "MAPS",
    "NAO",
    "AFNOOptions",
    "Autoencoder",
    "AutoencoderOptions",
    "Componentwise",
    "ConformalEstimate",
    "ContextLoss",
    "DiscreteNAO",
    "KernelMap",
    "Loss",
    "NAOOptions",
    "NAOu",
    "NoOptions",
    "ProbabilisticMap",
    "SetNAO",
    "SetNAOOptions",
    "SoftmaxNAO",
    "register",
]
