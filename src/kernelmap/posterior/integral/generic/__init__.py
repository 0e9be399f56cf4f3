"""Kernels K(x, y) without training systems: Matérn covariances in x and in y, weighed by the evidence of the pairs."""

from kernelmap.posterior.integral.generic.map import GenericIntegralMap, GenericIntegralOptions
from kernelmap.posterior.integral.generic.posterior import GenericIntegralPosterior

__all__ = ["GenericIntegralMap", "GenericIntegralOptions", "GenericIntegralPosterior"]
