"""Octaves of x: K(x, y) = Σ_i v_i(x) Z_i(y) with orthonormal functions v_i on the points of x, from smooth to rough.

Functions of one band of wave numbers share a prior. So a kernel may vary as fast in y as it does in x, as one with a
ridge along the diagonal does, which a product of one covariance in x and one in y cannot say.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.posterior.integral.generic.matern import Matern, extent

TO_AN_OCTAVE = 2


@dataclass(frozen=True)
class Bands:
    """V, the eigenvectors of a covariance on x, and which of them belong together."""

    V: Float[Tensor, "M M"]
    members: tuple[slice, ...]

    @classmethod
    def of(cls, x: Grid) -> "Bands":
        """Every component of a vector field has bands of its own."""
        points = Grid(x.points, x.weights)
        V = torch.linalg.eigh(Matern(1, extent(x)).matrix(points))[1].flip(-1)
        n = len(V)
        edges = sorted({min(round(2 ** (j / TO_AN_OCTAVE)), n) for j in range(64)} | {0})
        members = tuple(slice(c * n + low, c * n + high) for c in range(x.components) for low, high in pairwise(edges))
        return cls(torch.block_diag(*[V] * x.components), members)

    @cached_property
    def sums(self) -> Float[Tensor, "bands M"]:
        """Ones where a function belongs to a band."""
        ones = self.V.new_zeros(len(self.members), len(self.V))
        for band, members in enumerate(self.members):
            ones[band, members] = 1
        return ones
