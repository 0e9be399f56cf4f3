"""Kernels and responses drawn from the prior itself: what the posterior must be calibrated on."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.posterior.kernel1d.errors import Density, jump_variance
from kernelmap.posterior.kernel1d.fit import Pairs, averaged, expecting_unit_responses
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
    pairs = Pairs(*averaged(context.U / units.u, context.F[0] / units.f), y, 1.0)
    t = y.points[:, 0]
    features = prior.features(t, 0.5 * float(t[1] - t[0]))
    responses = pairs.responses(features, range(len(features.blocks)))
    features = expecting_unit_responses(features, responses)
    index = int(torch.multinomial(prior.log_odds.exp(), 1, generator=generator))
    block, omega = features.components[index]

    def normal(count: int) -> Tensor:
        return torch.randn(count, generator=generator, dtype=torch.float64)

    z = math.exp(0.5 * draw(prior.amplitude, generator)) * omega * normal(len(omega))
    kernel, f = features.blocks[block] @ z, responses[block] @ z
    level = math.exp(draw(prior.noise, generator)) if noise is None else noise
    f = f + jump_variance(pairs.U, 1.0, y, kernel.square()).sqrt() * normal(len(f)) + level * normal(len(f))
    return Context.unchecked(pairs.U, f[None], y, context.x), kernel


def draw(density: Density, generator: torch.Generator) -> float:
    """log x from a density that is log-linear between its knots."""
    fine = torch.linspace(float(density.knots[0]), float(density.knots[-1]), 2000, dtype=torch.float64)
    return float(fine[int(torch.multinomial(density.log(fine).exp(), 1, generator=generator))])
