"""Cubic interpolation between the points of a uniform grid."""

import numpy as np
from jaxtyping import Float


def lagrange(t: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n 4"]:
    """Weights of the samples at -1, 0, 1, 2 in the cubic polynomial through them, at t."""
    a, b, c = t + 1, t - 1, t - 2
    return np.stack([-t * b * c / 6, a * b * c / 2, -a * t * c / 2, a * t * b / 6], axis=-1)
