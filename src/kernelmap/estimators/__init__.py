"""Classical estimators of a kernel, from one system's pairs alone."""

from kernelmap.estimators.spectral import Choice, Estimate, dartr, tikhonov

__all__ = ["Choice", "Estimate", "dartr", "tikhonov"]
