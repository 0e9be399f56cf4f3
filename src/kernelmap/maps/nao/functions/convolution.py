"""Functions w(x - z) of the difference of two points, learned in Fourier space."""

from itertools import product
from math import pi

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.domain import Domain
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.maps.nao.functions.base import TwoPointFunction
from kernelmap.maps.nao.functions.pointwise import Pointwise
from kernelmap.maps.nao.functions.spectral import START, one_box

WAVES = {1: 32, 2: 8, 3: 4}
"""Frequencies in each direction, by the number of directions."""


class Convolution(TwoPointFunction):
    """W(x, z) = c δ(x - z) + Σ_k a_k cos πk(t - s) + b_k sin πk(t - s), in coordinates t of x and s of z in [0, 1].

    The mixer of NIPS (Liu and Yu, ICML 2025). Waves have twice the length of the box as their longest, so that nothing
    comes back from its other side; c is the multiplier of all waves that are not learned one by one.
    """

    def __init__(self, x: Domain, z: Domain, heads: int, waves: int | None, delta: float) -> None:
        super().__init__()
        if not one_box(x, z):
            raise InputError(
                "a convolution needs inputs and outputs in one box; use --mixer spectral or --mixer network."
            )
        self.heads, self.domain, count = heads, x, waves or WAVES[len(x.low)]
        zero = (0,) * len(x.low)
        # Of k and -k one is enough.
        found = [k for k in product(range(1 - count, count), repeat=len(x.low)) if k >= zero]
        self.register_buffer("k", torch.tensor(found, dtype=torch.float64), persistent=False)
        size = (heads, x.components, z.components, len(found))
        self.a, self.b = (nn.Parameter(START / len(found) * torch.randn(size)) for _ in range(2))
        self.pointwise = Pointwise(x, z, heads, 1, delta)

    def integrate(
        self, x: Grid, z: Grid, h: Float[Tensor, " N"], values: Float[Tensor, "*#b H N k"]
    ) -> Float[Tensor, "*#b H M k"]:
        cos_x, sin_x = self._waves(x)
        weighted = (h[:, None] * values).unflatten(-2, (self.a.shape[2], -1))
        C, S = (wave.mT @ weighted for wave in self._waves(z))

        def times(factor: Tensor, coefficients: Tensor) -> Tensor:
            return torch.einsum("hacr,...hcrk->...hark", factor, coefficients)

        spectral = cos_x @ (times(self.a, C) - times(self.b, S)) + sin_x @ (times(self.a, S) + times(self.b, C))
        return spectral.flatten(-3, -2) + self.pointwise.integrate(x, z, values)

    def _waves(self, grid: Grid) -> tuple[Float[Tensor, "n R"], Float[Tensor, "n R"]]:
        phase = pi / 2 * self.domain.coordinates(grid) @ self.get_buffer("k").double().mT
        return phase.cos().to(self.a), phase.sin().to(self.a)
