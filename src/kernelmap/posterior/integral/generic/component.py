"""One component of one band of x: Z_i ~ N(0, a² C_y / t) and h_i ~ N(0, a² τ²), given F_i = Z_i w U + h_i 1ᵀ + σ e.

    Uᵀ w C_y w U / t + τ² 1 1ᵀ = P D Pᵀ ,   W = w U P ,   Q = F P ,   E_ij = a² Q_ij / (a² D_j + σ²)
    E[Z] = E Wᵀ C_y / t
    Var Z_i(y) = a² / t - Σ_j a⁴ (C_y W)_yj² / t² / (a² D_j + σ²)

t is the mean of the diagonal of Uᵀ w C_y w U: a is the size of the prior's responses.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.posterior.integral.generic.matern import Matern
from kernelmap.posterior.integral.generic.pairs import Hypothesis, Pairs

JITTER = 1e-10
"""On the diagonal of C_y when kernels are drawn."""


@dataclass(frozen=True)
class Component:
    W: Float[Tensor, "N r"]
    ones: Float[Tensor, " r"]
    Q: Float[Tensor, "m r"]
    D: Float[Tensor, " r"]
    matern: Matern
    y: Grid
    t: float
    tau2: float
    a2: float
    s2: float

    @classmethod
    def of(cls, pairs: Pairs, hypothesis: Hypothesis, band: int, a2: float, s2: float) -> "Component":
        S, t = pairs.gram(hypothesis.matern)
        D, P = pairs.decomposed(S, hypothesis.tau)
        Q = pairs.G[pairs.bands.members[band]] @ P
        return cls(pairs.A @ P, pairs.ones @ P, Q, D, hypothesis.matern, pairs.y, t, hypothesis.tau**2, a2, s2)

    @cached_property
    def cross(self) -> Float[Tensor, "N r"]:
        """C_y W / t: the covariance of Z_i, over a², with the pairs."""
        return self.matern.times(self.y, self.W) / self.t

    def kernel(self) -> tuple[Float[Tensor, "m N"], Float[Tensor, " N"]]:
        """Mean of every Z_i and their variance, which is the same for all i."""
        return self._given(self.cross, torch.full_like(self.cross[:, 0], 1 / self.t))

    def prior_variance(self) -> float:
        return self.a2 / self.t

    def homogeneous(self) -> tuple[Float[Tensor, "m 1"], Float[Tensor, " 1"]]:
        """Mean and variance of the h_i."""
        cross = self.tau2 * self.ones[None]
        return self._given(cross, cross.new_full((1,), self.tau2))

    def responses(self, A: Float[Tensor, "N n"]) -> tuple[Float[Tensor, "m n"], Float[Tensor, " n"]]:
        """Mean and variance of the responses, without noise, to inputs A = w U."""
        prior = (A * self.matern.times(self.y, A)).sum(dim=0) / self.t + self.tau2
        return self._given(A.mT @ self.cross + self.tau2 * self.ones, prior)

    def root(self) -> Float[Tensor, "N N"]:
        """Of the covariance of Z_i."""
        C = self.matern.matrix(self.y)
        C.diagonal().add_(JITTER)
        return torch.linalg.cholesky(C) * (self.a2 / self.t) ** 0.5

    def sample(self, root: Float[Tensor, "N N"], generator: torch.Generator | None) -> Float[Tensor, "m N"]:
        """Draws of the prior, corrected by what they miss of the pairs (Matheron's rule)."""
        m, N, r = len(self.Q), len(root), len(self.D)
        of_prior, of_h, of_noise = (
            torch.randn(m, n, generator=generator, dtype=self.Q.dtype).to(self.Q.device) for n in (N, 1, r)
        )
        Z = of_prior @ root.mT
        seen = Z @ self.W + (self.a2 * self.tau2) ** 0.5 * of_h * self.ones + self.s2**0.5 * of_noise
        return Z + ((self.Q - seen) * self._gain) @ self.cross.mT

    @property
    def _gain(self) -> Float[Tensor, " r"]:
        return self.a2 / (self.a2 * self.D + self.s2)

    def _given(
        self, cross: Float[Tensor, "n r"], prior: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, "m n"], Float[Tensor, " n"]]:
        """Mean and variance of functionals with this covariance with the pairs and with themselves, over a²."""
        variance = self.a2 * (prior - cross.square() @ self._gain).clamp(min=0)
        return (self.Q * self._gain) @ cross.mT, variance
