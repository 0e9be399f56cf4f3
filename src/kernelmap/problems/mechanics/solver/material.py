"""A compressible Neo-Hookean material in plane strain: energy, stress and tangent of a deformation gradient.

F is 2 x 2 and comes with its components first, so that any number of points can follow. With J = det F and the
cofactor cof F = J F⁻ᵀ, which in the plane is linear in F, all derivatives are polynomials in F, J and 1/J.
"""

import numpy as np
from jaxtyping import Float

Points = Float[np.ndarray, "*#p"]
Tensors = Float[np.ndarray, "2 2 *#p"]

POISSON = 0.3


def lame(E: Points, nu: float = POISSON) -> tuple[Points, Points]:
    """μ = E / (2(1+ν)) and λ = E ν / ((1+ν)(1-2ν))."""
    return E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))


def determinant(F: Tensors) -> Points:
    """J = F₁₁F₂₂ - F₁₂F₂₁."""
    return F[0, 0] * F[1, 1] - F[0, 1] * F[1, 0]


def cofactor(F: Tensors) -> Tensors:
    """cof F = J F⁻ᵀ = ∂J/∂F."""
    return np.stack([np.stack([F[1, 1], -F[1, 0]]), np.stack([-F[0, 1], F[0, 0]])])


def energy(F: Tensors, mu: Points, lam: Points) -> Points:
    """ψ = μ/2 (F:F - 2 - 2 ln J) + λ/2 ((J²-1)/2 - ln J), zero at rest; infinite where J <= 0."""
    J = determinant(F)
    value = mu / 2 * (np.square(F).sum(axis=(0, 1)) - 2) + volumetric(J, mu, lam)
    return np.where(J > 0, value, np.inf)


def volumetric(J: Points, mu: Points, lam: Points) -> Points:
    """U(J) = λ/4 (J²-1) - (μ + λ/2) ln J, the part of ψ that depends on J; NaN where J < 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return lam / 4 * (J * J - 1) - (mu + lam / 2) * np.log(J)


def pressure(J: Points, mu: Points, lam: Points) -> Points:
    """U'(J) = λ/2 (J - 1/J) - μ/J, exactly -μ at rest, where the stress then is exactly zero."""
    inverse = 1 / J
    return lam / 2 * (J - inverse) - mu * inverse


def stiffening(J: Points, mu: Points, lam: Points) -> Points:
    """U''(J) = λ/2 + (μ + λ/2)/J²."""
    return lam / 2 + (mu + lam / 2) / (J * J)


def stress(F: Tensors, mu: Points, lam: Points) -> Tensors:
    """P = ∂ψ/∂F = μ F + (λ/2 (J²-1) - μ) F⁻ᵀ = μ F + U'(J) cof F."""
    p = pressure(determinant(F), mu, lam)
    P = mu * F
    P[0, 0] += p * F[1, 1]
    P[0, 1] -= p * F[1, 0]
    P[1, 0] -= p * F[0, 1]
    P[1, 1] += p * F[0, 0]
    return P


def tangent(F: Tensors, mu: Points, lam: Points) -> Float[np.ndarray, "2 2 2 2 *#p"]:
    """A = ∂P/∂F = μ I + U'(J) ∂(cof F)/∂F + U''(J) cof F ⊗ cof F."""
    J, C = determinant(F), cofactor(F)
    A = stiffening(J, mu, lam) * C[:, :, None, None] * C[None, None]
    p = pressure(J, mu, lam)
    for i in range(2):
        for j in range(2):
            A[i, j, i, j] += mu
            A[i, j, 1 - i, 1 - j] += p if i == j else -p
    return A
