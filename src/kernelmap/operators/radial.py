"""The radial operator in one, two and three dimensions: K depends on the distance r."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core import grids
from kernelmap.core.grids import Grid
from kernelmap.operators.sampled import SampledOperator
from kernelmap.operators.spheres import stencil


@dataclass(frozen=True)
class Radial(SampledOperator):
    """f(x) = ∫ K(|z|) [u(x+z) - u(x)] dz = ∫_0^R K(r) g[u](r, x) dr, r_k = k step, k = 1..count.

    g[u](r, x) = ∫_{|z|=r} [u(x+z) - u(x)] dS: u(x+r) + u(x-r) - 2u(x) on a line, by cubic interpolation of u on the
    mesh otherwise, which reaches one step further. periodic: u begins again where its mesh ends.
    """

    dim: int = 1
    periodic: bool = False

    name: ClassVar[str] = "radial"
    formula: ClassVar[str] = "f(x) = ∫ K(|x-y|) [u(y) - u(x)] dy"
    coordinate: ClassVar[str] = "r"
    axis: ClassVar[str] = "r"
    place: ClassVar[str] = "x"
    repeated: ClassVar[str] = "input"

    @property
    def kind(self) -> str:
        return self.name if self.dim == 1 else f"{self.name} in {self.dim} dimensions"

    @property
    def grid(self) -> Grid:
        return grids.radii(self.step, self.count)

    @property
    def reach(self) -> tuple[int, int]:
        samples = self.count if self.dim == 1 else self.count + 1
        return samples, samples

    @property
    def wraps(self) -> bool:
        return self.periodic

    def tokens(self, windows: Float[Tensor, "n L"]) -> Float[Tensor, "n N"]:
        if self.dim == 1:
            return radial_tokens(windows, self.count)[:, 0]
        return windows @ stencils(self.count, self.dim).to(windows) * self.step ** (self.dim - 1)


@lru_cache(maxsize=4)
def stencils(count: int, dim: int) -> Float[Tensor, "L count"]:
    """For the radii of 1 to `count` steps."""
    return torch.from_numpy(np.stack([stencil(k, dim, count + 1) for k in range(1, count + 1)], axis=1))


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
