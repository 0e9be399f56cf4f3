"""Several inputs that act together: f = Σ_i U_iᵀ diag(w) K_i + Z β + e, a component and an amplitude for each K_i.

Components cannot all be tried together. Those of one input are weighed while the responses of the others, Gaussian
under their likeliest components, are part of the errors' covariance:

    C_i = κ C + Σ_{j≠i} A_j diag(ω_j²) A_jᵀ ,    A_j = U_jᵀ diag(w) Φ_j

After a few sweeps the likeliest of each input are put together, all with all, at a few ratios of their amplitudes, and
weighed by their joint evidence: K = (Φ_1 ω_1 z_1, Φ_2 ω_2 z_2, ..) is one more kernel made of features.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.posterior.kernel1d.components import Block, Component, Features, Spectrum
from kernelmap.posterior.kernel1d.errors import white_noise
from kernelmap.posterior.kernel1d.fit import (
    Fit,
    expecting_unit_responses,
    fit,
    plug_in_errors,
    prepared,
    second_moment,
)
from kernelmap.posterior.kernel1d.measured.whitening import Whitening
from kernelmap.posterior.kernel1d.mixture import PRUNED, weigh
from kernelmap.posterior.kernel1d.prior import Prior
from kernelmap.posterior.kernel1d.units import size

SWEEPS = 2

COMBINATIONS = 25
"""Of components of all inputs, at most, at every ratio of amplitudes."""

RATIOS = (0.5, 1.0, 2.0)
"""Of the amplitudes that were found, tried for all inputs but the first."""

START = Block(warp=0.2), Spectrum(0, 8, 2), 60
"""A broad component, with that many cosines, which stands for an input before it has had its turn."""

START_NOISE = 0.3
"""Relative to f."""

ROUNDING = 1e-12
"""Of tokens, relative to their size."""


class Candidate(NamedTuple):
    """K = Φ (ω z), z ~ N(0, 1), in the user's units, and its log prior probability."""

    features: Float[Tensor, "N R"]
    omega: Float[Tensor, " R"]
    log_prior: float


def fit_inputs(
    U: Float[Tensor, "nN d"],
    f: Float[Tensor, " d"],
    y: Grid,
    prior: Prior,
    C: Float[Tensor, "d d"],
    Z: Float[Tensor, "d q"],
) -> Fit:
    """The joint fit of all inputs; y has a component for each."""
    inputs, one = U.split(len(y.points)), y.with_components(1)
    whitening = Whitening.of(C, Z)
    check_inputs(inputs, whitening)
    power = size(whitening.T @ f) ** 2
    candidates = [[start(u, one, whitening, power / len(inputs))] for u in inputs]
    noise = START_NOISE**2 * power
    for _ in range(SWEEPS):
        for i, u in enumerate(inputs):
            others = [covariance(inputs[j], one, own[0]) for j, own in enumerate(candidates) if j != i]
            alone = fit(u, f, one, prior, Whitening.of(noise * C + torch.stack(others).sum(dim=0), Z))
            candidates[i] = likeliest(alone, prior)
        found = joint(U, f, y, prior, whitening, [own[:1] for own in candidates])
        noise = float(found.mixture.weights @ found.mixture.white_variance()) * found.units.f**2
    return joint(U, f, y, prior, whitening, candidates)


def check_inputs(inputs: Sequence[Float[Tensor, "N d"]], whitening: Whitening) -> None:
    """Tokens of a constant input have nothing left beside an unknown offset but rounding, which must not be fitted."""
    for number, u in enumerate(inputs, start=1):
        if u.any() and size(u @ whitening.T.mT) < ROUNDING * size(u):
            raise InputError(
                f"input {number} varies no more than the offset and the trend of f that are unknown too; leave it out, "
                'or set unknown = "none".'
            )


def start(u: Float[Tensor, "N d"], y: Grid, whitening: Whitening, power: float) -> Candidate:
    """A broad component whose responses have this power."""
    block, spectrum, count = START
    t = y.points[:, 0] / y.points.abs().max()
    features = block.features(t, 0.5 * float(t[1] - t[0]), count)
    omega = spectrum.weights(count, t.device)
    responses = whitening.T @ (u.mT @ (y.weights[:, None] * features)) * omega
    seen = float(responses.square().sum(dim=1).mean())
    return Candidate(features, omega * math.sqrt(power / seen) if seen > 0 else omega, 0.0)


def covariance(u: Float[Tensor, "N d"], y: Grid, candidate: Candidate) -> Float[Tensor, "d d"]:
    """Of the responses to an input."""
    responses = u.mT @ (y.weights[:, None] * candidate.features) * candidate.omega
    return responses @ responses.mT


def likeliest(found: Fit, prior: Prior) -> list[Candidate]:
    """The components of a mixture at their likeliest amplitudes, likeliest first; one under several errors is one."""
    weights: dict[tuple[int, float], float] = {}
    made: dict[tuple[int, float], Candidate] = {}
    for component in found.mixture.components:
        given, weight = component.given, float(component.given.weights.sum())
        key = component.block, round(float(given.omega.log().sum()), 6)
        alpha = float(given.weights @ (given.gamma * given.kappa)) / weight
        if weight > max(weights.get(key, 0.0), 0.0):
            log_prior = component.log_odds + float(prior.amplitude.log(given.omega.new_tensor(math.log(alpha))))
            features = found.mixture.features.blocks[component.block]
            made[key] = Candidate(features, math.sqrt(alpha) * found.units.kernel * given.omega, log_prior)
        weights[key] = weights.get(key, 0.0) + weight
    return [made[key] for key in sorted(weights, key=weights.__getitem__, reverse=True)]


def joint(
    U: Float[Tensor, "nN d"],
    f: Float[Tensor, " d"],
    y: Grid,
    prior: Prior,
    whitening: Whitening,
    candidates: list[list[Candidate]],
) -> Fit:
    """All combinations of the likeliest candidates of every input, weighed by their evidence."""
    most = max(1, int(COMBINATIONS ** (1 / len(candidates)) + 1e-9))
    combinations = list(product(*(own[:most] for own in candidates)))
    ratios = product(RATIOS, repeat=len(candidates) - 1) if len(candidates) <= 3 else [(1.0,) * (len(candidates) - 1)]
    factors = [(1.0, *others) for others in ratios]
    features = Features([torch.block_diag(*(c.features for c in combination)) for combination in combinations], [])
    pairs, units = prepared(U, f, y, whitening)
    responses = pairs.responses(features, range(len(combinations)))
    components = [
        Component(
            block,
            torch.cat([factor * c.omega for factor, c in zip(own, combination, strict=True)]),
            0,
            sum(c.log_prior for c in combination),
        )
        for block, combination in enumerate(combinations)
        for own in factors
    ]
    features = features._replace(components=expecting_unit_responses(components, responses))
    flat = prior.amplitude._replace(log_density=torch.zeros_like(prior.amplitude.log_density)).normalised()
    prior = prior._replace(log_odds=prior.log_odds.new_zeros(1), amplitude=flat)
    chosen = range(len(components))
    errors = [white_noise(pairs.repeats, prior.noise)]
    mixture = weigh(features, responses, pairs.f, chosen, errors, prior, prior.pilot_noise)
    b, noise = pairs.quadrature_variance(mixture), float(mixture.white_variance().min())
    if len(errors := plug_in_errors(pairs, b, noise, prior)) > 1:
        chosen = (mixture.component_weights > PRUNED).nonzero()[:, 0].tolist()
        mixture = weigh(features, responses, pairs.f, chosen, errors, prior, prior.least_noise)
    return Fit(mixture.with_used_features(), units, pairs.y, second_moment(mixture))
