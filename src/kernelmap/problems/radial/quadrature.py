"""The exact response f of a radial kernel, by adaptive Gauss-Kronrod quadrature at all locations at once."""

from typing import Any

import numpy as np
from scipy.integrate import quad_vec

from kernelmap.core.errors import InputError
from kernelmap.problems.radial.inputs import Inputs
from kernelmap.problems.radial.kernels import RadialKernel

TOLERANCE = 1e-11
ACCEPTED = 1e-9


def response(kernel: RadialKernel, inputs: Inputs, x: np.ndarray) -> np.ndarray:
    """f_i(x) = ∫ K(|y-x|) u_i(y) dy - 2 u_i(x) ∫_0^δ K(r) dr, shape (inputs, locations).

    The y-axis is cut where u breaks, at y = x, and where K breaks or ends, so every piece is smooth; all pieces of all
    locations are mapped to [0, 1] and integrated by one adaptive rule that refines until the worst one is accurate.
    """
    radii = np.array([0.0, *kernel.breakpoints, kernel.support])
    low, high = inputs.breakpoints[0], inputs.breakpoints[-1]
    cuts = np.concatenate(
        [np.broadcast_to(np.array(inputs.breakpoints)[:, None], (len(inputs.breakpoints), len(x)))]
        + [x[None] + sign * radii[:, None] for sign in (-1, 1)]
    )
    inside = np.clip(cuts, np.maximum(low, x - kernel.support), np.minimum(high, x + kernel.support))
    edges = np.sort(np.clip(inside, low, high), axis=0)
    start, width = edges[:-1], np.diff(edges, axis=0)

    def pieces(t: float) -> np.ndarray:
        y = start + t * width
        # An empty piece may lie at r = 0, where the kernel need not be defined.
        weights = np.where(width > 0, kernel(np.abs(y - x)) * width, 0.0)
        return (inputs.functions(y) * weights).sum(axis=1)

    mass = _accurate(
        quad_vec(
            kernel, 0.0, kernel.support, epsabs=TOLERANCE, epsrel=0.0, limit=200, points=kernel.breakpoints or None
        )
    )
    values = _accurate(quad_vec(pieces, 0.0, 1.0, epsabs=TOLERANCE, epsrel=0.0, norm="max", quadrature="gk21"))
    return values - 2 * inputs.functions(x) * mass


def _accurate(result: tuple[Any, float]) -> Any:
    values, error = result
    if not error <= ACCEPTED:
        raise InputError(
            f"the quadrature of the kernel reached only {error:.1e}, not {ACCEPTED:.0e}. Name the radii "
            "where it jumps as breakpoints, and check that it is integrable."
        )
    return values
