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

from kernelmap.core.context import distinct_inputs
from kernelmap.posterior.kernel1d.errors import ErrorShape
from kernelmap.posterior.kernel1d.fit import Fit, Pairs, averaged, weighted_sums
from kernelmap.posterior.kernel1d.units import size

FREEDOM = 4.0
"""ν: errors with long tails, whose variance is still a number."""

OUTLIER = 7.0
"""Standard deviations from which on a pair is named; without one there is no reason to fit again. Errors of the
quadrature have tails too: 5 named pairs of exact systems of the world."""

MOST_OUTLIERS = 0.25
"""Of the pairs: if more are far from what the others say, it is the model that is wrong."""

LEAST_ERROR = 1e-3
"""Of the size of f, that a good measurement has at least: smaller errors are those of the quadrature."""

ROUNDS = 6

QUADRATURE = 4.0
"""Times its variance: that of the size of the errors of jumps is uncertain by about as much."""

MEDIAN_OF_NORMAL = 0.6745
"""Of the size of a standard normal variable."""

LEAVES_LITTLE = 1e-3
"""Of a pair's precision: the others hardly say what it should be."""


class Residuals(NamedTuple):
    """Of each pair from what the others say of it: the difference, and variances of that of a good measurement.

    noise: of the noise found and of what the others leave open; quadrature: of the pair's own error of the quadrature.
    """

    difference: Float[Tensor, " d"]
    noise: Float[Tensor, " d"]
    quadrature: Float[Tensor, " d"]

    @property
    def standardised(self) -> Float[Tensor, " d"]:
        """Outliers have a part in the noise found, most pairs do not: it counts as they show it, where that is less."""
        scale = float((self.difference.abs() / self.noise.sqrt()).median()) / MEDIAN_OF_NORMAL
        return self.difference / (min(scale, 1.0) ** 2 * self.noise + self.quadrature).sqrt()


def residuals(
    found: Fit,
    U: Float[Tensor, "N d"],
    f: Float[Tensor, " d"],
    precision: Float[Tensor, " d"],
    good: Float[Tensor, " d"],
) -> Residuals:
    """Under the likeliest component of the mixture, in units of f.

    precision: that under which it was found; good: that of the pairs if none is an outlier.
    """
    component = max(found.mixture.components, key=lambda component: float(component.given.weights.max()))
    best = component.given.weights.argmax()
    kappa, nugget = float(component.given.kappa[best]), component.shape.nugget
    weights, block = found.y.value_weights / found.units.u, component.block
    A = weighted_sums(U, weights, found.mixture.features, [block])[block]
    f = f / found.units.f
    b = Pairs(U, f, torch.ones_like(f), found.y, found.units.u).quadrature_variance(found.mixture)
    if found.T is None:
        inverse = 1 / single_errors(component.shape, U, f)
        means, variances = component.given.seen(A)
        seen, v = (f - means[best]) * inverse, variances[best] * inverse.square()
    else:
        T = found.T / component.shape.n.sqrt()[:, None]
        inverse, (means, _) = T.square().sum(dim=0), component.given.seen(T @ A)
        _, variances = component.given.seen(T.mT @ (T @ A))
        seen, v = T.mT @ (T @ f - means[best]), variances[best]
    left = torch.maximum(kappa * inverse - v, LEAVES_LITTLE * kappa * inverse)
    own = kappa * nugget * found.nugget * (1 / precision - 1 / good)
    variance = (kappa * (kappa / left) - own).clamp(min=LEAVES_LITTLE * kappa)
    quadrature = QUADRATURE * b + (LEAST_ERROR * size(f - f.median())) ** 2
    unit = found.units.f
    return Residuals(unit * kappa * seen / left, unit**2 * variance, unit**2 * quadrature)


def single_errors(shape: ErrorShape, U: Float[Tensor, "N d"], f: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
    """n of every pair by itself, from that of the means over repeats: repeats share the error of the quadrature."""
    group = distinct_inputs(U)
    columns, _, repeats = averaged(U, f)
    quadrature = torch.empty_like(shape.n)
    quadrature[group[columns]] = shape.n - shape.nugget / repeats
    return quadrature[group] + shape.nugget


def student_precision(standardised: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
    return (FREEDOM + 1) / (FREEDOM + standardised.square())
