"""Microstructures and sources: Gaussian random fields on the unit square, as functions that any grid samples.

The random numbers of a field depend on its
seed and index alone, never on the grid nor on how many fields are made: the same field comes out at every resolution.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import check_seed
from kernelmap.problems.random_fields import deviations, evaluate

MODES = 32
"""Cosines in each direction."""

PERMEABILITIES = (3.0, 12.0)
"""Of the two phases, where the field is negative and where it is not."""

MICROSTRUCTURE, SHARED_SOURCE, OWN_SOURCE = range(3)
"""Streams of random numbers."""


@dataclass(frozen=True)
class Spectrum:
    """τ and α of the covariance (-Δ + τ²)^-α."""

    tau: float
    alpha: float


ROUGH = Spectrum(tau=3, alpha=2)
"""Of microstructures: N(0, (-Δ + 9)^-2), thresholded at zero, as Li et al. (arXiv 2003.03485) draw them."""

SMOOTH = Spectrum(tau=7, alpha=2.5)
"""Of sources: N(0, (-Δ + 49)^-2.5), as Li et al. (arXiv 2010.08895) draw theirs. The NAO paper names no spectrum."""


def gaussian_fields(
    spectrum: Spectrum, n: int, seed: int, stream: Sequence[int], indices: Sequence[int]
) -> Float[np.ndarray, "count n n"]:
    """Fields number `indices` of a stream on the n x n nodes of the unit square, first coordinate first."""
    check_nodes(n)
    check_seed(seed)
    xi = [np.random.default_rng([seed, *stream, i]).standard_normal((MODES, MODES)) for i in indices]
    return evaluate(deviations(MODES, spectrum.tau, spectrum.alpha) * np.stack(xi), np.linspace(0, 1, n))


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
