"""Whether noise on u biases the kernel, and what to say of it.

A kernel that is found from u + n in place of u is as if f were K * (u + n): too small, or with structure that is not
there. Whether u has noise is asked of its tokens, beside a signal that is smooth in y; whether the kernel would notice,
of E|K * n|² against the errors of f; and whether f does not follow what looks like noise, of n pairs kept back:

    f - E[f] = b K * n̂ + e ,   b = -1 if n̂ is noise, b = 0 if it is a part of u
    log p(f | b = -1) / p(f | b = 0) = ½ n log( |f - E[f]|² / |f - E[f] + K * n̂|² )

at the likeliest size of e under each b.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.grids import Grid
from kernelmap.core.posterior import KernelPosterior
from kernelmap.discovery.check import Check
from kernelmap.operators import OPERATORS
from kernelmap.operators.smoothing import Noise
from kernelmap.posterior.kernel1d.measured.noisy_inputs import sample_response

CERTAIN = 20.0
"""Log odds of noise on u against none; rough inputs without noise reach 10."""

NOTICED = 0.1
"""Of the size of f's errors: K * n that is smaller does not matter."""

ODDS = 20.0
"""Of b = -1 against b = 0, at least: where u has no noise they are reached in at most one case of 20."""

KERNELS = 32
"""Of the posterior, for E|K * n|²."""


class InputNoise(NamedTuple):
    """Level of the noise on one input, and its effect on f relative to f's errors."""

    number: int
    std: float
    effect: float


def unknown_noise(context: Context, posterior: KernelPosterior, check: Check | None) -> InputNoise | None:
    """The noise on u that matters most, where nothing was said of noise."""
    y = context.y.with_components(1)
    if context.u_errors is not None or context.operator not in OPERATORS or check is None or y.size < 8:
        return None
    K, drawn = posterior.mean[0].cpu(), posterior.sample(KERNELS, torch.Generator().manual_seed(0))[:, 0].cpu()
    errors = _size_of_errors(context, posterior)
    found, rough = [], torch.zeros(check.heldout.d, dtype=K.dtype)
    for number in range(context.y.components):
        rows = slice(number * y.size, (number + 1) * y.size)
        noise = Noise.of(context.U[rows].mT.cpu().numpy())
        if not noise.log_odds > CERTAIN:
            continue
        h = torch.stack([sample_response(own[rows], y, context.operator) for own in drawn])
        std = noise.std / _samples_of_a_token(y, context.operator) ** 0.5
        effect = std * float(h.square().sum(dim=1).mean().sqrt()) / errors
        found.append(InputNoise(number, std, effect))
        rough += (y.weights.cpu() * K[rows]) @ _rough_part(check.heldout.U[rows].cpu(), noise, y)
    most = max(found, key=lambda own: own.effect, default=None)
    if most is None or most.effect < NOTICED or not _log_odds(check, rough) > math.log(ODDS):
        return None
    return most


def _log_odds(check: Check, rough: Float[Tensor, " n"]) -> float:
    """Of b = -1 against b = 0."""
    r = (check.heldout.F - check.mean)[0].cpu()
    return len(r) * float(r.norm().log() - (r + rough).norm().log())


def _rough_part(U: Float[Tensor, "N n"], noise: Noise, y: Grid) -> Float[Tensor, "N n"]:
    """Tokens without those of a smooth u, which vanish at zero as even functions where the grid begins after it."""
    smooth = torch.from_numpy(noise.removed(U.mT.numpy())).mT
    if float(y.points[0, 0]) > 0:
        smooth = smooth - (4 * smooth[0] - smooth[1]) / 3
    return U - smooth


def _samples_of_a_token(y: Grid, operator: str) -> float:
    """Σ of squares of the factors with which a token has samples of u that no other has."""
    own = OPERATORS[operator].on(y)
    tokens = own.tokens(torch.eye(sum(own.reach) + 1, dtype=torch.float64))
    return float(tokens[(tokens != 0).sum(dim=1) == 1].square().sum()) / y.size


def _size_of_errors(context: Context, posterior: KernelPosterior) -> float:
    F = context.F - posterior.beside_kernel(context.d, context.places)
    return float(posterior.relative_residual.mean() * F.square().mean().sqrt())
