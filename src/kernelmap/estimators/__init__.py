"""Classical estimators of a kernel, from one system's pairs alone."""

from kernelmap.estimators.spectral import Estimate, dartr, tikhonov

__all__ = ["Estimate", "dartr", "tikhonov"]
