"""Types and algebra that everything else is made of."""

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape, Domain
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.core.places import Places
from kernelmap.core.posterior import ESTIMATES, HiddenField, KernelEstimate, KernelPosterior, Prediction
from kernelmap.core.registry import Registry
from kernelmap.core.systems import SystemSet

__all__ = [
    "ESTIMATES",
    "Context",
    "ContextShape",
    "Domain",
    "Grid",
    "HiddenField",
    "InputError",
    "Kernel",
    "KernelEstimate",
    "KernelPosterior",
    "Places",
    "Prediction",
    "Registry",
    "SystemSet",
    "grids",
]
