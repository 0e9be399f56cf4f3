"""The ways of particles between snapshots: where no velocities are given, their means over time follow from times.

    (x_i(b) - x_i(a)) / (b - a) = 1/n Σ_j (mean over a <= t <= b of) K(|x_j - x_i|) (x_j - x_i)

The left side takes no derivative, which would be less accurate, most at both ends, and make more of noise.
"""

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline

from kernelmap.core.errors import InputError
from kernelmap.io.particles.particles import Particles
from kernelmap.io.series.times import Times

FEWEST_TIMES = 4
"""Of a cubic spline."""

STAGES = 3
"""Places on a way, by Gauss's rule."""


def mean_velocities(particles: Particles) -> Float[np.ndarray, "S T_minus_1 n dim"]:
    times = _times(particles)
    return np.diff(particles.positions, axis=1) / np.diff(times.values, axis=1)[..., None, None]


def ways(particles: Particles) -> list[tuple[float, Particles]]:
    """Weights, whose sum is 1, and places on cubic splines from each snapshot to the next, at the times halfway."""
    times = _times(particles)
    start, length = times.values[:, :-1], np.diff(times.values, axis=1)
    splines = [CubicSpline(t, run) for t, run in zip(times.values, particles.positions, strict=True)]
    halfway, found = Times(start + length / 2, times.dated), []
    for node, weight in zip(*np.polynomial.legendre.leggauss(STAGES), strict=True):
        x = np.stack([spline(t) for spline, t in zip(splines, start + (1 + node) / 2 * length, strict=True)])
        found.append((float(weight) / 2, Particles(x, halfway, x.shape)))
    return found


def _times(particles: Particles) -> Times:
    if particles.times is None:
        raise InputError(
            "positions come without velocities and without times: give velocities, of the same shape, or t, the time "
            "of every snapshot, from which velocities are found."
        )
    if (count := particles.positions.shape[1]) < FEWEST_TIMES:
        raise InputError(
            f"positions holds {count} snapshot(s); velocities are found from {FEWEST_TIMES} or more. Give more "
            "snapshots, or velocities."
        )
    return particles.times
