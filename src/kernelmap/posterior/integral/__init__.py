"""Kernels K(x, y) without physics put in: a matrix-normal prior, learned over systems, conditioned on the pairs."""

from kernelmap.posterior.integral.map import IntegralPosteriorMap
from kernelmap.posterior.integral.matrix_normal import Covariance, Gram, MatrixNormal
from kernelmap.posterior.integral.posterior import IntegralPosterior

__all__ = ["Covariance", "Gram", "IntegralPosterior", "IntegralPosteriorMap", "MatrixNormal"]
