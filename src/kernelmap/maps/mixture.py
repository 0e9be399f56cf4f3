"""What is known of a kernel after the pairs were seen: a mixture of Gaussians, and how it predicts."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as nnf
from jaxtyping import Float
from torch import Tensor

from kernelmap.context import Context
from kernelmap.maps.regression import Regression


def jumps(U: Float[Tensor, "*b N d"], y: Float[Tensor, " N"]) -> Float[Tensor, "*b N d"]:
    """How far each step of a token exceeds what the slopes beside it explain: a jump within the cell."""
    h = y.diff()[:, None]
    slope = U.diff(dim=-2).abs() / h
    excess = slope[..., 1:-1, :] - torch.maximum(slope[..., :-2, :], slope[..., 2:, :])
    return nnf.pad(excess.clamp(min=0) * h[1:-1], (0, 0, 1, 2))


@dataclass(frozen=True)
class Posterior:
    """A mixture of Gaussian kernels, one for each cell (component and noise level), with probabilities `share`.

    In units of the tokens' root mean square `unit`. The batch *b is that of the context with its M outputs last.
    """

    phi: Float[Tensor, "N R"]
    share: Float[Tensor, "C *#b"]
    cells: Regression
    scale: Float[Tensor, "C *#b"]
    levels: Float[Tensor, " C"]
    errors: "QuadratureError"
    power: Float[Tensor, "*#b 1"]
    unit: Float[Tensor, "*bu 1 1"]
    context: Context

    @property
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
    def noise(self) -> Float[Tensor, "*#b"]:
        """The relative noise on f that was found: its level times the scale that the misfit gave it."""
        squares = self.levels.square().reshape(-1, *[1] * (self.share.ndim - 1)) * self.scale
        return (self.share * squares).sum(dim=0).sqrt()

    def predict(self, U: Float[Tensor, "*bu N n"]) -> tuple[Float[Tensor, "*bf M n"], Float[Tensor, "*bf M n"]]:
        """Mean and variance of the responses to new inputs, errors of measurement and quadrature included."""
        mean, variance = self._mixed(*self.response_moments((U / self.unit)[..., None, :, :]))
        return mean * self.unit, variance * self.unit.square()

    def response_moments(
        self, U: Float[Tensor, "*#b N n"]
    ) -> tuple[Float[Tensor, "C *#b n"], Float[Tensor, "C *#b n"]]:
        """Mean and variance in every cell, for inputs in units of `unit`."""
        weights = self.context.y.value_weights.to(U)[:, None]
        means, variances = self._moments(self.phi.mT @ (weights * U))
        E = weights * jumps(U, self.context.y.points[:, 0].to(U))
        noise = (
            self.errors.variance(E, self.kernel)
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
    """Variance of f's error from the jumps E of its tokens: θ² (K E)² + v E² + constant."""

    theta: Tensor
    v: Float[Tensor, "*#b N"]
    constant: Float[Tensor, "*#b 1"]

    def variance(self, E: Float[Tensor, "*#b N n"], kernel: Float[Tensor, "*#b N"]) -> Float[Tensor, "*#b n"]:
        of_kernel = (kernel[..., None, :] @ E)[..., 0, :]
        return self.theta * of_kernel.square() + (self.v[..., None, :] @ E.square())[..., 0, :] + self.constant
