"""Kernels and responses drawn from the prior itself: what the posterior must be calibrated on."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.posterior.kernel1d.components import Component
from kernelmap.posterior.kernel1d.errors import Density, jump_variance
from kernelmap.posterior.kernel1d.fit import Pairs, averaged, expecting_unit_responses
from kernelmap.posterior.kernel1d.pieces import Responses
from kernelmap.posterior.kernel1d.prior import Prior
from kernelmap.posterior.kernel1d.units import Units


def draw_from_prior(
    prior: Prior, context: Context, noise: float | None, seed: int
) -> tuple[Context, Float[Tensor, " N"]]:
    """A context's different inputs with responses to a kernel of the prior, and that kernel, in the engine's units.

    Errors are those of jumps and white noise, of the prior's level or a given one, relative to f at α = 1.
    """
    generator = torch.Generator().manual_seed(seed)
    units = Units.of(context.U, context.F[0], context.y)
    y = units.scaled(context.y)
    columns, f, repeats = averaged(context.U, context.F[0] / units.f)
    pairs = Pairs(context.U[:, columns] / units.u, f, repeats, y, 1.0)
    component, block, responses = draw_component(prior, pairs, generator)
    omega = expecting_unit_responses([component._replace(block=0)], [responses])[0].omega

    def normal(count: int) -> Tensor:
        return torch.randn(count, generator=generator, dtype=torch.float64)

    z = math.exp(0.5 * draw(prior.amplitude, generator)) * omega * normal(len(omega))
    kernel, f = block @ z, responses @ z
    level = math.exp(draw(prior.noise, generator)) if noise is None else noise
    f = f + jump_variance(pairs.U, 1.0, y, kernel.square()).sqrt() * normal(len(f)) + level * normal(len(f))
    return Context.unchecked(pairs.U, f[None], y, context.x), kernel


def draw_component(prior: Prior, pairs: Pairs, generator: torch.Generator) -> tuple[Component, Tensor, Tensor]:
    """A component of the prior, with its features (N, R) and the pairs' responses to them (d, R)."""

    def choose(count: int, chosen: int = 1) -> list[int]:
        return torch.randperm(count, generator=generator)[:chosen].tolist()

    t = pairs.y.points[:, 0]
    h = 0.5 * float(t[1] - t[0])
    odds = int(torch.multinomial(prior.log_odds.exp(), 1, generator=generator))
    pieces, number = prior.pieces, odds - prior.first_edge
    if 0 <= number < pieces.odds:
        sums = Responses.of(pieces, pairs.U, pairs.unit, pairs.y, h)
        edges = tuple(sorted(choose(len(sums.places), 1 + number // (pieces.odds // pieces.most))))
        own = pieces.components([edges], len(sums.places), prior.first_edge, t.device)
        component = next(component for component in own if component.odds == odds)
        return component, sums.features_of(edges), sums.of_pieces(edges)
    features = prior.features(t, h)
    own = [component for component in features.components if component.odds == odds]
    component = own[choose(len(own))[0]]
    return component, features.blocks[component.block], pairs.responses(features, [component.block])[component.block]


def draw(density: Density, generator: torch.Generator) -> float:
    """log x from a density that is log-linear between its knots."""
    fine = torch.linspace(float(density.knots[0]), float(density.knots[-1]), 2000, dtype=torch.float64)
    return float(fine[int(torch.multinomial(density.log(fine).exp(), 1, generator=generator))])
