"""The fit of measurements with an unknown offset or trend, errors that go on in time, or several inputs.

The correlation of the errors is the likeliest of a few: first beside broad components, then beside those that were
found with it.
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.grids import Grid
from kernelmap.core.places import Places
from kernelmap.operators import Convolution
from kernelmap.posterior.kernel1d.components import Block, Component, Features, Spectrum
from kernelmap.posterior.kernel1d.errors import white_noise
from kernelmap.posterior.kernel1d.fit import Fit, expecting_unit_responses, fit, prepared
from kernelmap.posterior.kernel1d.measured import noisy_inputs
from kernelmap.posterior.kernel1d.measured.correlation import WHITE_NOISE, Correlation, Times, hypotheses
from kernelmap.posterior.kernel1d.measured.huge import precision_without_huge
from kernelmap.posterior.kernel1d.measured.inputs import fit_inputs
from kernelmap.posterior.kernel1d.measured.nuisance import (
    Clock,
    Nuisance,
    in_time,
    nuisance_columns,
    unknowns,
)
from kernelmap.posterior.kernel1d.measured.outliers import (
    MOST_OUTLIERS,
    OUTLIER,
    ROUNDS,
    residuals,
    student_precision,
)
from kernelmap.posterior.kernel1d.measured.responses import responses_prior
from kernelmap.posterior.kernel1d.measured.whitening import Whitening
from kernelmap.posterior.kernel1d.mixture import pool, weigh
from kernelmap.posterior.kernel1d.prior import Prior
from kernelmap.posterior.kernel1d.units import size

SEARCHES = 2
"""Of correlation and components, one after the other."""

MOST_PAIRS = 3000
"""Whose errors are taken as correlated; of more, so many in equal strides are used."""

BROAD = (Block(), Block(warp=0.2), Block(rate=3.3)), (Spectrum(0, 3, 2), Spectrum(0, 20, 3)), 60
"""Blocks, spectra and cosines of the components beside which a correlation is first looked for."""

SETTLED = 1.0
"""Change of the log precision of outliers between two fits, below which another fit would say the same."""

NO_WEIGHT = 1e-12
"""Precision of outliers that no fit sees any more: what the others leave open there is lost in rounding."""

FEWEST_PAIRS = 20
"""With fewer, no pair can be told from the others."""

FEW_COMPONENTS = 4
"""Of those that were found, beside which it is looked for again."""


def is_plain(context: Context, std: Float[Tensor, " d"] | None) -> bool:
    """One exact input, and nothing unknown besides its kernel and the level of white noise."""
    one_exact = context.y.components == 1 and context.u_errors is None
    return one_exact and std is None and not unknowns(context) and not in_time(context)


def fit_robust(
    U: Float[Tensor, "N d"],
    f: Float[Tensor, " d"],
    std: Float[Tensor, " d"] | None,
    context: Context,
    prior: Prior,
    keep_outliers: bool,
) -> Fit:
    """Of one system and output of the context, whose pairs are U and f; again with less weight of outliers.

    std: of the error of every f, as far as it is known.
    """
    plain, places = is_plain(context, std), context.places
    if context.operator == Convolution.name:
        prior = responses_prior(prior)
    own = torch.ones_like(f) if std is None else (std.log().mean().exp() / std).square()
    if not plain and len(f) > MOST_PAIRS:
        some = torch.linspace(0, len(f) - 1, MOST_PAIRS).long()
        U, f, own, places = U[:, some], f[some], own[some], None if places is None else places.select(some)
    alike = keep_outliers or not FEWEST_PAIRS <= len(f) <= MOST_PAIRS
    start = precision_without_huge(U, f, context.y, prior) if plain and not alike else None
    if start is None:
        first = fit(U, f, context.y, prior) if plain else fit_measured(U, f, context, places, prior, own)
    else:
        first = fit_measured(U, f, context, places, prior, start)
    if alike:
        return first
    precision, found = own if start is None else start, first
    for _ in range(ROUNDS):
        r = residuals(found, U, f, precision, own).standardised
        far = r.abs() > OUTLIER
        if not 0 < int(far.sum()) <= MOST_OUTLIERS * len(f):
            return first
        before, precision = precision, own * student_precision(r)
        seen = far & (torch.maximum(precision, before) > NO_WEIGHT)
        if not seen.any() or float((precision / before).log()[seen].abs().max()) < SETTLED:
            return replace(found, residuals=r)
        found = fit_measured(U, f, context, places, prior, precision)
    return replace(found, residuals=residuals(found, U, f, precision, own).standardised)


def fit_measured(
    U: Float[Tensor, "N d"],
    f: Float[Tensor, " d"],
    context: Context,
    places: Places | None,
    prior: Prior,
    precision: Float[Tensor, " d"],
) -> Fit:
    """With the context's unknowns, and errors of relative precision."""
    names, clock = unknowns(context), Clock.of(places)
    Z = nuisance_columns(names, len(f), clock, places).to(f)
    pairs = Measured(U, f, context.y, Z, precision, times_of(context, places, f))
    correlation = WHITE_NOISE
    if pairs.times is not None:
        correlation = likeliest_correlation(pairs, prior, broad(context.y))
    found = search(pairs, prior, correlation)
    for _ in range(SEARCHES - 1 if pairs.times is not None else 0):
        again = likeliest_correlation(pairs, prior, components_of(found))
        before, correlation = correlation, again
        if again[:2] == before[:2]:
            break
        found = search(pairs, prior, correlation)
    if context.u_errors is not None and places is not None:
        for _ in range(noisy_inputs.ROUNDS):
            K = found.units.kernel * pool(*found.kernel_moments())[0]
            through = noisy_inputs.covariance_through(K, context, places)
            size_through = float(through.diagonal().mean())
            if not size_through > 0:
                break
            pairs = pairs._replace(through_kernel=through / size_through)
            pairs = likeliest_fraction(pairs, correlation, prior, components_of(found))
            found = search(pairs, prior, correlation)
    whitening = pairs.whitening(correlation)
    nuisance = Nuisance(names, clock, U @ whitening.G.mT, whitening.G @ f, whitening.S) if names else None
    return replace(
        found,
        nuisance=nuisance,
        correlation=correlation if pairs.times else None,
        T=whitening.T,
        nugget=(1 - pairs.fraction) * correlation.nugget,
        through_kernel=None if pairs.through_kernel is None else pairs.fraction,
    )


class Measured(NamedTuple):
    """Pairs with nuisance columns Z, the relative precision of their errors, and times where they have them.

    through_kernel: covariance of the errors that noise on u makes, of variance 1 on average; fraction: their part.
    """

    U: Float[Tensor, "N d"]
    f: Float[Tensor, " d"]
    y: Grid
    Z: Float[Tensor, "d q"]
    precision: Float[Tensor, " d"]
    times: Times | None
    through_kernel: Float[Tensor, "d d"] | None = None
    fraction: float = 0.0

    def covariance(self, correlation: Correlation) -> Float[Tensor, "d d"]:
        """C, of errors whose scale is κ."""
        C = (1 / self.precision).diag() if self.times is None else correlation.matrix(self.times, self.precision)
        return C if self.through_kernel is None else (1 - self.fraction) * C + self.fraction * self.through_kernel

    def whitening(self, correlation: Correlation) -> Whitening:
        return Whitening.of(self.covariance(correlation), self.Z)


def times_of(context: Context, places: Places | None, f: Float[Tensor, " d"]) -> Times | None:
    if places is None or not in_time(context):
        return None
    run = places.values[:, 0].long() if places.values.shape[1] > 1 else torch.zeros(len(f), dtype=torch.long)
    return Times(places.values[:, -1].to(f), run.to(f.device))


def search(pairs: Measured, prior: Prior, correlation: Correlation) -> Fit:
    """The mixture under one correlation of the errors."""
    U, f, y, Z, *_ = pairs
    if y.components > 1:
        return fit_inputs(U, f, y, prior, pairs.covariance(correlation), Z)
    return fit(U, f, y, prior, pairs.whitening(correlation))


def broad(y: Grid) -> Features:
    """The same component for every input, in all combinations of a few blocks and spectra."""
    blocks, spectra, count = BROAD
    t = y.points[:, 0] / y.points.abs().max()
    made = [block.features(t, 0.5 * float(t[1] - t[0]), count) for block in blocks]
    omegas = [spectrum.weights(count, t.device).repeat(y.components) for spectrum in spectra]
    components = [Component(i, omega, 0) for i in range(len(made)) for omega in omegas]
    return Features([torch.block_diag(*[block] * y.components) for block in made], components)


def components_of(found: Fit) -> Features:
    """The likeliest components of a fit."""
    components = sorted(found.mixture.components, key=lambda component: -float(component.given.weights.sum()))[
        :FEW_COMPONENTS
    ]
    components = [Component(component.block, component.given.omega, 0, component.log_odds) for component in components]
    return Features(found.mixture.features.blocks, components)


def likeliest_correlation(pairs: Measured, prior: Prior, features: Features) -> Correlation:
    """Of white noise and AR(1) errors, the one with the largest evidence beside these components."""
    assert pairs.times is not None
    tried = hypotheses(pairs.times)
    found = [beside(pairs, correlation, prior, features) for correlation in tried]
    weights = torch.tensor([log for log, _ in found]).double().add(torch.tensor(list(tried.values()))).softmax(dim=0)
    best, variance = int(weights.argmax()), torch.tensor([v for _, v in found]).double()
    return list(tried)[best]._replace(factor=float(weights @ variance / variance[best]))


def likeliest_fraction(pairs: Measured, correlation: Correlation, prior: Prior, features: Features) -> Measured:
    """The pairs with the part of the errors' variance from noise on u that has the largest evidence."""
    tried = [pairs._replace(fraction=fraction) for fraction in noisy_inputs.FRACTIONS]
    return max(tried, key=lambda own: beside(own, correlation, prior, features)[0])


def beside(pairs: Measured, correlation: Correlation, prior: Prior, features: Features) -> tuple[float, float]:
    """Log evidence of the pairs, and variance of a new f beside the kernel's response, under these components."""
    prior = prior._replace(log_odds=prior.log_odds.new_zeros(1))
    whitening = pairs.whitening(correlation)
    whitened, units = prepared(pairs.U, pairs.f, pairs.y, whitening)
    responses = whitened.responses(features, {component.block for component in features.components})
    scaled = features._replace(components=expecting_unit_responses(features.components, responses))
    chosen, errors = range(len(scaled.components)), [white_noise(whitened.repeats, prior.noise)]
    mixture = weigh(scaled, responses, whitened.f, chosen, errors, prior, prior.pilot_noise)
    log_evidence = whitening.log_evidence(mixture.log_evidence, units.f, size(pairs.f - pairs.f.mean()))
    level = float(((pairs.Z @ whitening.S) * pairs.Z).sum(dim=1).mean())
    return log_evidence, (1 + level) * float(mixture.weights @ mixture.white_variance()) * units.f**2
