"""Sums over a circle or a sphere of a function on a mesh: cubic interpolation at well spread nodes."""

from math import ceil, pi

import numpy as np
from jaxtyping import Float

from kernelmap.operators.cubic import lagrange

NODES = 2
"""On a step of the mesh: with more, the error, which is then that of interpolation, is the same to a few per cent."""


def sphere(radius: float, dim: int) -> tuple[Float[np.ndarray, "n dim"], Float[np.ndarray, " n"]]:
    """Nodes on |z| = radius, in steps of the mesh, and weights whose sum is the sphere's measure: 2, 2πr or 4πr²."""
    if dim == 1:
        return np.array([[-radius], [radius]]), np.ones(2)
    n = 4 * ceil(NODES * 2 * pi * radius / 4)
    angle = 2 * pi * (np.arange(n) + 0.5) / n
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if dim == 2:
        return radius * circle, np.full(n, 2 * pi * radius / n)
    height, weight = np.polynomial.legendre.leggauss(n // 2)
    around = np.sqrt(1 - height**2)[:, None, None] * circle
    nodes = np.concatenate([around, np.broadcast_to(height[:, None, None], (len(height), n, 1))], axis=2)
    return radius * nodes.reshape(-1, 3), np.repeat(weight, n) * 2 * pi * radius**2 / n


def stencil(radius: float, dim: int, reach: int) -> Float[np.ndarray, " L"]:
    """s with ∫_{|z|=r} (u(x+z) - u(x)) dS ≈ Σ s u over the (2 reach + 1)^dim samples around x."""
    nodes, weights = sphere(radius, dim)
    low, shape = np.floor(nodes).astype(int), [2 * reach + 1] * dim
    cubic = lagrange(nodes - low)
    found = np.zeros(np.prod(shape))
    for corner in np.ndindex(*[4] * dim):
        factor = np.prod([cubic[:, axis, c] for axis, c in enumerate(corner)], axis=0)
        at = np.ravel_multi_index(tuple((low + np.array(corner) - 1 + reach).T), shape)
        found += np.bincount(at, weights * factor, len(found))
    found[len(found) // 2] -= weights.sum()
    return found
