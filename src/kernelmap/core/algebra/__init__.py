"""Linear algebra: Bayesian regression, and products with shared matrices."""

from kernelmap.core.algebra.linear_gaussian import Regression, regress
from kernelmap.core.algebra.products import shared_matmul

__all__ = ["Regression", "regress", "shared_matmul"]
