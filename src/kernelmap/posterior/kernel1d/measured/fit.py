"""The fit of measurements with an unknown offset or trend, errors that go on in time, or several inputs.

The correlation of the errors is the likeliest of a few: first beside broad components, then beside those that were
found with it.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.grids import Grid
from kernelmap.posterior.kernel1d.components import Block, Component, Features, Spectrum
from kernelmap.posterior.kernel1d.errors import white_noise
from kernelmap.posterior.kernel1d.fit import Fit, expecting_unit_responses, fit, prepared
from kernelmap.posterior.kernel1d.measured.correlation import WHITE_NOISE, Correlation, Times, hypotheses
from kernelmap.posterior.kernel1d.measured.inputs import fit_inputs
from kernelmap.posterior.kernel1d.measured.nuisance import (
    Clock,
    Nuisance,
    in_time,
    nuisance_columns,
    unknowns,
)
from kernelmap.posterior.kernel1d.measured.whitening import Whitening
from kernelmap.posterior.kernel1d.mixture import weigh
from kernelmap.posterior.kernel1d.prior import Prior
from kernelmap.posterior.kernel1d.units import size

SEARCHES = 2
"""Of correlation and components, one after the other."""

MOST_PAIRS = 3000
"""Whose errors are taken as correlated; of more, so many in equal strides are used."""

BROAD = (Block(), Block(warp=0.2), Block(rate=3.3)), (Spectrum(0, 3, 2), Spectrum(0, 20, 3)), 60
"""Blocks, spectra and cosines of the components beside which a correlation is first looked for."""

FEW_COMPONENTS = 4
"""Of those that were found, beside which it is looked for again."""


def is_plain(context: Context) -> bool:
    """One input, and nothing unknown besides its kernel and the level of white noise."""
    return not unknowns(context) and not in_time(context) and context.y.components == 1


def fit_measured(U: Float[Tensor, "N d"], f: Float[Tensor, " d"], context: Context, prior: Prior) -> Fit:
    """Of one system and output of the context, whose pairs are U and f."""
    places, names = context.places, unknowns(context)
    if places is not None and len(f) > MOST_PAIRS:
        some = torch.linspace(0, len(f) - 1, MOST_PAIRS).long()
        U, f, places = U[:, some], f[some], places.select(some)
    clock = Clock.of(places)
    Z = nuisance_columns(names, len(f), clock, places).to(f)
    times, correlation = None, WHITE_NOISE
    if places is not None and in_time(context):
        run = places.values[:, 0].long() if places.values.shape[1] > 1 else torch.zeros(len(f), dtype=torch.long)
        times = Times(places.values[:, -1].to(f), run.to(f.device))
        correlation = likeliest_correlation(U, f, context.y, prior, times, Z, broad(context.y))
    found = search(U, f, context.y, prior, times, correlation, Z)
    for _ in range(SEARCHES - 1 if times is not None else 0):
        assert times is not None
        again = likeliest_correlation(U, f, context.y, prior, times, Z, components_of(found))
        if again == correlation:
            break
        correlation = again
        found = search(U, f, context.y, prior, times, correlation, Z)
    whitening = Whitening.of(covariance(times, correlation, f), Z)
    nuisance = Nuisance(names, clock, U @ whitening.G.mT, whitening.G @ f, whitening.S) if names else None
    return replace(found, nuisance=nuisance, correlation=correlation if times else None, T=whitening.T)


def covariance(times: Times | None, correlation: Correlation, f: Float[Tensor, " d"]) -> Float[Tensor, "d d"]:
    return torch.eye(len(f)).to(f) if times is None else correlation.matrix(times)


def search(
    U: Float[Tensor, "N d"],
    f: Float[Tensor, " d"],
    y: Grid,
    prior: Prior,
    times: Times | None,
    correlation: Correlation,
    Z: Float[Tensor, "d q"],
) -> Fit:
    """The mixture under one correlation of the errors."""
    C = covariance(times, correlation, f)
    return fit_inputs(U, f, y, prior, C, Z) if y.components > 1 else fit(U, f, y, prior, Whitening.of(C, Z))


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
    cells = sorted(found.mixture.cells, key=lambda cell: -float(cell.given.weights.sum()))[:FEW_COMPONENTS]
    components = [Component(cell.block, cell.given.omega, 0, cell.log_odds) for cell in cells]
    return Features(found.mixture.features.blocks, components)


def likeliest_correlation(
    U: Float[Tensor, "N d"],
    f: Float[Tensor, " d"],
    y: Grid,
    prior: Prior,
    times: Times,
    Z: Float[Tensor, "d q"],
    features: Features,
) -> Correlation:
    """Of white noise and AR(1) errors, the one with the largest evidence beside these components."""
    prior = prior._replace(log_odds=prior.log_odds.new_zeros(1))
    scale, best, reached = size(f - f.mean()), WHITE_NOISE, -math.inf
    for correlation, log_prior in hypotheses(times).items():
        whitening = Whitening.of(correlation.matrix(times), Z)
        pairs, units = prepared(U, f, y, whitening)
        responses = pairs.responses(features, {component.block for component in features.components})
        scaled = features._replace(components=expecting_unit_responses(features.components, responses))
        chosen, errors = range(len(scaled.components)), [white_noise(pairs.repeats, prior.noise)]
        mixture = weigh(scaled, responses, pairs.f, chosen, errors, prior, prior.pilot_noise)
        evidence = whitening.log_evidence(mixture.log_evidence, units.f, scale) + log_prior
        if evidence > reached:
            best, reached = correlation, evidence
    return best
