"""From the pairs of one output to a mixture: a pilot fit with white errors, then plug-in fits with those of quadrature.

f is in units of its own size, t and u too. The prior's components expect responses of that size at α = 1.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core.context import distinct_inputs
from kernelmap.core.grids import Grid
from kernelmap.posterior.kernel1d.components import Component, Features
from kernelmap.posterior.kernel1d.errors import (
    ErrorShape,
    alternating_weights,
    jump_variance,
    white_noise,
    with_quadrature,
)
from kernelmap.posterior.kernel1d.evidence import Whitened, evidence
from kernelmap.posterior.kernel1d.measured.correlation import Correlation
from kernelmap.posterior.kernel1d.measured.nuisance import Nuisance
from kernelmap.posterior.kernel1d.measured.whitening import Whitening
from kernelmap.posterior.kernel1d.mixture import Blocks, Mixture, pool, weigh
from kernelmap.posterior.kernel1d.pieces import Responses, likeliest_edges
from kernelmap.posterior.kernel1d.prior import Prior
from kernelmap.posterior.kernel1d.units import Units, trimmed_mean

VALUES_AT_ONCE = 1_000_000
"""Of tokens, that are copied at a time."""
PILOT_PAIRS = 1000
"""At most so many pairs choose the components that all pairs are then given to."""

NEGLIGIBLE = 1e-2
"""Errors of the quadrature with a smaller share of the noise's variance are left out."""

SETTLED = 4.0
"""So many times the least variance of the pilot fit: noise that it has found, not been given."""


class Pairs(NamedTuple):
    """Pairs with different inputs, f a mean over `repeats`: U in the user's units, all else in those of the engine.

    unit: one unit of the tokens.
    columns: of U, one for each pair; all, if there are none. U itself is not copied: it may be as large as memory.
    measured: tokens of single pairs and T, where those of U are sums of them, U = tokens Tᵀ; correlated: whether the
        errors of the single pairs are.
    """

    U: Float[Tensor, "N d"]
    f: Float[Tensor, " d"]
    repeats: Float[Tensor, " d"]
    y: Grid
    unit: float
    measured: tuple[Float[Tensor, "N m"], Float[Tensor, "d m"]] | None = None
    correlated: bool = False
    columns: Int[Tensor, " d"] | None = None

    @property
    def tokens(self) -> Float[Tensor, "N d"]:
        return self.U if self.columns is None else self.U[:, self.columns]

    def chosen(self, some: Int[Tensor, " n"]) -> "Pairs":
        measured = None if self.measured is None else (self.measured[0], self.measured[1][some])
        columns = some if self.columns is None else self.columns[some]
        return self._replace(f=self.f[some], repeats=self.repeats[some], measured=measured, columns=columns)

    def some(self, count: int) -> "Pairs":
        """At most so many of them, in equal strides."""
        d = len(self.f)
        return self if d <= count else self.chosen(torch.linspace(0, d - 1, count, device=self.f.device).long())

    def parts(self) -> "list[Pairs]":
        """So few at a time that arrays like their tokens take little memory."""
        numbers = torch.arange(len(self.f), device=self.f.device)
        at_once = max(1, VALUES_AT_ONCE // len(self.U))
        return [self] if len(numbers) <= at_once else [self.chosen(some) for some in numbers.split(at_once)]

    def responses(self, features: Features, blocks: Iterable[int]) -> dict[int, Tensor]:
        """Uᵀ diag(w) Φ of these blocks, each (d, R)."""
        blocks, weights = list(blocks), self.y.value_weights / self.unit
        found = [weighted_sums(part.tokens, weights, features, blocks) for part in self.parts()]
        return {block: torch.cat([part.pop(block) for part in found]) for block in blocks}

    def quadrature_variance(self, mixture: Mixture) -> Float[Tensor, " d"]:
        """Of each pair's error: that of the tokens' jumps, or what the alternating sum tells of the kernel's own.

        max(b, E[(Σ_k ±w_k K(t_k) U[k])²] / 3): a sum that is off by a random part of a cell has a third of the square
        of half its change when every second point is left out. Beside errors that go together it is left out: those of
        single pairs are then part of the nugget.
        """
        if self.correlated:
            return torch.zeros_like(self.f)
        kernel_squared = second_moment(mixture)
        return torch.cat([part._quadrature_variance(mixture, kernel_squared) for part in self.parts()])

    def _quadrature_variance(self, mixture: Mixture, kernel_squared: Float[Tensor, " N"]) -> Float[Tensor, " d"]:
        weights = alternating_weights(self.y) / self.unit
        sums = weighted_sums(self.tokens, weights, mixture.features, mixture.blocks)
        mean, variance = pool(*mixture.moments(sums))
        return torch.maximum(self.jump_variance(kernel_squared), (mean.square() + variance) / 3)

    def jump_variance(self, kernel_squared: Float[Tensor, " N"]) -> Float[Tensor, " d"]:
        if self.measured is None:
            return jump_variance(self.tokens, self.unit, self.y, kernel_squared)
        tokens, T = self.measured
        return T.square() @ jump_variance(tokens, self.unit, self.y, kernel_squared)


@dataclass(frozen=True)
class Fit:
    """The mixture in the units of the engine, and E[K²], which makes the errors of jumps.

    nuisance: what f has besides the kernel's response.
    correlation: of the errors in time, where it was looked for.
    T: the whitening of the pairs, where they had one.
    nugget: part of the errors' variance that every measurement has for itself.
    through_kernel: part that comes from noise on u, where that is known of.
    residuals: of the pairs from what the others say, in standard deviations, where outliers were looked for.
    """

    mixture: Mixture
    units: Units
    y: Grid
    kernel_squared: Float[Tensor, " N"]
    nuisance: Nuisance | None = None
    correlation: Correlation | None = None
    T: Float[Tensor, "n d"] | None = None
    nugget: float = 1.0
    through_kernel: float | None = None
    residuals: Float[Tensor, " d"] | None = None

    def kernel_moments(self) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (C,), means and variances (C, N) of K in all components, in units of `units.kernel`."""
        return self.mixture.moments(self.mixture.features.blocks)

    def response_moments(self, U: Float[Tensor, "N n"], Z: Float[Tensor, "n q"]) -> tuple[Tensor, Tensor, Tensor]:
        """The same of measured responses to new inputs: noise and errors of jumps included; in units of `units.f`."""
        jumps = jump_variance(U, self.units.u, self.y, self.kernel_squared)
        parts, means, variances = self.expected_moments(U, Z)
        return parts, means, variances + self.factor * self.mixture.error_variance(jumps)

    @property
    def factor(self) -> float:
        """Of the variance of errors, and of what goes on beside the kernel, over all correlations to that of one."""
        return 1.0 if self.correlation is None else self.correlation.factor

    def expected_moments(self, U: Float[Tensor, "N n"], Z: Float[Tensor, "n q"]) -> tuple[Tensor, Tensor, Tensor]:
        """The same of responses without errors, Uᵀ diag(w) K + Z β."""
        mixture, weights = self.mixture, self.y.value_weights / self.units.u
        if self.nuisance is not None:
            U = U - self.nuisance.tokens @ Z.mT
        parts, means, variances = mixture.moments(weighted_sums(U, weights, mixture.features, mixture.blocks))
        if self.nuisance is not None:
            means = means + Z @ self.nuisance.values / self.units.f
            variance = self.factor * mixture.white_variance()[:, None]
            variances = variances + variance * ((Z @ self.nuisance.S) * Z).sum(dim=1)
        return parts, means, variances


def fit(
    U: Float[Tensor, "N d"], f: Float[Tensor, " d"], y: Grid, prior: Prior, whitening: Whitening | None = None
) -> Fit:
    """Condition the prior on f = Uᵀ diag(w) K + e, with white errors after the whitening, if one is given."""
    pairs, units = prepared(U, f, y, whitening)
    pilot = pairs.some(PILOT_PAIRS)
    features, responses = pilot_features(pilot, prior)
    survivors = [i for i, component in enumerate(features.components) if prior.log_odds[component.odds].isfinite()]
    errors = [white_noise(pilot.repeats, prior.noise)]
    mixture = weigh(features, responses, pilot.f, survivors, errors, prior, prior.pilot_noise)
    for count in prior.survivors:
        b, noise = pairs.quadrature_variance(mixture), float(mixture.white_variance().min())
        if pilot is pairs and noise > max(SETTLED * prior.pilot_noise**2, float(b.mean()) / NEGLIGIBLE):
            break
        survivors = sorted(survivors, key=mixture.component_weights.tolist().__getitem__, reverse=True)[:count]
        if pilot is not pairs:
            pilot, responses = pairs, pairs.responses(features, {features.components[i].block for i in survivors})
        errors = plug_in_errors(pairs, b, noise, prior)
        mixture = weigh(features, responses, pairs.f, survivors, errors, prior, prior.least_noise)
    return Fit(mixture.with_used_features(), units, pairs.y, second_moment(mixture))


def prepared(
    U: Float[Tensor, "N d"], f: Float[Tensor, " d"], y: Grid, whitening: Whitening | None
) -> tuple[Pairs, Units]:
    """Pairs in the engine's units, repeats averaged; whitened pairs are sums of several, and none repeats another."""
    measured = None
    if whitening is not None:
        measured = U, whitening.T
        U, f = U @ whitening.T.mT, whitening.T @ f
    units = Units.of(U, f, y)
    columns, f, repeats = averaged(U, f / units.f) if measured is None else (None, f / units.f, torch.ones_like(f))
    correlated = whitening is not None and whitening.correlated
    return Pairs(U, f, repeats, units.scaled(y), units.u, measured, correlated, columns), units


def plug_in_errors(pairs: Pairs, b: Float[Tensor, " d"], noise: float, prior: Prior) -> list[ErrorShape]:
    """White noise and, where it is not small beside that, the error of the quadrature."""
    errors = [white_noise(pairs.repeats, prior.noise)]
    if float(b.mean()) > NEGLIGIBLE * noise:
        errors += with_quadrature(b, pairs.repeats, prior.ratios, prior.spread, prior.noise)
    return errors


def pilot_features(pairs: Pairs, prior: Prior) -> tuple[Features, dict[int, Tensor]]:
    """All components on the grid of the pairs, those with jumps at their likeliest edges, and their responses."""
    t = pairs.y.points[:, 0]
    h = 0.5 * float(t[1] - t[0])
    features = prior.features(t, h)
    responses = pairs.responses(features, range(len(features.blocks)))
    features = features._replace(components=expecting_unit_responses(features.components, responses))
    pieces = prior.pieces
    sums = Responses.of(pieces, pairs.tokens, pairs.unit, pairs.y, h)
    errors = white_noise(pairs.repeats, prior.noise)

    def score(blocks: Float[Tensor, "C d R"], omegas: Float[Tensor, "S R"]) -> Float[Tensor, "C S"]:
        expected = trimmed_mean((blocks.square() @ omegas.square().mT).mT)
        scaled = omegas / torch.where(expected > 0, expected, 1.0).sqrt()[..., None]
        found = evidence(Whitened.of(blocks, pairs.f, errors), scaled, prior.amplitude, prior.pilot_noise**2)
        return found.log_weight.logsumexp(dim=-1)

    log_odds = prior.log_odds[prior.first_edge :][: pieces.odds].reshape(
        pieces.most, len(pieces.spectra) * len(pieces.last)
    )
    edges = likeliest_edges(pieces, sums, log_odds, score)
    components = pieces.components(edges, len(sums.places), prior.first_edge, t.device)
    stepped = [sums.of_pieces(own) for own in edges]
    responses |= {len(features.blocks) + i: own for i, own in enumerate(stepped)}
    blocks = [sums.features_of(own) for own in edges]
    return features.extended(blocks, expecting_unit_responses(components, stepped)), responses


def averaged(U: Float[Tensor, "N d"], f: Float[Tensor, " d"]) -> tuple[Tensor, Tensor, Tensor]:
    """The first pair of every different input, the mean of its responses, and how many there were.

    In the order of the responses: rounding, and which pairs the pilot fit takes, do not depend on the order given.
    """
    group = distinct_inputs(U)
    repeats = torch.bincount(group).to(f)
    numbers = torch.arange(len(f), device=f.device)
    first = torch.full_like(repeats, len(f), dtype=torch.long).scatter_reduce(0, group, numbers, "amin")
    f = torch.zeros_like(repeats).index_add(0, group, f) / repeats
    order = f.argsort()
    return first[order], f[order], repeats[order]


def weighted_sums(
    U: Float[Tensor, "N d"], weights: Float[Tensor, " N"], features: Features, blocks: Iterable[int]
) -> dict[int, Tensor]:
    """Uᵀ diag(weights) Φ of these blocks, each (d, R)."""
    return {block: U.mT @ (weights[:, None] * features.blocks[block]) for block in blocks}


def expecting_unit_responses(components: list[Component], responses: Blocks) -> list[Component]:
    """Components scaled so that, at α = 1, their responses to these inputs have the size of f."""
    scaled = []
    for component in components:
        expected = float(trimmed_mean(responses[component.block].square() @ component.omega.square()))
        scale = math.sqrt(expected) if expected > 0 else 1.0
        scaled.append(component._replace(omega=component.omega / scale))
    return scaled


def second_moment(mixture: Mixture) -> Float[Tensor, " N"]:
    """E[K²] at every point."""
    mean, variance = pool(*mixture.moments(mixture.features.blocks))
    return mean.square() + variance
