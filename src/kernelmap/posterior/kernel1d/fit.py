"""From the pairs of one output to a mixture: a pilot fit with white errors, then plug-in fits with those of quadrature.

f is in units of its own size, t and u too. The prior's components expect responses of that size at α = 1.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import distinct_inputs
from kernelmap.core.grids import Grid
from kernelmap.posterior.kernel1d.components import Features
from kernelmap.posterior.kernel1d.errors import ErrorShape, Jumps, alternating_weights, white_noise, with_quadrature
from kernelmap.posterior.kernel1d.mixture import Mixture, pool, weigh
from kernelmap.posterior.kernel1d.prior import Prior
from kernelmap.posterior.kernel1d.units import Units, trimmed_mean

NEGLIGIBLE = 1e-2
"""Errors of the quadrature with a smaller share of the noise's variance are left out."""

SETTLED = 4.0
"""So many times the least variance of the pilot fit: noise that it has found, not been given."""


@dataclass(frozen=True)
class Fit:
    """The mixture in the units of the engine, and E[K²], which makes the errors of jumps."""

    mixture: Mixture
    units: Units
    y: Grid
    kernel_squared: Float[Tensor, " N"]

    def kernel_moments(self) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (C,), means and variances (C, N) of K in all cells, in units of `units.kernel`."""
        return self.mixture.moments(self.mixture.features.blocks)

    def response_moments(self, U: Float[Tensor, "N n"]) -> tuple[Tensor, Tensor, Tensor]:
        """The same of measured responses to new inputs: noise and errors of jumps included; in units of `units.f`."""
        U = U / self.units.u
        weights, means, variances = self.mixture.moments(responses_to(U, self.mixture.features, self.y.weights))
        errors = self.mixture.error_variance(Jumps.of(U, self.y).variance(self.kernel_squared))
        return weights, means, variances + errors


class Pairs(NamedTuple):
    """Pairs with different inputs, f a mean over `repeats`, in the units of the engine and as the features see them."""

    f: Float[Tensor, " d"]
    repeats: Float[Tensor, " d"]
    features: Features
    responses: list[Tensor]
    alternating: Float[Tensor, "N d"]
    jumps: Jumps

    @classmethod
    def of(cls, U: Float[Tensor, "N d"], f: Float[Tensor, " d"], y: Grid, prior: Prior) -> "Pairs":
        U, f, repeats = averaged(U, f)
        t = y.points[:, 0]
        features = prior.features(t, 0.5 * float(t[1] - t[0]))
        responses = responses_to(U, features, y.weights)
        features = expecting_unit_responses(features, responses)
        return cls(f, repeats, features, responses, alternating_weights(y)[:, None] * U, Jumps.of(U, y))

    def quadrature_variance(self, mixture: Mixture) -> Float[Tensor, " d"]:
        """Of each pair's error: that of the tokens' jumps, or what the alternating sum tells of the kernel's own.

        max(b, E[(Σ_k ±w_k K(t_k) U[k])²] / 3): a sum that is off by a random part of a cell has a third of the square
        of half its change when every second point is left out.
        """
        sums = {block: self.alternating.mT @ mixture.features.blocks[block] for block in mixture.blocks}
        mean, variance = pool(*mixture.moments(sums))
        return torch.maximum(self.jumps.variance(second_moment(mixture)), (mean.square() + variance) / 3)


def fit(U: Float[Tensor, "N d"], f: Float[Tensor, " d"], y: Grid, prior: Prior) -> Fit:
    """Condition the prior on f = Uᵀ diag(w) K + e."""
    units = Units.of(U, f, y)
    y = units.scaled(y)
    pairs = Pairs.of(U / units.u, f / units.f, y, prior)
    white = white_noise(pairs.repeats, prior.noise)
    mixture = weighed(pairs, prior, prior.log_odds.isfinite().nonzero()[:, 0].tolist(), [white], prior.pilot_noise)
    for count in prior.survivors:
        b, noise = pairs.quadrature_variance(mixture), float(mixture.white_variance().min())
        if noise > max(SETTLED * prior.pilot_noise**2, float(b.mean()) / NEGLIGIBLE):
            break
        errors = [white]
        if float(b.mean()) > NEGLIGIBLE * noise:
            errors += with_quadrature(b, pairs.repeats, prior.ratios, prior.spread, prior.noise)
        survivors = mixture.weights.argsort(descending=True)[:count].tolist()
        mixture = weighed(pairs, prior, survivors, errors, prior.least_noise)
    return Fit(mixture, units, y, second_moment(mixture))


def averaged(U: Float[Tensor, "N d"], f: Float[Tensor, " d"]) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs with different inputs, the means of their responses, and how many there were of each."""
    group = distinct_inputs(U)
    repeats = torch.bincount(group).to(f)
    if len(repeats) == len(f):
        return U, f, repeats
    first = torch.full((len(repeats),), len(f)).scatter_reduce(0, group, torch.arange(len(f)), "amin")
    return U[:, first], torch.zeros_like(repeats).index_add(0, group, f) / repeats, repeats


def weighed(
    pairs: Pairs, prior: Prior, components: list[int], errors: list[ErrorShape], least_noise: float
) -> Mixture:
    return weigh(
        pairs.features, pairs.responses, pairs.f, components, errors, prior.log_odds, prior.amplitude, least_noise**2
    )


def responses_to(U: Float[Tensor, "N d"], features: Features, weights: Float[Tensor, " N"]) -> list[Tensor]:
    """Uᵀ diag(w) Φ of every block, each (d, R)."""
    weighted = (weights[:, None] * U).mT
    return [weighted @ block for block in features.blocks]


def expecting_unit_responses(features: Features, responses: list[Tensor]) -> Features:
    """Components scaled so that, at α = 1, their responses to these inputs have the size of f."""
    powers = [block.square() for block in responses]
    scaled = []
    for component in features.components:
        expected = float(trimmed_mean(powers[component.block][:, component.columns] @ component.omega.square()))
        scaled.append(
            component._replace(omega=component.omega / math.sqrt(expected) if expected > 0 else component.omega)
        )
    return features._replace(components=scaled)


def second_moment(mixture: Mixture) -> Float[Tensor, " N"]:
    """E[K²] at every point."""
    mean, variance = pool(*mixture.moments(mixture.features.blocks))
    return mean.square() + variance
