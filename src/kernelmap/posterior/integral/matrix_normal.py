"""The matrix-normal posterior of a kernel K(x, y), by two symmetric eigenproblems.

    K = m + a B_x Ξ B_yᵀ ,  Ξ standard normal :      vec(K - m) ~ N(0, a² C_x ⊗ C_y) ,  C_x = B_x B_xᵀ ,  C_y = B_y B_yᵀ
    F = K diag(w) U + a s e ,  e standard normal

Where the covariances come from, and how their constants are chosen, is not said here.
"""

from dataclasses import dataclass
from functools import cached_property
from math import log, pi

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.posterior.integral.eigen import eigh


@dataclass(frozen=True)
class Covariance:
    """C = B Bᵀ on a grid of output points, with BᵀB = Q L Qᵀ and X = B Q: C = X Xᵀ, XᵀX = diag(L)."""

    X: Float[Tensor, "M R"]
    L: Float[Tensor, " R"]

    @classmethod
    def of(cls, B: Float[Tensor, "M R"]) -> "Covariance":
        L, Q = eigh(B.mT @ B)
        return cls(B @ Q, L)


@dataclass(frozen=True)
class Gram:
    """S = Uᵀ w C_y w U = P diag(D) Pᵀ over the pairs, and the projected pairs A = B_yᵀ w U."""

    A: Float[Tensor, "*b R d"]
    D: Float[Tensor, "*b d"]
    P: Float[Tensor, "*b d d"]

    @classmethod
    def of(cls, A: Float[Tensor, "*b R d"]) -> "Gram":
        D, P = eigh(A.mT @ A)
        return cls(A, D, P)


@dataclass(frozen=True)
class MatrixNormal:
    """K given the pairs; `G` = F - m w U is what the mean does not explain.

    E_ij = (Xᵀ G P)_ij / (L_i D_j + s²) ,    E[K - m] = X E (A P)ᵀ B_yᵀ
    """

    x: Covariance
    pairs: Gram
    G: Float[Tensor, "*b M d"]
    s2: Float[Tensor, "*b 1 1"]
    a2: Float[Tensor, "*b 1 1"]

    @cached_property
    def denominators(self) -> Float[Tensor, "*b R d"]:
        """L_i D_j + s²."""
        return self.x.L[:, None] * self.pairs.D[..., None, :] + self.s2

    def coefficients(self, G: Float[Tensor, "*b M d"]) -> Float[Tensor, "*b Rx Ry"]:
        """E (A P)ᵀ: the posterior mean of K - m is X times this times B_yᵀ. It is linear in G."""
        E = (self.x.X.mT @ G @ self.pairs.P) / self.denominators
        return E @ (self.pairs.A @ self.pairs.P).mT

    def mean(self, B: Float[Tensor, "*#b n Ry"]) -> Float[Tensor, "*b M n"]:
        """E[K - m] between the output points and n functionals of y: the rows of B, of B_y itself or (w u)ᵀ B_y."""
        return self.x.X @ (self.coefficients(self.G) @ B.mT)

    def variance(self, B: Float[Tensor, "*#b n Ry"]) -> Float[Tensor, "*b M n"]:
        """Σ_i X_xi² [ |B|² - Σ_j L_i (B A P)_j² / (L_i D_j + s²) ] a²."""
        informed = (B @ (self.pairs.A @ self.pairs.P)).square()
        reduced = (self.x.L[:, None] / self.denominators) @ informed.mT
        left = (B.square().sum(dim=-1)[..., None, :] - reduced).clamp(min=0)
        return self.a2 * (self.x.X.square() @ left)

    def prior_variance(self, B: Float[Tensor, "*#b n Ry"]) -> Float[Tensor, "*b M n"]:
        return self.a2 * (self.x.X.square().sum(dim=-1)[:, None] * B.square().sum(dim=-1)[..., None, :])

    def sample(self, B: Float[Tensor, "n Ry"], generator: torch.Generator | None = None) -> Float[Tensor, "*b M n"]:
        """A draw of K - m: one of the prior, corrected by what it misses of the pairs (Matheron's rule)."""

        def normal(*shape: int) -> Tensor:
            return torch.randn(*self.G.shape[:-2], *shape, generator=generator, dtype=self.G.dtype).to(self.G.device)

        a, s = self.a2.sqrt(), self.s2.sqrt()
        prior = self.x.X @ normal(self.x.X.shape[1], B.shape[1]) * a
        seen = prior @ self.pairs.A + a * s * normal(*self.G.shape[-2:])
        return prior @ B.mT + self.x.X @ (self.coefficients(self.G - seen) @ B.mT)

    @property
    def misfit(self) -> Float[Tensor, "*b"]:
        """Gᵀ (C_x ⊗ S + s²)⁻¹ G; divided by M d, the likeliest a²."""
        projected = self.x.X.mT @ self.G @ self.pairs.P
        explained = self._fractions * projected.square()
        s2 = self.s2[..., 0, 0]
        return (self.G.square().sum(dim=(-2, -1)) - explained.sum(dim=(-2, -1))) / s2

    @property
    def _fractions(self) -> Float[Tensor, "*b R d"]:
        """Of (Xᵀ G P)²: D_j / (L_i D_j + s²). Directions outside X are all noise."""
        return self.pairs.D[..., None, :] / self.denominators

    @property
    def log_determinant(self) -> Float[Tensor, "*b"]:
        """log det (C_x ⊗ S + s²)."""
        (M, d), R = self.G.shape[-2:], len(self.x.L)
        return self.denominators.log().sum(dim=(-2, -1)) + (M - R) * d * self.s2[..., 0, 0].log()

    @property
    def log_evidence(self) -> Float[Tensor, "*b"]:
        """log p(F | U)."""
        count = self.G.shape[-2] * self.G.shape[-1]
        a2 = self.a2[..., 0, 0]
        return -0.5 * (self.misfit / a2 + self.log_determinant + count * (a2.log() + log(2 * pi)))
