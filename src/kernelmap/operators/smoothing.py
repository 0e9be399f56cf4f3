"""Noise on samples in equal steps: its level, what it leaves of a signal, and how uncertain that is.

    u = s + n ,  s ~ N(0, a C) ,  n ~ N(0, a ρ) :    E[s | u] = C (C + ρ)⁻¹ u ,  Cov(s | u) = a (C - C (C + ρ)⁻¹ C)

C is a Matérn or squared-exponential covariance, plus a wide constant; its length, ρ and a are the likeliest. What is
left of the noise, s - E[s | u], goes with none of the values E[s | u]: in a regression on these it is an error of f.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Array = np.ndarray

WINDOW = 256
"""Samples that say together what the signal is at one of them."""

WINDOWS = 8
"""At most, from which covariance and level are learned."""

LENGTHS = 12
"""From half a step to the window."""

LOG_RATIOS = np.linspace(math.log(1e-10), math.log(10.0), 45)
"""Of the noise's variance to the signal's."""

WIDE = 1e4
"""Variance of the signal's mean, relative to its own."""

SHAPES: tuple[Callable[[Array], Array], ...] = (
    lambda r: np.exp(-r),
    lambda r: (1 + math.sqrt(3) * r) * np.exp(-math.sqrt(3) * r),
    lambda r: (1 + math.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-math.sqrt(5) * r),
    lambda r: np.exp(-(r**2) / 2),
)
"""Covariances of rough to smooth signals: Matérn of order 1/2, 3/2 and 5/2, and squared exponential."""


class Noise(NamedTuple):
    """White noise on a signal.

    std: its level, 0 where it is not needed to explain the samples.
    log_odds: of the samples with it against without.
    filter: S = C (C + ρ)⁻¹ of a window. left: autocovariance of s - S u at 0, 1, .. steps.
    """

    std: float
    log_odds: float
    filter: Float[Array, "n n"]
    left: Float[Array, " L"]

    @classmethod
    def of(cls, u: Float[Array, "r J"], std: float | None = None) -> "Noise":
        """Of rows with the same noise, of level `std` if that is known; zeros have none."""
        windows = _windows(u)
        if std is None and not windows.any():
            n = windows.shape[1]
            return cls(0.0, 0.0, np.eye(n), np.zeros(n - n // 2))
        unit = float(np.sqrt(np.mean((windows - windows.mean(axis=1, keepdims=True)) ** 2))) or 1.0
        known = None if std is None else (std / unit) ** 2
        best, best_silent, chosen = -math.inf, -math.inf, None
        for eigenvalues, V in _signals(windows.shape[1]):
            power = ((windows / unit) @ V) ** 2
            evidence, a = _evidence(power, eigenvalues, known)
            best_silent = max(best_silent, float(evidence[0]))
            if evidence.max() > best:
                best, i = float(evidence.max()), int(evidence.argmax())
                chosen = eigenvalues, V, float(a[i]), float(np.exp(LOG_RATIOS[i]))
        assert chosen is not None
        eigenvalues, V, a, ratio = chosen
        shrunk = eigenvalues / (eigenvalues + ratio)
        middle = len(eigenvalues) // 2
        left = a * unit**2 * ((V[middle] * ratio * shrunk) @ V.T)[middle:]
        return cls(math.sqrt(a * ratio) * unit, best - best_silent, (V * shrunk) @ V.T, left)

    def removed(self, u: Float[Array, "r J"]) -> Float[Array, "r J"]:
        """E[s | u], each sample from the window around it."""
        n, J = len(self.filter), u.shape[1]
        if n > J:
            raise ValueError("the filter is longer than the record")
        middle = n // 2
        inner = np.lib.stride_tricks.sliding_window_view(u, n, axis=1) @ self.filter[middle]
        first, last = u[:, :n] @ self.filter[:middle].T, u[:, J - n :] @ self.filter[middle + 1 :].T
        return np.concatenate([first, inner, last], axis=1)


def _windows(u: Float[Array, "r J"]) -> Float[Array, "w n"]:
    """Some of the windows of all rows, next to each other."""
    n = min(u.shape[1], WINDOW)
    cut = u[:, : u.shape[1] // n * n].reshape(-1, n)
    return cut[np.linspace(0, len(cut) - 1, min(len(cut), WINDOWS)).astype(int)]


def _signals(n: int) -> Iterator[tuple[Float[Array, " n"], Float[Array, "n n"]]]:
    """Eigenvalues and eigenvectors of all covariances of n samples."""
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    for shape in SHAPES:
        for length in np.geomspace(0.5, n, LENGTHS):
            eigenvalues, V = np.linalg.eigh(shape(steps / length) + WIDE)
            yield eigenvalues.clip(min=0), V


def _evidence(power: Array, eigenvalues: Array, known: float | None) -> tuple[Array, Array]:
    """log p(u) for every ρ, and the variance a of the signal: the likeliest, or that which makes the noise's known."""
    ratios = np.exp(LOG_RATIOS)
    variance = eigenvalues + ratios[:, None]
    misfit, count = (power[:, None] / variance).sum(axis=(0, 2)), power.size
    a = misfit / count if known is None else known / ratios
    return -0.5 * (count * np.log(a) + misfit / a + len(power) * np.log(variance).sum(axis=1)), a
