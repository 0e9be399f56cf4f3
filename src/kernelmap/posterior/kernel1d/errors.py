"""Errors of f: white noise of unknown level, and the quadrature error of tokens that jump within a cell.

Where a token jumps by Δ somewhere in a cell of width h, the quadrature is off by K Δ h p with an unknown place
|p| <= 1/2, so by a variance K² (Δ h)² / 12. The covariance of the errors is κ diag(n) for a few shapes n and a scale κ:

    n = 1                    white noise alone, of relative level η = √κ
    n = b + ρ mean(b)        b: variance from jumps; κ = 1 if it is right, log κ ~ N(0, spread²); η² = κ ρ mean(b)
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid

UNIFORM_VARIANCE = 1 / 12
"""Variance of a jump's place in its cell, which may be anywhere."""


LEAST_JUMPS = 0.1
"""Least share of the variance from jumps: places of jumps that are all nearly in the middle of their cells."""


def jump_variance(
    U: Float[Tensor, "N d"], unit: float, y: Grid, kernel_squared: Float[Tensor, " N"]
) -> Float[Tensor, " d"]:
    """b = Σ over cells of K² (jump h)² / 12, of tokens in their unit.

    The jump in a cell is how far the slope of a step exceeds those beside it. A cell ends at each point but the first,
    where the quadrature has a cell before the first point only if tokens vanish at its beginning, as those of radii do.
    """
    if y.components > 1:
        one = y.with_components(1)
        tokens, squares = (values.split(len(y.points)) for values in (U, kernel_squared))
        return torch.stack([jump_variance(u, unit, one, k) for u, k in zip(tokens, squares, strict=True)]).sum(dim=0)
    h, rate = y.cells.to(U)[..., None]
    u = U / unit
    slope = torch.cat([rate[:1] * u[:1].abs(), rate[1:] * u.diff(dim=0).abs()])
    inner = (slope[1:-1] - torch.maximum(slope[:-2], slope[2:])).clamp(min=0)
    first = (slope[:1] - slope[1:2]).clamp(min=0)
    return UNIFORM_VARIANCE * (kernel_squared[:-1] @ (torch.cat([first, inner]) * h[:-1] ** 2).square())


def alternating_weights(y: Grid) -> Float[Tensor, " N"]:
    """±w: their sum is half the change of a quadrature when every second point is left out."""
    signs = torch.ones_like(y.weights)
    signs[1::2] = -1
    return (signs * y.weights).repeat(y.components)


class Density(NamedTuple):
    """A density of log x, log-linear between knots of log x and constant beyond."""

    knots: Float[Tensor, " n"]
    log_density: Float[Tensor, " n"]

    def normalised(self) -> "Density":
        step = self.knots[1] - self.knots[0]
        return self._replace(log_density=self.log_density - self.log_density.logsumexp(dim=0) - step.log())

    def log(self, log_x: Tensor) -> Tensor:
        place = ((log_x - self.knots[0]) / (self.knots[1] - self.knots[0])).clamp(0, len(self.knots) - 1)
        low = place.floor().clamp(max=len(self.knots) - 2).long()
        part = place - low
        return (1 - part) * self.log_density[low] + part * self.log_density[low + 1]


@dataclass(frozen=True)
class ErrorShape:
    """Errors ~ N(0, κ diag(n)), n = jumps + white, with the log prior density of log κ and its least value.

    f is in units of its own size, so white variances are squares of relative noise levels.
    """

    n: Float[Tensor, " d"]
    nugget: float
    least: float
    log_constant: float
    spread: float
    noise: Density

    def log_prior(self, log_kappa: Tensor) -> Tensor:
        """Of the noise level η = √(κ white) and, with jumps, of the size κ of their errors."""
        log_eta = 0.5 * (log_kappa + math.log(self.nugget))
        return self.noise.log(log_eta) - 0.5 * (log_kappa / self.spread) ** 2 + self.log_constant

    def least_kappa(self, floor: float) -> float:
        """Where the white part has a variance of at least `floor`."""
        return max(self.least, floor / self.nugget)

    @property
    def has_jumps(self) -> bool:
        return math.isfinite(self.spread)


def white_noise(repeats: Float[Tensor, " d"], noise: Density) -> ErrorShape:
    """White noise, averaged over the repeats of a pair."""
    return ErrorShape(1 / repeats, 1.0, 0.0, 0.0, math.inf, noise)


def with_quadrature(
    b: Float[Tensor, " d"],
    repeats: Float[Tensor, " d"],
    ratios: tuple[float, ...],
    spread: float,
    noise: Density,
) -> list[ErrorShape]:
    """Jumps of variance b beside white noise, for every ratio ρ of the two, rising. Repeats do not average jumps."""
    mean = float(b.mean())
    steps = [math.log(high / low) for low, high in pairwise(ratios)]
    found = []
    for rho, step in zip(ratios, [*steps, steps[-1]], strict=True):
        constant = math.log(step / (spread * math.sqrt(2 * math.pi)))
        found.append(ErrorShape(b + rho * mean / repeats, rho * mean, LEAST_JUMPS, constant, spread, noise))
    return found
