"""Bayesian linear regression on features: f = Aᵀ (ω z) + e with z ~ N(0, 1) and independent errors e ~ N(0, n).

With the Gram matrix G = A diag(1/n) Aᵀ and L Lᵀ = I + ω G ω, of the size of the features however many pairs there are:

    z | f ~ N( L⁻ᵀ L⁻¹ ω A f/n , (L Lᵀ)⁻¹ )
    fᵀ Cov⁻¹ f = Σ f²/n - |L⁻¹ ω A f/n|²        log det Cov = Σ log n + 2 Σ log diag L

Several sets of weights ω ("components") share one Gram matrix, unless they have errors of their own.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

TINY = 1e-100


class Regression(NamedTuple):
    """The posterior of each component: mean of ω z, misfit fᵀ Cov⁻¹ f, log det Cov, and the factor L with its ω."""

    mean: Float[Tensor, "Q *#b R"]
    misfit: Float[Tensor, "Q *#b"]
    log_det: Float[Tensor, "Q *#b"]
    factor: Float[Tensor, "Q *#b R R"]
    omega: Float[Tensor, "Q *#b R"]

    def mean_of(self, X: Float[Tensor, "*#b R n"]) -> Float[Tensor, "Q *#b n"]:
        """Posterior mean of Xᵀ (ω z)."""
        return (self.mean[..., None, :] @ X)[..., 0, :]

    def variance_of(self, X: Float[Tensor, "*#b R n"]) -> Float[Tensor, "Q *#b n"]:
        """Posterior variance of Xᵀ (ω z).

        By the inverse of L: BLAS multiplies many columns faster than it solves. The columns are multiplied in the
        precision of X, in units of the largest weight, so that single precision has room for any scale of f.
        """
        unit = self.omega.amax(dim=-1, keepdim=True)
        eye = torch.eye(X.shape[-2], dtype=unit.dtype, device=unit.device)
        inverse = torch.linalg.solve_triangular(self.factor, eye, upper=False)
        products = (inverse * (self.omega / unit)[..., None, :]).to(X.dtype) @ X
        return unit.square() * products.square().sum(dim=-2)

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count Q *#b R"]:
        """Draws of ω z = mean + ω L⁻ᵀ ξ, ξ ~ N(0, 1)."""
        device = self.mean.device if generator is None else generator.device
        xi = torch.randn(count, *self.mean.shape, 1, generator=generator, dtype=self.mean.dtype, device=device).to(
            self.mean.device
        )
        return self.mean + self.omega * torch.linalg.solve_triangular(self.factor.mT, xi, upper=True)[..., 0]


def regress(
    A: Float[Tensor, "*#b R d"], n: Float[Tensor, "*#n d"], f: Float[Tensor, "*#b d"], omega: Float[Tensor, "Q *#b R"]
) -> Regression:
    s = n.rsqrt()
    B, g = A * s[..., None, :], f * s
    moment = omega * (B @ g[..., None])[..., 0]
    precision = (B @ B.mT) * (omega[..., None] * omega[..., None, :])
    precision.diagonal(dim1=-2, dim2=-1).add_(1)
    batch = moment.shape[:-1]
    factor = torch.linalg.cholesky(precision).expand(*batch, -1, -1)
    t = torch.linalg.solve_triangular(factor, moment[..., None], upper=False)
    z = torch.linalg.solve_triangular(factor.mT, t, upper=True)[..., 0]
    # Responses that are all zero, or explained to the last digit, have no misfit, and a logarithm is taken of it.
    misfit = (g.square().sum(dim=-1) - t[..., 0].square().sum(dim=-1)).clamp(min=TINY)
    log_det = n.log().sum(dim=-1) + 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
    return Regression(omega * z, misfit, log_det, factor, omega.expand(*batch, -1))


def above_noise(factor: Float[Tensor, "R R"]) -> int:
    """Directions whose signal exceeds the noise: L Lᵀ = 1 + signal to noise of each."""
    return int((torch.linalg.eigvalsh(factor @ factor.mT) > 2).sum())
