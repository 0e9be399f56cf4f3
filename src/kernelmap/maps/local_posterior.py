"""What is known of a local kernel after the pairs were seen: a Gaussian for the bonds of each node."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.context import Context
from kernelmap.maps.banded import KernelPosterior
from kernelmap.maps.lattice import Lattice
from kernelmap.maps.regression import Regression, above_noise


@dataclass(frozen=True)
class LocalPosterior(KernelPosterior):
    """Strengths c(x) = s (m + [a z + m τ z_0]) of the bonds of M nodes, with `cells` the posterior of a z and τ z_0.

    The batch *b is that of the context. `level` is the relative noise on f that was found, `error` the variance of f
    that the kernel does not explain, in units of the scale s; its share `systematic` is not noise, and may be alike at
    all nodes.
    """

    mean: Float[Tensor, " R"]
    cells: Regression
    scale: Float[Tensor, "*b 1 1"]
    error: Float[Tensor, "*b 1 1"]
    level: Float[Tensor, "*b"]
    systematic: Float[Tensor, "*b 1 1"]
    lattice: Lattice
    reach: int
    context: Context

    @property
    def noise(self) -> Float[Tensor, "*b"]:
        """The relative noise on f that was found."""
        return self.level

    @property
    def strengths(self) -> Float[Tensor, "*b M R"]:
        """Posterior mean of c."""
        free, common = self.cells.mean[0].split([len(self.mean), 1], dim=-1)
        return self.scale * (self.mean * (1 + common) + free)

    @cached_property
    def kernel(self) -> Float[Tensor, "*b M N"]:
        """Posterior mean."""
        return self.lattice.rows_of(self.strengths, self.reach) / self._weights

    @property
    def variance(self) -> Float[Tensor, "*b M N"]:
        """Posterior variance of the kernel; zero beyond the reach, where the prior allows nothing."""
        return self._kernel_variance(self.cells)

    def _kernel_variance(self, cells: Regression) -> Float[Tensor, "*b M N"]:
        ends = torch.eye(len(self.mean), dtype=self.mean.dtype, device=self.mean.device)
        # The node itself is an end of all its bonds.
        ends[:, len(ends) // 2] = 1
        _, exists = self.lattice.neighbours(self.reach)
        X = (exists[..., None] * ends).expand(*self.scale.shape[:-2], -1, -1, -1)
        variances = self._variance(X, cells)
        return self.lattice.scatter(variances, self.reach) / self._weights.square()

    @property
    def data_share(self) -> Float[Tensor, "*b M N"]:
        """1 - posterior variance / prior variance; 1 beyond the reach, where the kernel is known to be zero."""
        share = 1 - self.variance / self._kernel_variance(self.cells._replace(factor=self._no_data))
        return share.nan_to_num(1.0).clamp(0, 1)

    @property
    def determined(self) -> int:
        """Directions that stand out of the noise at the middle one of the nodes."""
        factors = self.cells.factor.flatten(0, -3)
        return above_noise(factors[len(factors) // 2])

    @property
    def _no_data(self) -> Tensor:
        """The factor of a regression that has seen nothing."""
        return torch.eye(self.cells.factor.shape[-1]).to(self.mean).expand_as(self.cells.factor)

    def predict(self, U: Float[Tensor, "*b N n"]) -> tuple[Float[Tensor, "*b M n"], Float[Tensor, "*b M n"]]:
        """Mean and variance of the responses to new inputs, noise included."""
        mean, variance = self.response_moments(U)
        return mean, variance + self.scale.square() * self.error

    def response_moments(self, U: Float[Tensor, "*b N n"]) -> tuple[Float[Tensor, "*b M n"], Float[Tensor, "*b M n"]]:
        """Mean and variance of K u, without noise."""
        bonds = self.lattice.bonds(U, self.reach)
        return (self.strengths[..., None, :] @ bonds)[..., 0, :], self._variance(bonds, self.cells)

    @property
    def _weights(self) -> Float[Tensor, " N"]:
        return self.context.y.value_weights.to(self.mean)

    def _variance(self, X: Float[Tensor, "*b M R n"], cells: Regression) -> Float[Tensor, "*b M n"]:
        """Of cᵀ X."""
        common = (self.mean @ X)[..., None, :]
        return self.scale.square() * cells.variance_of(torch.cat([X, common], dim=-2))[0]
