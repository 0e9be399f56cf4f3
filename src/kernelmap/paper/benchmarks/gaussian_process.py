"""A plain Gaussian process for the kernel: what a user who knows statistics would write in 25 lines.

K ~ GP(0, s² Matérn_ν(|r - r'| / l)),  f = Uᵀ diag(w) K + e,  e ~ N(0, g s²):  l and g by marginal likelihood, s² in
closed form.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from kernelmap.core.context import Context

LENGTHS, RATIOS = 16, 80


class Process(NamedTuple):
    """Posterior mean and standard deviation on the grid, and the log evidence they were chosen by."""

    mean: Float[np.ndarray, " N"]
    std: Float[np.ndarray, " N"]
    log_evidence: float


def matern_posterior(context: Context, nu: float) -> Process:
    """With the length l and the noise-to-signal ratio g of the largest marginal likelihood, each on a fine grid."""
    r, w = context.y.points[:, 0].numpy(), context.y.weights.numpy()
    A, f = context.U.mT.numpy() * w, context.F[0].numpy()
    d, distance = len(f), np.abs(r[:, None] - r)
    best: tuple[float, tuple] = (-np.inf, ())
    for length in np.geomspace(2 * distance[0, 1], r[-1], LENGTHS):
        AC = A @ matern(distance / length, nu)
        eigenvalues, V = np.linalg.eigh(AC @ A.T)
        eigenvalues, b = np.maximum(eigenvalues, 0), V.T @ f
        g = eigenvalues[-1] * np.geomspace(1e-13, 10, RATIOS)[:, None]
        size = (b**2 / (eigenvalues + g)).mean(axis=1)
        evidence = -0.5 * d * np.log(size) - 0.5 * np.log(eigenvalues + g).sum(axis=1)
        top = int(evidence.argmax())
        best = max(
            best, (float(evidence[top]), (AC, eigenvalues + g[top], V, b, size[top])), key=lambda found: found[0]
        )
    AC, lam, V, b, size = best[1]
    variance = 1 - ((V.T @ AC) ** 2 / lam[:, None]).sum(axis=0)
    return Process((b / lam) @ (V.T @ AC), np.sqrt(size * np.maximum(variance, 0)), best[0])


def matern(x: np.ndarray, nu: float) -> np.ndarray:
    z = np.sqrt(2 * nu) * x
    return (1 + z) * np.exp(-z) if nu == 1.5 else (1 + z + z**2 / 3) * np.exp(-z)
