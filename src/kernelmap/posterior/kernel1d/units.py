"""Units: lengths by the grid's range, u and f by their robust sizes; undone on the way out."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid

SIZED_PAIRS = 1000
"""At most so many of the pairs, in equal strides, tell the size of u."""

TRIMMED = 0.01
"""Share of the largest values, at least one of several, that do not count in a size: one huge value must not set it."""


def trimmed_mean(values: Float[Tensor, "*b d"]) -> Float[Tensor, "*b"]:
    """Mean of non-negative values without the largest; of all, where the others are zero."""
    kept = values.shape[-1] - max(1, round(TRIMMED * values.shape[-1])) if values.shape[-1] > 1 else 1
    trimmed = values.sort(dim=-1).values[..., :kept].mean(dim=-1)
    return torch.where(trimmed > 0, trimmed, values.mean(dim=-1))


def size(values: Float[Tensor, "*b d"]) -> float:
    """Robust root mean square, for values from 1e-150 to 1e150."""
    largest = float(values.abs().max())
    return largest * float(trimmed_mean((values / largest).flatten().square()).sqrt()) if largest > 0 else 1.0


@dataclass(frozen=True)
class Units:
    """length: of the grid's range; u, f: sizes of tokens and responses."""

    length: float
    u: float
    f: float

    @classmethod
    def of(cls, U: Float[Tensor, "N d"], f: Float[Tensor, " d"], y: Grid) -> "Units":
        some = U[:, :: math.ceil(U.shape[1] / SIZED_PAIRS)]
        return cls(float(y.points.abs().max()), size(some), size(f))

    @property
    def kernel(self) -> float:
        """One unit of the engine's kernel, in the user's units."""
        return self.f / self.u / self.length

    def scaled(self, y: Grid) -> Grid:
        """Trapezoidal at the last point, to which radii give a whole cell: half of it lies beyond the range."""
        weights = y.weights / self.length
        last = (y.points[-1, 0] - y.points[-2, 0]) / (2 * self.length)
        ends = torch.cat([weights[:-1], torch.minimum(weights[-1:], last[None])])
        return Grid(y.points / self.length, ends, y.components)
