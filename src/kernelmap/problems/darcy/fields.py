"""Microstructures and sources: Gaussian random fields on the unit square, as functions that any grid samples.

A field is a series of products of cosines, z(x) = Σ_k s_k ξ_k cos(π k1 x1) cos(π k2 x2) with ξ_k ~ N(0, 1), which has
the covariance (-Δ + τ²)^-α with zero normal derivative at the boundary. The random numbers of a field depend on its
seed and index alone, never on the grid nor on how many fields are made: the same field comes out at every resolution.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from kernelmap.errors import InputError

MODES = 32
"""Cosines in each direction."""

PERMEABILITIES = (3.0, 12.0)
"""Of the two phases, where the field is negative and where it is not."""

MICROSTRUCTURE, SHARED_SOURCE, OWN_SOURCE = range(3)
"""Streams of random numbers."""


@dataclass(frozen=True)
class Spectrum:
    """Variance of cosine k: proportional to (π²|k|² + τ²)^-α, without the constant, for a mean square of 1."""

    tau: float
    alpha: float

    @property
    def amplitudes(self) -> Float[np.ndarray, "modes modes"]:
        k = np.arange(MODES)
        amplitudes = (np.pi**2 * (k[:, None] ** 2 + k**2) + self.tau**2) ** (-self.alpha / 2)
        amplitudes[0, 0] = 0
        amplitudes /= np.sqrt(np.square(amplitudes).sum())
        norms = np.where(k == 0, 1, np.sqrt(2))
        return amplitudes * norms[:, None] * norms


ROUGH = Spectrum(tau=3, alpha=2)
"""Of microstructures: N(0, (-Δ + 9)^-2), thresholded at zero, as Li et al. (arXiv 2003.03485) draw them."""

SMOOTH = Spectrum(tau=7, alpha=2.5)
"""Of sources: N(0, (-Δ + 49)^-2.5), as Li et al. (arXiv 2010.08895) draw theirs. The NAO paper names no spectrum."""


def gaussian_fields(
    spectrum: Spectrum, n: int, seed: int, stream: Sequence[int], indices: Sequence[int]
) -> Float[np.ndarray, "count n n"]:
    """Fields number `indices` of a stream on the n x n nodes of the unit square, first coordinate first."""
    check_nodes(n)
    if seed < 0:
        raise InputError(f"a seed must not be negative, got {seed}.")
    xi = [np.random.default_rng([seed, *stream, i]).standard_normal((MODES, MODES)) for i in indices]
    cosines = np.cos(np.pi * np.outer(np.linspace(0, 1, n), np.arange(MODES)))
    return cosines @ (spectrum.amplitudes * np.stack(xi)) @ cosines.T


def microstructures(n: int, indices: Sequence[int], seed: int = 0) -> Float[np.ndarray, "count n n"]:
    """Permeabilities b of two phases."""
    low, high = PERMEABILITIES
    return np.where(gaussian_fields(ROUGH, n, seed, [MICROSTRUCTURE], indices) < 0, low, high)


def sources(n: int, indices: Sequence[int], seed: int = 0, system: int | None = None) -> Float[np.ndarray, "count n n"]:
    """Sources g: those that all systems share, or a system's own."""
    return gaussian_fields(SMOOTH, n, seed, [SHARED_SOURCE] if system is None else [OWN_SOURCE, system], indices)


def check_nodes(n: int) -> None:
    if n < 3:
        raise InputError(f"a grid of n x n nodes needs n of at least 3, so that one lies inside; got n = {n}.")
