"""Gaussian random fields on the unit square, as cosine series that any grid samples.

    z(x, y) = Σ_kl σ_kl ξ_kl c_k(x) c_l(y) ,    c_0 = 1,  c_k(t) = √2 cos(kπt),  ξ standard normal

With σ_kl ∝ (π²(k² + l²) + τ²)^(-α/2) the covariance is proportional to (-Δ + τ²)^-α with zero normal derivative at the
boundary.
"""

import numpy as np
from jaxtyping import Float


def deviations(modes: int, tau: float, alpha: float) -> Float[np.ndarray, "modes modes"]:
    """σ_kl, without the constant, for a mean square of 1."""
    k = np.arange(modes)
    sigma = (np.pi**2 * (k[:, None] ** 2 + k**2) + tau**2) ** (-alpha / 2)
    sigma[0, 0] = 0
    return sigma / np.linalg.norm(sigma)


def evaluate(coefficients: Float[np.ndarray, "*b k k"], axis: Float[np.ndarray, " m"]) -> Float[np.ndarray, "*b m m"]:
    """The series with the coefficients σ ξ on the m x m points of a uniform mesh, last coordinate fastest."""
    k = np.arange(coefficients.shape[-1])
    waves = np.where(k > 0, np.sqrt(2.0), 1.0) * np.cos(np.pi * axis[:, None] * k)
    return waves @ coefficients @ waves.T
