"""Kernels of one coordinate."""

from kernelmap.posterior.kernel1d.map import Kernel1dMap
from kernelmap.posterior.kernel1d.posterior import Kernel1dPosterior
from kernelmap.posterior.kernel1d.prior import Kernel1dOptions

__all__ = ["Kernel1dMap", "Kernel1dOptions", "Kernel1dPosterior"]
