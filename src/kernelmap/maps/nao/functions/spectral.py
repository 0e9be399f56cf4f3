"""Functions of two points with a pointwise and a spectral part."""

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.domain import Domain
from kernelmap.core.grids import Grid
from kernelmap.maps.nao.functions.base import TwoPointFunction
from kernelmap.maps.nao.functions.network import integral
from kernelmap.maps.nao.functions.pointwise import Pointwise
from kernelmap.maps.nao.set_nao.modes import Modes

WAVES = {1: 32, 2: 12, 3: 5}
"""Cosines in each direction, by the number of directions."""

FEW = 3
"""Cosines in each direction of the factor c(x)."""

START = 0.1
"""Size of the spectral part before training, beside the pointwise one."""


class SpectralFunction(TwoPointFunction):
    """W(x, z) = c(x) δ(x - z) + Σ_ij ψ_i(x) M_ij ψ_j(z), ψ the products of cosines on the box of x or z.

    It is a function of position, so it belongs to no grid, and an integral takes as long as its grids are. The delta
    is there where x and z lie in one box: an attention operator whose W is near the identity fits every context, and a
    network of (x, z) cannot be.
    """

    def __init__(self, x: Domain, z: Domain, heads: int, waves: int | None, delta: float) -> None:
        super().__init__()
        self.heads = heads
        self.x, self.z = (Modes(domain, "cosines", waves or WAVES[len(domain.low)]) for domain in (x, z))
        start = START / sqrt(self.z.count) / 2 ** len(z.low)
        # Two axes, so that Muon takes it as the matrix it is.
        self.M = nn.Parameter(start * torch.randn(heads * self.x.count, self.z.count))
        self.pointwise = Pointwise(x, z, heads, FEW, delta) if one_box(x, z) else None

    def integrate(
        self, x: Grid, z: Grid, h: Float[Tensor, " N"], values: Float[Tensor, "*#b H N k"]
    ) -> Float[Tensor, "*#b H M k"]:
        psi_x, psi_z = (modes.of_component(grid).to(self.M) for modes, grid in ((self.x, x), (self.z, z)))
        weighted = (h[:, None] * values).unflatten(-2, (z.components, -1))
        coefficients = (psi_z.mT @ weighted).flatten(-3, -2)
        mixed = integral(self.M.unflatten(0, (self.heads, -1)), coefficients)
        spectral = (psi_x @ mixed.unflatten(-2, (x.components, -1))).flatten(-3, -2)
        return spectral if self.pointwise is None else spectral + self.pointwise.integrate(x, z, values)


def one_box(x: Domain, z: Domain) -> bool:
    """Whether two domains are the same box, in which a point of one is a point of the other."""
    return not x.is_point and (x.low, x.high) == (z.low, z.high)
