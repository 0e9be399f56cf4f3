"""Choosing the regularisation parameter by generalised cross-validation."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from torch import Tensor

STEPS = 200

FREEDOM_COST = 1.4
"""What a degree of freedom counts in cross-validation. Counted once, some contexts of exact data are interpolated, with
errors of the kernel of thousands of percent; 1.4 is the usual remedy (Kim and Gu, 2004)."""


@dataclass(frozen=True)
class Spectrum:
    """A filtered least-squares problem in the basis of its singular vectors.

    `data` are F's coefficients, `outside` the squared norm of the part of F that no kernel can explain, `values` the
    number of measured values.
    """

    s: Float[Tensor, " R"]
    data: Float[Tensor, "M R"]
    outside: float
    values: int
    order: int

    def filtered(self, lam: float) -> Float[Tensor, " R"]:
        """φ = s^order / (s^order + λ), between 0 and 1."""
        return 1 / (1 + lam / self.s**self.order)

    def residual(self, lam: float) -> float:
        """||F - F_hat||²."""
        return float(((1 - self.filtered(lam)) * self.data).square().sum()) + self.outside

    def freedom(self, lam: float) -> float:
        """Effective degrees of freedom of the estimate."""
        return float(self.filtered(lam).sum()) * self.data.shape[0]

    def log_range(self) -> tuple[float, float]:
        """log10 of the parameters between filtering nothing and filtering everything: φ = 1/2 at λ = s^order."""
        low, high = np.log10([float(self.s[-1]), float(self.s[0])])
        return self.order * low - 6, self.order * high + 1


def gcv(spectrum: Spectrum) -> float:
    """argmin of ||F - F_hat||² / (values - 1.4 degrees of freedom)²: on a grid, then refined."""

    def score(log_lam: float) -> float:
        free = spectrum.values - FREEDOM_COST * spectrum.freedom(10**log_lam)
        return spectrum.residual(10**log_lam) / free**2 if free > 0 else 1e300

    grid = np.linspace(*spectrum.log_range(), STEPS)
    best = int(np.argmin([score(t) for t in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, STEPS - 1)]
    return float(10 ** minimize_scalar(score, bounds=bounds, method="bounded").x)  # pyright: ignore
