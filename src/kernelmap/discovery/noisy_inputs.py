"""Whether noise on u biases the kernel, and what to say of it.

A kernel that is found from u + n in place of u is as if f were K * (u + n): too small, or with structure that is not
there. Whether u has noise is asked of its tokens, beside a signal that is smooth in y. A signal with corners and jumps
seems to have some, too, but only there: half of what is noise n̂ is of the size that normal values have. Whether the
kernel would notice is asked of E|K * n|² against the errors of f; and whether f does not follow n̂, of pairs kept back:

    f - E[f] = b K * n̂ + e ,   b = -1 if n̂ is noise, b = 0 if it is a part of u
"""

from typing import NamedTuple

import numpy as np
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
from kernelmap.posterior.kernel1d.measured.outliers import MEDIAN_OF_NORMAL

CERTAIN = 20.0
"""Log odds of noise on u against none; rough inputs without noise reach 10."""

EVERYWHERE = 0.5
"""Of the median size of n̂, relative to that of normal values with its root mean square: noise has 1, and inputs of the
simulated world (seed 62) that seemed to have noise up to 0.12."""

NOTICED = 0.1
"""Of the size of f's errors: K * n that is smaller does not matter."""

FOLLOWED = 3.0
"""Standard deviations of b from -1 from which on f follows what looked like noise."""

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
        if (noise := noise_everywhere(context.U[rows].mT.cpu().numpy())) is None:
            continue
        h = torch.stack([sample_response(own[rows], y, context.operator) for own in drawn])
        std = noise.std / _samples_of_a_token(y, context.operator) ** 0.5
        effect = std * float(h.square().sum(dim=1).mean().sqrt()) / errors
        found.append(InputNoise(number, std, effect))
        rough += (y.weights.cpu() * K[rows]) @ _rough_part(check.heldout.U[rows].cpu(), noise, y)
    most = max(found, key=lambda own: own.effect, default=None)
    if most is None or most.effect < NOTICED or _follows(check, rough):
        return None
    return most


def noise_everywhere(tokens: Float[np.ndarray, "d N"]) -> Noise | None:
    """That tokens seem to have, and not at a few corners of u alone."""
    noise = Noise.of(tokens)
    if not noise.log_odds > CERTAIN:
        return None
    rough = tokens - noise.removed(tokens)
    everywhere = np.median(np.abs(rough)) > EVERYWHERE * MEDIAN_OF_NORMAL * np.sqrt(np.mean(rough**2))
    return noise if everywhere else None


def _follows(check: Check, rough: Float[Tensor, " n"]) -> bool:
    """Whether b is above -1."""
    r = (check.heldout.F - check.mean)[0].cpu()
    power = float(rough.square().sum())
    if not power > 0:
        return False
    b, std = float(r @ rough) / power, (float(r.square().mean()) / power) ** 0.5
    return b + 1 > FOLLOWED * std


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
