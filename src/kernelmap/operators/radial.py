"""The radial operator in one dimension: K depends on the distance r."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core import grids
from kernelmap.core.grids import Grid
from kernelmap.operators.base import Operator


@dataclass(frozen=True)
class Radial(Operator):
    """f(x) = ∫_0^R K(r) [u(x+r) + u(x-r) - 2u(x)] dr, r_k = k step, k = 1..count."""

    name: ClassVar[str] = "radial"
    coordinate: ClassVar[str] = "r"
    axis: ClassVar[str] = "r"
    place: ClassVar[str] = "x"
    repeated: ClassVar[str] = "input"

    @property
    def grid(self) -> Grid:
        return grids.radii(self.step, self.count)

    @property
    def reach(self) -> tuple[int, int]:
        return self.count, self.count

    def tokens(self, windows: Float[Tensor, "n L"]) -> Float[Tensor, "n N"]:
        return radial_tokens(windows, self.count)[:, 0]


def radial_tokens(u: Float[Tensor, "n J_plus_2R"], radii: int) -> Float[Tensor, "n J R"]:
    """g[u](r_k, x_j) = u(x_j + r_k) + u(x_j - r_k) - 2u(x_j) with r_k = k dx, k = 1..radii.

    The mesh must reach `radii` steps beyond the first and the last location x_j.
    """
    windows = u.unfold(-1, radii, 1)
    count = u.shape[-1] - 2 * radii
    ahead = windows[..., radii + 1 : radii + 1 + count, :]
    behind = windows[..., :count, :].flip(-1)
    centre = u[..., radii : radii + count, None]
    return torch.add(ahead, behind).sub_(2 * centre)
