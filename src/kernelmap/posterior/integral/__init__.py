"""Kernels K(x, y) without physics put in: a prior learned over systems, or generic components weighed by evidence."""

from kernelmap.posterior.integral.generic import (
    GenericIntegralMap,
    GenericIntegralOptions,
    GenericIntegralPosterior,
)
from kernelmap.posterior.integral.map import IntegralPosteriorMap
from kernelmap.posterior.integral.matrix_normal import Covariance, Gram, MatrixNormal
from kernelmap.posterior.integral.posterior import IntegralPosterior

__all__ = [
    "Covariance",
    "GenericIntegralMap",
    "GenericIntegralOptions",
    "GenericIntegralPosterior",
    "Gram",
    "IntegralPosterior",
    "IntegralPosteriorMap",
    "MatrixNormal",
]
