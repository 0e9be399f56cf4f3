"""The pointwise part c(x) δ(x - z) of a function of two points: it takes the token at x itself."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.domain import Domain
from kernelmap.core.grids import Grid
from kernelmap.maps.nao.functions.interpolation import Interpolation
from kernelmap.maps.nao.set_nao.modes import Modes


class Pointwise(nn.Module):
    """∫ c(x) δ(x - z) v(z) dz = c(x) v(x), for each of H heads and each pair of components of x and z.

    c is a sum of `waves` cosines in each direction. It starts at `start` for equal components, and at 0 for others.
    Between the points of the tokens' grid, v(x) is linear.
    """

    def __init__(self, x: Domain, z: Domain, heads: int, waves: int, start: float) -> None:
        super().__init__()
        self.modes = Modes(Domain(x.low, x.high), "cosines", waves)
        c = torch.zeros(heads, x.components, z.components, self.modes.count)
        c[..., 0] = start * torch.eye(x.components, z.components)
        self.c = nn.Parameter(c)

    def integrate(self, x: Grid, z: Grid, values: Float[Tensor, "*#b H N k"]) -> Float[Tensor, "*#b H M k"]:
        c = self._values(x)
        there = Interpolation.of(z, x).apply(values.unflatten(-2, (c.shape[2], -1)))
        if c.shape[1:3] == (1, 1):
            return c[:, 0, 0, :, None] * there[..., 0, :, :]
        return torch.einsum("hacm,...hcmk->...hamk", c, there).flatten(-3, -2)

    def _values(self, x: Grid) -> Float[Tensor, "H cx cz m"]:
        """c at the points of x."""
        return self.c @ self.modes(x.with_components(1)).to(self.c).mT
