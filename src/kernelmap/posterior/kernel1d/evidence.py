"""Bayesian regression f = A (ω z) + e of one component, for all amplitudes and error scales by one eigenproblem.

    z ~ N(0, α) ,  e ~ N(0, κ diag(n)) ,  γ = α / κ ,  B = n^-1/2 A ω (d, R) ,  g = n^-1/2 f
    Bᵀ B = V Λ Vᵀ ,  h = Vᵀ Bᵀ g                                  (of Bᵀ B or B Bᵀ, whichever is smaller)
    Vᵀ z | f ~ N( γ h / (1 + γ Λ),  κ γ / (1 + γ Λ) )
    log p(f | γ, κ) = -½ [ d log κ + Σ log n + Σ log(1 + γ Λ) + m(γ) / κ ] - ½ d log 2π
    m(γ) = |g|² - Σ γ h² / (1 + γ Λ)

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


class Conditioned(NamedTuple):
    """One component given the pairs, under one shape of errors.

    map: from eigendirections to weights of the features, so that K = Φ (map ζ) + a part that no pair sees.
    log_weight: log of evidence times prior, over γ, with κ integrated; kappa: E[κ | γ, f].
    """

    map: Float[Tensor, "R r"]
    omega: Float[Tensor, " R"]
    eigenvalues: Float[Tensor, " r"]
    h: Float[Tensor, " r"]
    gamma: Float[Tensor, " G"]
    log_weight: Float[Tensor, " G"]
    kappa: Float[Tensor, " G"]

    @property
    def log_evidence(self) -> Tensor:
        return self.log_weight.logsumexp(dim=0)

    def moments(
        self, X: Float[Tensor, "n R"], chosen: Int[Tensor, " C"]
    ) -> tuple[Float[Tensor, "C n"], Float[Tensor, "C n"]]:
        """Mean and variance of X (ω z) at the chosen γ."""
        gamma, kappa = self.gamma[chosen][:, None], self.kappa[chosen][:, None]
        T = X @ self.map
        shrunk = 1 / (1 + gamma * self.eigenvalues)
        unseen = ((X * self.omega).square().sum(dim=1) - T.square().sum(dim=1)).clamp(min=0)
        return (gamma * shrunk * self.h) @ T.mT, kappa * gamma * (shrunk @ T.square().mT + unseen)


class Whitened(NamedTuple):
    """The pairs as one block of features sees them, in units of the errors' standard deviations √n.

    n^-1/2 A, its Gram matrix Aᵀ diag(1/n) A, Aᵀ f/n, and n^-1/2 f.
    """

    A: Float[Tensor, "d R"]
    gram: Float[Tensor, "R R"]
    moment: Float[Tensor, " R"]
    g: Float[Tensor, " d"]
    shape: ErrorShape

    @classmethod
    def of(cls, A: Float[Tensor, "d R"], f: Float[Tensor, " d"], shape: ErrorShape) -> "Whitened":
        s = shape.n.rsqrt()
        B, g = s[:, None] * A, s * f
        return cls(B, B.mT @ B, B.mT @ g, g, shape)


def condition(
    pairs: Whitened, columns: slice, omega: Float[Tensor, " R"], amplitude: Density, floor: float
) -> Conditioned:
    """All amplitudes and error scales of one component, under the prior densities of log α and of the errors.

    floor: least variance of the white part of the errors.
    """
    d, power = len(pairs.g), pairs.g.square().sum()
    if len(omega) <= d:
        eigenvalues, basis = torch.linalg.eigh(omega[:, None] * pairs.gram[columns, columns] * omega)
        eigenvalues = eigenvalues.clamp(min=0)
        h = basis.mT @ (omega * pairs.moment[columns])
        projected = torch.where(eigenvalues > SMALLEST_EIGENVALUE * eigenvalues[-1], h.square() / eigenvalues, 0.0)
        outside = (power - projected.sum()).clamp(min=0)
    else:
        B = pairs.A[:, columns] * omega
        eigenvalues, W = torch.linalg.eigh(B @ B.mT)
        seen, c = eigenvalues > SMALLEST_EIGENVALUE * eigenvalues[-1], W.mT @ pairs.g
        eigenvalues, projected, outside = eigenvalues[seen], c[seen].square(), c[~seen].square().sum()
        h, basis = eigenvalues.sqrt() * c[seen], (B.mT @ W[:, seen]) / eigenvalues.sqrt()
    log_gamma, steps = LOG_GAMMA.to(power), STEPS.to(power)
    gamma = log_gamma.exp()
    scaled = gamma[:, None] * eigenvalues
    misfit = outside + (projected / (1 + scaled)).sum(dim=1)
    misfit = misfit.clamp(min=SMALLEST_EIGENVALUE * float(power))
    width = math.sqrt(2 / d)
    log_kappa = ((misfit / d).log()[:, None] + width * steps).clamp(min=math.log(pairs.shape.least_kappa(floor)))
    log_likelihood = -0.5 * (
        d * (log_kappa + math.log(2 * math.pi)) + pairs.shape.n.log().sum() + misfit[:, None] * (-log_kappa).exp()
    ) - 0.5 * torch.log1p(scaled).sum(dim=1, keepdim=True)
    log_alpha = log_gamma[:, None] + log_kappa
    log_weight = log_likelihood + amplitude.log(log_alpha) + pairs.shape.log_prior(log_kappa)
    log_weight = log_weight + math.log(float(LOG_GAMMA[1] - LOG_GAMMA[0]) * width * float(STEPS[1] - STEPS[0]))
    given = log_weight.softmax(dim=1)
    kappa = (given * log_kappa.exp()).sum(dim=1)
    return Conditioned(omega[:, None] * basis, omega, eigenvalues, h, gamma, log_weight.logsumexp(dim=1), kappa)
