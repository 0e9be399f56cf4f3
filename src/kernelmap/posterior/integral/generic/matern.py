"""Matérn covariances of half-integer smoothness, of points in any number of dimensions."""

from math import factorial, sqrt
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid

ROWS_AT_ONCE = 2**22
"""Values of a covariance that are in memory while it is multiplied."""


class Matern(NamedTuple):
    """C(r) = p!/(2p)! Σ_i (p+i)! / (i! (p-i)!) (2t)^(p-i) e^-t ,  t = √(2p+1) r / length: p derivatives."""

    p: int
    length: float

    def of_distance(self, r: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        p, t = self.p, (sqrt(2 * self.p + 1) / self.length) * r
        polynomial = torch.zeros_like(t)
        for i in range(p + 1):  # Horner, from the highest power of 2t down
            polynomial = 2 * t * polynomial + factorial(p + i) / (factorial(i) * factorial(p - i))
        return factorial(p) / factorial(2 * p) * polynomial * (-t).exp()

    def matrix(self, grid: Grid) -> Float[Tensor, "n n"]:
        """Of fields of several components too: these are independent."""
        C = self.of_distance(torch.cdist(grid.points, grid.points, compute_mode=EXACT))
        return torch.block_diag(*[C] * grid.components)

    def times(self, grid: Grid, A: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
        """The matrix times A, a part of its rows at a time."""
        fields = A.unflatten(0, (grid.components, -1))
        parts = grid.points.split(max(1, ROWS_AT_ONCE // len(grid.points)))
        rows = [self.of_distance(torch.cdist(some, grid.points, compute_mode=EXACT)) @ fields for some in parts]
        return torch.cat(rows, dim=-2).flatten(0, 1)


EXACT = "donot_use_mm_for_euclid_dist"
"""Distances by differences: from products, those of close points lose half their digits."""


def extent(grid: Grid) -> float:
    """The longest side of the box around the points; 1 for a single point."""
    return float((grid.points.amax(dim=0) - grid.points.amin(dim=0)).max()) or 1.0
