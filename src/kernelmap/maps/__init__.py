"""Kernel maps: from the pairs of a context to the hidden kernel. One file each."""

from typing import Literal

from kernelmap.maps.afno import AFNO
from kernelmap.maps.autoencoder import Autoencoder
from kernelmap.maps.banded import BandedMap, HiddenField, KernelPosterior
from kernelmap.maps.base import KernelMap, MapOptions, Normaliser
from kernelmap.maps.componentwise import Componentwise
from kernelmap.maps.discrete import DiscreteNAO
from kernelmap.maps.domain import ContextShape, Domain
from kernelmap.maps.local import LocalPosteriorMap
from kernelmap.maps.local_posterior import LocalPosterior
from kernelmap.maps.local_prior import LocalOptions
from kernelmap.maps.material import MaterialPosteriorMap
from kernelmap.maps.medium_posterior import MediumPosterior
from kernelmap.maps.medium_prior import MediumOptions
from kernelmap.maps.mixture import Posterior
from kernelmap.maps.nao import NAO, NAOu
from kernelmap.maps.posterior import PosteriorMap
from kernelmap.maps.prior import PosteriorOptions
from kernelmap.maps.softmax import SoftmaxNAO
from kernelmap.maps.solution import SolutionPosterior, SolutionPosteriorMap

MapName = Literal[
    "nao",
    "discrete-nao",
    "softmax-nao",
    "nao-u",
    "afno",
    "autoencoder",
    "posterior",
    "local-posterior",
    "solution-posterior",
    "material-posterior",
]

MAPS: dict[MapName, type[KernelMap]] = {
    "nao": NAO,
    "discrete-nao": DiscreteNAO,
    "softmax-nao": SoftmaxNAO,
    "nao-u": NAOu,
    "afno": AFNO,
    "autoencoder": Autoencoder,
    "posterior": PosteriorMap,
    "local-posterior": LocalPosteriorMap,
    "solution-posterior": SolutionPosteriorMap,
    "material-posterior": MaterialPosteriorMap,
}

__all__ = [
    "AFNO",
    "MAPS",
    "NAO",
    "Autoencoder",
    "BandedMap",
    "Componentwise",
    "ContextShape",
    "DiscreteNAO",
    "Domain",
    "HiddenField",
    "KernelMap",
    "KernelPosterior",
    "LocalOptions",
    "LocalPosterior",
    "LocalPosteriorMap",
    "MapName",
    "MapOptions",
    "MaterialPosteriorMap",
    "MediumOptions",
    "MediumPosterior",
    "NAOu",
    "Normaliser",
    "Posterior",
    "PosteriorMap",
    "PosteriorOptions",
    "SoftmaxNAO",
    "SolutionPosterior",
    "SolutionPosteriorMap",
]
