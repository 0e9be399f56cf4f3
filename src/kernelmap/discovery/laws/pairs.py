"""Pairs as a least-squares problem of at most N rows, in units in which everything is of size 1."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.sparse import csr_array

from kernelmap.core.context import Context, distinct_inputs
from kernelmap.posterior.kernel1d.units import size

PARTS = 4
"""Of every step of the grid: a law is known between its points too."""


class Pairs(NamedTuple):
    """f = G Q K + e: rows (G, f) with e ~ N(0, σ²), and `outside`, the sum of squares that no K explains.

    Q: integrates a law times what u is between the points of the grid.

    count: how many different inputs there are. Pairs with the same one are averaged, and `log_repeats` is Σ log √n of
    their numbers n, which the density of their means has. t: |y| in units of the range, in the middle of parts of
    cells, of width h; grid: at the points of the kernel. kernel: one unit of K; length: one unit of t.
    """

    G: Float[np.ndarray, "n N"]
    Q: csr_array
    f: Float[np.ndarray, " n"]
    outside: float
    count: int
    log_repeats: float
    t: Float[np.ndarray, " T"]
    h: float
    grid: Float[np.ndarray, " N"]
    kernel: float
    length: float

    @classmethod
    def of(cls, context: Context) -> "Pairs":
        U, F, y = context.U.double().cpu(), context.F[0].double().cpu(), context.y.points[:, 0].cpu().numpy()
        length, u, unit = float(np.abs(y).max()), size(U), size(F)
        group = distinct_inputs(U)
        repeats = torch.bincount(group).double()
        numbers = torch.arange(len(F))
        first = torch.full_like(group[: len(repeats)], len(F)).scatter_reduce(0, group, numbers, "amin")
        mean = torch.zeros_like(repeats).index_add(0, group, F) / repeats / unit
        root = repeats.sqrt().numpy()
        G, f, outside = root[:, None] * (U[:, first] / u).numpy().T, root * mean.numpy(), 0.0
        t, quadrature = interpolation(y / length)
        if len(f) > len(y):
            basis, G = np.linalg.qr(G)
            seen = basis.T @ f
            f, outside = seen, max(float(f @ f - seen @ seen), 0.0)
        steps, log_repeats = np.diff(y) / length, float(np.log(root).sum())
        h, kernel = float(steps.mean()) / PARTS, unit / (u * length)
        count, t, grid = len(repeats), np.abs(t), np.abs(y) / length
        return cls(G, quadrature, f, outside, count, log_repeats, t, h, grid, kernel, length)

    def responses(self, laws: Float[np.ndarray, "L T"]) -> Float[np.ndarray, "L n"]:
        """Of laws with these values at t."""
        return (self.Q @ laws.T).T @ self.G.T


def interpolation(y: Float[np.ndarray, " N"]) -> tuple[Float[np.ndarray, " T"], csr_array]:
    """Points t and weights (N, T) such that ∫ K g dt ≈ Σ_t K(t) Σ_k weights[k, t] g(y_k), g cubic between the points y.

    Linear g would damp waves of length λ by (2π h / λ)² / 12. On radii, from the first step on, g is an even function
    of t that vanishes at zero.
    """
    points = np.arange(len(y))
    nodes, columns, first = y, points, 0
    if y[0] > 0:
        nodes, columns, first = np.concatenate([[-y[0], 0.0], y]), np.concatenate([[0, -1], points]), 1
    cells = np.repeat(np.arange(first, len(nodes) - 1), PARTS)
    dt = (nodes[cells + 1] - nodes[cells]) / PARTS
    t = nodes[cells] + dt * np.tile(np.arange(PARTS) + 0.5, len(nodes) - 1 - first)
    around = np.clip(cells - 1, 0, len(nodes) - 4) + np.arange(4)[:, None]
    x = nodes[around]
    lagrange = [np.prod([(t - x[b]) / (x[a] - x[b]) for b in range(4) if b != a], axis=0) for a in range(4)]
    values, rows = np.stack(lagrange) * dt, columns[around]
    numbers = np.broadcast_to(np.arange(len(t)), rows.shape)
    known = rows >= 0
    return t, csr_array((values[known], (rows[known], numbers[known])), shape=(len(y), len(t)))
