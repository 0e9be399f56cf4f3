"""Random systems: a kernel, inputs, a grid, places and noise, with responses that are exact before noise is added."""

from typing import NamedTuple

import numpy as np
import torch

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.problems.world.inputs import random_inputs
from kernelmap.problems.world.kernels import Function, random_kernel

Array = np.ndarray

REFINEMENT = 8
"""Cells of the response's quadrature in one step of the grid."""

EXACT = 0.3
"""Share of the systems without noise."""


class WorldSystem(NamedTuple):
    """A context of one system of the world, its true kernel (N,) and the relative noise that was added to f."""

    context: Context
    kernel: Array
    noise: float


def draw_system(seed: int, number: int, d: int | None = None, noise: float | None = None) -> WorldSystem:
    """System `number` of the world `seed`; with so many pairs and so much noise, or random ones.

    f(x) = ∫_0^R K(r) g[u](r; x) dr with the radial g = u(x+r) + u(x-r) - 2u(x) or the causal g = u(x-r). In units of
    the range R = 1; the grid has 50 to 400 points, the context 20 to 400 pairs.
    """
    rng = np.random.default_rng([seed, number])
    N = int(np.exp(rng.uniform(np.log(50), np.log(400))))
    drawn = int(np.exp(rng.uniform(np.log(20), np.log(400))))
    level = 0.0 if rng.random() < EXACT else float(np.exp(rng.uniform(np.log(1e-3), np.log(0.2))))
    pairs, level = drawn if d is None else d, level if noise is None else noise
    kernel, causal, functions = random_kernel(rng), rng.random() < 0.3, int(rng.integers(1, 9))
    while True:
        U, f = exact_pairs(kernel, causal, N, pairs, functions, rng)
        if np.sqrt(np.mean(f**2)) > 1e-6 * np.abs(U).max():
            break
    y = grids.from_points(np.arange(N + 1) / N) if causal else grids.radii(1 / N, N)
    f = f + level * np.sqrt(np.mean(f**2)) * rng.normal(size=pairs)
    truth = kernel(np.maximum(y.points[:, 0].numpy(), 0.25 / N))
    return WorldSystem(Context(torch.from_numpy(U), torch.from_numpy(f[None]), y, grids.point()), truth, level)


def exact_pairs(
    kernel: Function, causal: bool, N: int, d: int, functions: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Tokens (N, d), or (N + 1, d) from lag 0 on, and responses (d,), at random places of random inputs."""
    fine = 2 * REFINEMENT * N
    mesh = np.arange(-2 * fine, 2 * fine + 1) / fine
    u = random_inputs(functions, mesh, 1 / N, rng)
    place, which = rng.integers(-fine, fine + 1, d) + 2 * fine, rng.integers(functions, size=d)

    def tokens(offset: Array) -> Array:
        behind = u[which[:, None], place[:, None] - offset]
        if causal:
            return behind
        return behind + u[which[:, None], place[:, None] + offset] - 2 * u[which, place][:, None]

    coarse = 2 * REFINEMENT * np.arange(0 if causal else 1, N + 1)
    middle = 2 * np.arange(REFINEMENT * N) + 1
    return tokens(coarse).T.copy(), tokens(middle) @ cell_masses(kernel, REFINEMENT * N)


def cell_masses(kernel: Function, cells: int) -> Array:
    """∫ K over each of the cells of (0, 1], an integrable singularity at 0 included."""
    edges = np.linspace(0, 1, cells + 1)
    z, w = np.polynomial.legendre.leggauss(12)
    s = (z + 1) / 2
    # t = edge s⁴ in the first cell makes a singularity smooth.
    first = np.sum(w / 2 * 4 * s**3 * kernel(edges[1] * s**4)) * edges[1]
    rest = (w / 2 * kernel(edges[1:-1, None] + s / cells)).sum(axis=1) / cells
    return np.concatenate([[first], rest])
