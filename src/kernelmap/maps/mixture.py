"""What is known of a kernel after the pairs were seen: a mixture of Gaussians, and how it predicts."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.context import Context
from kernelmap.grids import Grid
from kernelmap.maps.banded import KernelPosterior
from kernelmap.maps.regression import Regression, above_noise

THETA = 1 / 12
"""Variance of a jump's place in its cell, which may be anywhere."""


class Jumps(NamedTuple):
    """Squares of the jumps of tokens within the cells of their grid, over the cells' widths h, and h⁴.

    A cell ends at each point but the last; where the quadrature has one before the first point, as that of radii has
    from zero, a token vanishes at its beginning. Jumps in the first two cells are kept apart from the rest.
    """

    first: Float[Tensor, "*#b 2 d"]
    rest: Float[Tensor, "*#b n d"]
    h4: Float[Tensor, " n+2"]

    @classmethod
    def of(cls, U: Float[Tensor, "*#b N d"], y: Grid) -> "Jumps":
        """How far the slope of each step exceeds those beside it. In place: to write arrays of this size takes long."""
        h, rate = y.cells.to(U)[..., None]
        slope = U.diff(dim=-2).abs_().mul_(rate[1:])
        rest = torch.maximum(slope[..., :-2, :], slope[..., 2:, :]).sub_(slope[..., 1:-1, :]).clamp_(max=0)
        start, second, third = rate[0] * U[..., :1, :].abs(), slope[..., :1, :], slope[..., 1:2, :]
        first = torch.cat([second - start, torch.maximum(start, third) - second], dim=-2).clamp(max=0)
        return cls(first.square(), rest.square_(), h[:-1, 0].square().square())

    def sum(self, values: Float[Tensor, "*#b M N"]) -> Float[Tensor, "*#b M d"]:
        """Σ over cells of value times (jump h)²."""
        weighted = self.h4 * values[..., :-1]
        return weighted[..., :2] @ self.first + weighted[..., 2:] @ self.rest


@dataclass(frozen=True)
class Posterior(KernelPosterior):
    """A mixture of Gaussian kernels, one for each cell (component and noise level), with probabilities `share`.

    The batch *b is that of the context with its M outputs last. `rows`: the features in single precision, which is
    enough for an error bar and takes half the time; `power`: mean square of f; `norms` of the tokens at every point.
    """

    phi: Float[Tensor, "N R"]
    rows: Float[Tensor, "R N"]
    share: Float[Tensor, "C *#b"]
    cells: Regression
    scale: Float[Tensor, "C *#b"]
    levels: Float[Tensor, "C *#b"]
    errors: "QuadratureError"
    power: Float[Tensor, "*#b 1"]
    norms: Float[Tensor, "*#bu N"]
    context: Context

    @cached_property
    def kernel(self) -> Float[Tensor, "*#b N"]:
        """Posterior mean."""
        return (self.share[..., None] * self._kernels).sum(dim=0)

    @cached_property
    def _kernels(self) -> Float[Tensor, "C *#b N"]:
        """Posterior mean in every cell."""
        return self.cells.mean_of(self.phi.mT)

    @property
    def variance(self) -> Float[Tensor, "*#b N"]:
        """Posterior variance of the kernel at every point, before the band is calibrated."""
        return self._mixed(self._kernels, self.scale[..., None] * self.cells.variance_of(self.rows))[1]

    @property
    def prior_variance(self) -> Float[Tensor, "*#b N"]:
        """Variance of the kernel before the pairs were seen, at the amplitude that they gave."""
        variances = self.scale[..., None] * (self.cells.omega.square() @ self.phi.square().mT)
        return (self.share[..., None] * variances).sum(dim=0)

    @property
    def data_share(self) -> Float[Tensor, "*#b N"]:
        """1 - posterior variance / prior variance: 1 is known from data, 0 is prior alone."""
        return (1 - self.variance / self.prior_variance).clamp(0, 1)

    @property
    def determined(self) -> int:
        """Directions of the likeliest component that stand out of the noise, for the first system of a batch."""
        best = int(self.share.flatten(1).mean(dim=1).argmax())
        return above_noise(self.cells.factor[best].flatten(0, -3)[0])

    @property
    def noise(self) -> Float[Tensor, "*#b"]:
        """The relative noise on f that was found: its level times the scale that the misfit gave it."""
        return (self.share * self.levels.square() * self.scale).sum(dim=0).sqrt()

    def predict(self, U: Float[Tensor, "*bu N n"]) -> tuple[Float[Tensor, "*bf M n"], Float[Tensor, "*bf M n"]]:
        """Mean and variance of the responses to new inputs, errors of measurement and quadrature included."""
        return self._mixed(*self.response_moments(U))

    def response_moments(
        self, U: Float[Tensor, "*#bu N n"]
    ) -> tuple[Float[Tensor, "C *#b n"], Float[Tensor, "C *#b n"]]:
        """Mean and variance in every cell."""
        weights = self.context.y.value_weights.to(U)
        responses = ((weights[:, None] * self.phi).mT @ U)[..., None, :, :]
        jumps = Jumps.of(U, self.context.y)
        noise = (
            jumps.sum(self.errors.at_jumps(self.kernel))
            + self.errors.constant
            + self.levels.square()[..., None] * self.power
        )
        return self.cells.mean_of(responses), self.scale[..., None] * (self.cells.variance_of(responses) + noise)

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count N"]:
        """Kernels drawn from the posterior of one system with one output."""
        share, scale, cells = self.share.flatten(), self.scale.flatten(), self.cells
        chosen = torch.multinomial(share, count, replacement=True, generator=generator)
        z = torch.randn(count, self.phi.shape[1], 1, generator=generator, dtype=self.phi.dtype)
        R = self.phi.shape[1]
        spread = torch.linalg.solve_triangular(cells.factor.reshape(-1, R, R)[chosen].mT, z, upper=True)[..., 0]
        omega, mean = cells.omega.reshape(-1, R)[chosen], cells.mean.reshape(-1, R)[chosen]
        return (mean + scale[chosen].sqrt()[:, None] * omega * spread) @ self.phi.mT

    def _mixed(self, means: Tensor, variances: Tensor) -> tuple[Tensor, Tensor]:
        share = self.share[..., None]
        mean = (share * means).sum(dim=0)
        return mean, (share * (variances + (means - mean).square())).sum(dim=0)


class QuadratureError(NamedTuple):
    """Variance of f's error from the jumps of its tokens: Σ (θ K² + v) (jump h)² + constant."""

    theta: Tensor | float
    v: Float[Tensor, "*#b N"]
    constant: Float[Tensor, "*#b 1"]

    def at_jumps(self, kernel: Float[Tensor, "*#b N"]) -> Float[Tensor, "*#b N"]:
        return self.theta * kernel.square() + self.v
