"""Bayesian regression f = A (ω z) + e of one component, for all amplitudes and error scales by one eigenproblem.

    z ~ N(0, α) ,  e ~ N(0, κ diag(n)) ,  γ = α / κ ,  n^-1/2 A = P B ,  g = Pᵀ n^-1/2 f ,  PᵀP = 1
    B ω² Bᵀ = W Λ Wᵀ ,  V = ω Bᵀ W Λ^-1/2 ,  c = Wᵀ g
    Vᵀ z | f ~ N( γ Λ^1/2 c / (1 + γ Λ),  κ γ / (1 + γ Λ) )
    log p(f | γ, κ) = -½ [ d log κ + Σ log n + Σ log(1 + γ Λ) + m(γ) / κ ] - ½ d log 2π
    m(γ) = |n^-1/2 f|² - |g|² + Σ c² / (1 + γ Λ)

γ lies on a grid; κ on a grid around m(γ) / d, as wide as the likelihood is.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.posterior.kernel1d.errors import Density, ErrorShape

LOG_GAMMA = torch.arange(-8.0, 36.0, 0.5, dtype=torch.float64)
"""From signals of 2 % of the noise to noise of 1e-7 of the signal."""

STEPS = torch.linspace(-4, 4, 11, dtype=torch.float64)
"""Places of log κ, in standard deviations √(2/d) of its likelihood."""

SMALLEST_EIGENVALUE = 1e-14


class Whitened(NamedTuple):
    """The pairs as blocks of features see them, in units of the errors' standard deviations √n.

    B has as few rows as there are directions seen; `outside` is the power of n^-1/2 f in no such direction.
    """

    B: Float[Tensor, "*b r R"]
    g: Float[Tensor, "*b r"]
    outside: Float[Tensor, "*b"]
    shape: ErrorShape

    @classmethod
    def of(cls, A: Float[Tensor, "*b d R"], f: Float[Tensor, " d"], shape: ErrorShape) -> "Whitened":
        s = shape.n.rsqrt()
        A, f = s[:, None] * A, s * f
        few_features = A.shape[-1] < A.shape[-2]
        squares, basis = torch.linalg.eigh(A.mT @ A if few_features else A @ A.mT)
        seen = squares > SMALLEST_EIGENVALUE * squares[..., -1:]
        r = int(seen.sum(dim=-1).max())
        sizes = squares[..., -r:].clamp(min=torch.finfo(f.dtype).tiny).sqrt()
        basis = torch.where(seen[..., None, -r:], basis[..., -r:], 0.0)
        B = sizes[..., None] * basis.mT if few_features else basis.mT @ A
        g = (basis.mT @ (A.mT @ f)[..., None])[..., 0] / sizes if few_features else basis.mT @ f
        return cls(B, g, (f.square().sum() - g.square().sum(dim=-1)).clamp(min=0), shape)


class Conditioned(NamedTuple):
    """One component given the pairs, under one shape of errors, at some ratios γ.

    map: ω V, from eigendirections to weights of the features, so that K = Φ (map ζ) + a part that no pair sees.
    weights: probabilities of the ratios in the mixture; kappa: E[κ | γ, f].
    """

    omega: Float[Tensor, " R"]
    map: Float[Tensor, "R r"]
    eigenvalues: Float[Tensor, " r"]
    c: Float[Tensor, " r"]
    gamma: Float[Tensor, " C"]
    kappa: Float[Tensor, " C"]
    weights: Float[Tensor, " C"]

    def moments(self, X: Float[Tensor, "n R"]) -> tuple[Float[Tensor, "C n"], Float[Tensor, "C n"]]:
        """Mean and variance of X (ω z) at every γ."""
        mean, variance = self.seen(X)
        unseen = ((X * self.omega).square().sum(dim=1) - (X @ self.map).square().sum(dim=1)).clamp(min=0)
        return mean, variance + (self.kappa * self.gamma)[:, None] * unseen

    def seen(self, X: Float[Tensor, "n R"]) -> tuple[Float[Tensor, "C n"], Float[Tensor, "C n"]]:
        """The same of the part that the pairs see, which is all of their own responses."""
        mean, variance = self.directions()
        T = X @ self.map
        return mean @ T.mT, variance @ T.square().mT

    def second_moment(self) -> Float[Tensor, "R R"]:
        """E[(ω z) (ω z)ᵀ] over all γ, times their probability."""
        mean, variance = self.directions()
        mean, alpha = mean @ self.map.mT, self.weights @ (self.kappa * self.gamma)
        V = self.map / self.omega[:, None]
        narrowed, Q = torch.linalg.eigh((V * (alpha - self.weights @ variance)) @ V.mT)
        # V is orthonormal up to rounding, which must not make a variance negative.
        left = self.omega[:, None] * Q * (alpha - narrowed).clamp(min=0).sqrt()
        return (self.weights[:, None] * mean).mT @ mean + left @ left.mT

    def directions(self) -> tuple[Float[Tensor, "C r"], Float[Tensor, "C r"]]:
        """Mean and variance of Vᵀ z at every γ."""
        gamma = self.gamma[:, None]
        shrunk = gamma / (1 + gamma * self.eigenvalues)
        return shrunk * self.eigenvalues.sqrt() * self.c, self.kappa[:, None] * shrunk


class Evidence(NamedTuple):
    """Of S components of each block: eigendirections; log of evidence times prior, and E[κ | γ, f], over γ."""

    omegas: Float[Tensor, "*b S R"]
    eigenvalues: Float[Tensor, "*b S r"]
    W: Float[Tensor, "*b S r r"]
    c: Float[Tensor, "*b S r"]
    log_weight: Float[Tensor, "*b S G"]
    kappa: Float[Tensor, "*b S G"]

    def conditioned(self, pairs: Whitened, number: int, chosen: Int[Tensor, " C"], weights: Tensor) -> Conditioned:
        """Component `number` at the chosen γ."""
        omega, eigenvalues = self.omegas[number], self.eigenvalues[number]
        seen = eigenvalues > SMALLEST_EIGENVALUE * eigenvalues[-1]
        W, eigenvalues = self.W[number][:, seen], eigenvalues[seen]
        to_weights = omega.square()[:, None] * (pairs.B.mT @ W) / eigenvalues.sqrt()
        gamma = LOG_GAMMA.to(omega)[chosen].exp()
        c, kappa = self.c[number, seen], self.kappa[number, chosen]
        return Conditioned(omega, to_weights, eigenvalues, c, gamma, kappa, weights)


def evidence(pairs: Whitened, omegas: Float[Tensor, "*b S R"], amplitude: Density, floor: float) -> Evidence:
    """All amplitudes and error scales of the components of blocks, under the priors of log α and of the errors.

    floor: least variance of the white part of the errors.
    """
    d, shape = len(pairs.shape.n), pairs.shape
    scaled = pairs.B.unsqueeze(-3) * omegas.unsqueeze(-2)
    eigenvalues, W = torch.linalg.eigh(scaled @ scaled.mT)
    eigenvalues, c = eigenvalues.clamp(min=0), (pairs.g[..., None, None, :] @ W)[..., 0, :]
    log_gamma, steps, width = LOG_GAMMA.to(c), STEPS.to(c), math.sqrt(2 / d)
    signal = log_gamma.exp()[:, None] * eigenvalues.unsqueeze(-2)
    power, outside = pairs.g.square().sum(dim=-1) + pairs.outside, pairs.outside[..., None, None]
    misfit = outside + (c.square().unsqueeze(-2) / (1 + signal)).sum(dim=-1)
    misfit = torch.maximum(misfit, SMALLEST_EIGENVALUE * power[..., None, None])[..., None]
    log_kappa = ((misfit / d).log() + width * steps).clamp(min=math.log(shape.least_kappa(floor)))
    log_likelihood = -0.5 * (
        d * (log_kappa + math.log(2 * math.pi))
        + shape.n.log().sum()
        + misfit * (-log_kappa).exp()
        + torch.log1p(signal).sum(dim=-1)[..., None]
    )
    log_prior = amplitude.log(log_gamma[:, None] + log_kappa) + shape.log_prior(log_kappa)
    area = float(LOG_GAMMA[1] - LOG_GAMMA[0]) * width * float(STEPS[1] - STEPS[0])
    log_weight = log_likelihood + log_prior + math.log(area)
    kappa = (log_weight.softmax(dim=-1) * log_kappa.exp()).sum(dim=-1)
    return Evidence(omegas, eigenvalues, W, c, log_weight.logsumexp(dim=-1), kappa)
