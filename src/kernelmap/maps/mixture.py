"""What is known of a kernel after the pairs were seen: a mixture of Gaussians, and how it predicts."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.context import Context
from kernelmap.maps.banded import KernelPosterior
from kernelmap.maps.regression import Regression, above_noise


class Jumps(NamedTuple):
    """Jumps of tokens within the cells of their grid, with negative sign and over the cells' widths h.

    The outermost cells have none.
    """

    size: Float[Tensor, "*#b n d"]
    h: Float[Tensor, " n"]

    @classmethod
    def of(cls, U: Float[Tensor, "*#b N d"], y: Float[Tensor, " N"]) -> "Jumps":
        """How far the slope of each step exceeds those beside it. In place: to write arrays of this size takes long."""
        h = y.diff()
        slope = U.diff(dim=-2).abs_().mul_(1 / h[:, None])
        size = torch.maximum(slope[..., :-2, :], slope[..., 2:, :]).sub_(slope[..., 1:-1, :]).clamp_(max=0)
        return cls(size, h[1:-1])

    def sum(self, values: Float[Tensor, "*#b M N"]) -> Float[Tensor, "*#b M d"]:
        """Σ over cells of value times jump."""
        return (-self.h * values[..., 1:-2]) @ self.size

    def sum_of_squares(self, values: Float[Tensor, "*#b M N"]) -> Float[Tensor, "*#b M d"]:
        """Σ over cells of value times squared jump."""
        return (self.h.square() * values[..., 1:-2]) @ self.size.square()


@dataclass(frozen=True)
class Posterior(KernelPosterior):
    """A mixture of Gaussian kernels, one for each cell (component and noise level), with probabilities `share`.

    The batch *b is that of the context with its M outputs last.
    """

    phi: Float[Tensor, "N R"]
    share: Float[Tensor, "C *#b"]
    cells: Regression
    scale: Float[Tensor, "C *#b"]
    levels: Float[Tensor, " C"]
    errors: "QuadratureError"
    power: Float[Tensor, "*#b 1"]
    context: Context

    @cached_property
    def kernel(self) -> Float[Tensor, "*#b N"]:
        """Posterior mean."""
        return (self.share[..., None] * self.cells.mean).sum(dim=0) @ self.phi.mT

    @property
    def variance(self) -> Float[Tensor, "*#b N"]:
        """Posterior variance of the kernel at every point, before the band is calibrated."""
        return self._mixed(*self._moments(self.phi.mT))[1]

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
        squares = self.levels.square().reshape(-1, *[1] * (self.share.ndim - 1)) * self.scale
        return (self.share * squares).sum(dim=0).sqrt()

    def predict(self, U: Float[Tensor, "*bu N n"]) -> tuple[Float[Tensor, "*bf M n"], Float[Tensor, "*bf M n"]]:
        """Mean and variance of the responses to new inputs, errors of measurement and quadrature included."""
        return self._mixed(*self.response_moments(U))

    def response_moments(
        self, U: Float[Tensor, "*#bu N n"]
    ) -> tuple[Float[Tensor, "C *#b n"], Float[Tensor, "C *#b n"]]:
        """Mean and variance in every cell."""
        weights = self.context.y.value_weights.to(U)
        means, variances = self._moments(((weights[:, None] * self.phi).mT @ U)[..., None, :, :])
        jumps = Jumps.of(U, self.context.y.points[:, 0].to(U))
        noise = (
            self.errors.variance(jumps.sum(weights * self.kernel), jumps.sum_of_squares(self.errors.v))
            + self.levels.square().reshape(-1, *[1] * (means.ndim - 1)) * self.power
        )
        return means, variances + self.scale[..., None] * noise

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count N"]:
        """Kernels drawn from the posterior of one system with one output."""
        share, scale, cells = self.share.flatten(), self.scale.flatten(), self.cells
        chosen = torch.multinomial(share, count, replacement=True, generator=generator)
        z = torch.randn(count, self.phi.shape[1], 1, generator=generator, dtype=self.phi.dtype)
        R = self.phi.shape[1]
        spread = torch.linalg.solve_triangular(cells.factor.reshape(-1, R, R)[chosen].mT, z, upper=True)[..., 0]
        omega, mean = cells.omega.reshape(-1, R)[chosen], cells.mean.reshape(-1, R)[chosen]
        return (mean + scale[chosen].sqrt()[:, None] * omega * spread) @ self.phi.mT

    def _moments(self, X: Float[Tensor, "*#b R n"]) -> tuple[Tensor, Tensor]:
        means = (self.cells.mean[..., None, :] @ X)[..., 0, :]
        return means, self.scale[..., None] * self.cells.variance(X)

    def _mixed(self, means: Tensor, variances: Tensor) -> tuple[Tensor, Tensor]:
        share = self.share[..., None]
        mean = (share * means).sum(dim=0)
        return mean, (share * (variances + (means - mean).square())).sum(dim=0)


class QuadratureError(NamedTuple):
    """Variance of f's error from the jumps of its tokens: θ² (Σ w K jump)² + Σ v jump² + constant."""

    theta: Tensor
    v: Float[Tensor, "*#b N"]
    constant: Float[Tensor, "*#b 1"]

    def variance(self, of_kernel: Float[Tensor, "*#b n"], of_squares: Float[Tensor, "*#b n"]) -> Float[Tensor, "*#b n"]:
        """From Σ w K jump and Σ v jump²."""
        return self.theta * of_kernel.square() + of_squares + self.constant
