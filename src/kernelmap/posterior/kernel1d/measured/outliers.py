"""Outliers: errors with long tails, a scale mixture of Gaussians, by a few reweighted fits.

    e_j ~ N(0, κ / p_j) ,  p_j ~ Gamma(ν/2, ν/2) :  Student errors          E[p_j | r_j] = (ν + 1) / (ν + r_j²)

r_j is the residual of pair j from what the others say of it, in standard deviations that a good measurement has there.
With the whitening T, e' = T (f - A m) and v_j the posterior variance of (Tᵀ T A z)_j,

    f_j - E[f_j | others] = κ (Tᵀ e')_j / (κ (TᵀT)_jj - v_j) ,     Var[f_j | others] = κ² / (κ (TᵀT)_jj - v_j)
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.posterior.kernel1d.errors import jump_variance
from kernelmap.posterior.kernel1d.fit import Fit, weighted_sums

FREEDOM = 4.0
"""ν: errors with long tails, whose variance is still a number."""

SUSPECT = 6.0
"""Of robust standard deviations: without a larger residual there is no reason to fit again."""

OUTLIER = 5.0
"""Standard deviations from which on a pair is named."""

ROUNDS = 6

LEAVES_LITTLE = 1e-3
"""Of a pair's precision: the others hardly say what it should be."""


class Residuals(NamedTuple):
    """Of each pair from what the others say of it: the difference, and the variance of that of a good measurement."""

    difference: Float[Tensor, " d"]
    variance: Float[Tensor, " d"]

    @property
    def standardised(self) -> Float[Tensor, " d"]:
        return self.difference / self.variance.sqrt()


def residuals(
    found: Fit,
    U: Float[Tensor, "N d"],
    f: Float[Tensor, " d"],
    precision: Float[Tensor, " d"],
) -> Residuals:
    """Under the likeliest cell of the mixture, in units of f; `precision` is that under which it was found."""
    cell = max(found.mixture.cells, key=lambda cell: float(cell.given.weights.max()))
    best = cell.given.weights.argmax()
    kappa, nugget = float(cell.given.kappa[best]), cell.shape.nugget
    weights, block = found.y.value_weights / found.units.u, cell.block
    A = weighted_sums(U, weights, found.mixture.features, [block])[block]
    f = f / found.units.f
    if found.T is None:
        jumps = cell.shape.has_jumps * jump_variance(U, found.units.u, found.y, found.kernel_squared)
        inverse = 1 / (jumps + nugget)
        means, variances = cell.given.moments(A)
        seen, v = (f - means[best]) * inverse, variances[best] * inverse.square()
    else:
        T = found.T / cell.shape.n.sqrt()[:, None]
        inverse, (means, _) = T.square().sum(dim=0), cell.given.moments(T @ A)
        _, variances = cell.given.moments(T.mT @ (T @ A))
        seen, v = T.mT @ (T @ f - means[best]), variances[best]
    left = torch.maximum(kappa * inverse - v, LEAVES_LITTLE * kappa * inverse)
    own = kappa * nugget * (1 / precision - 1)
    variance = (kappa**2 / left - own).clamp(min=LEAVES_LITTLE * kappa)
    return Residuals(found.units.f * kappa * seen / left, found.units.f**2 * variance)


def robust_scale(standardised: Float[Tensor, " d"]) -> float:
    """Of most of the residuals, whatever the others are."""
    return max(float(standardised.abs().median()) / 0.6745, 1e-12)


def student_precision(standardised: Float[Tensor, " d"], scale: float) -> Float[Tensor, " d"]:
    return (FREEDOM + 1) / (FREEDOM + (standardised / scale).square())


def is_suspect(standardised: Float[Tensor, " d"]) -> bool:
    return float(standardised.abs().max()) > SUSPECT * min(robust_scale(standardised), 1.0)
