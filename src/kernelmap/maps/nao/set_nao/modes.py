"""Cosines and sines on a box, as functions that any grid samples."""

from itertools import product
from math import pi, prod, sqrt
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core.domain import Domain
from kernelmap.core.grids import Grid

Basis = Literal["cosines", "sines"]
"""Sines are for fields that vanish on the boundary of their box."""

EDGE = 1e-9


class Modes:
    """R orthonormal functions ψ on a domain's box, in coordinates t in [0, 1]: products of the first `count` waves.

    cosines: 1, √2 cos πt, √2 cos 2πt, ...      sines: √2 sin πt, √2 sin 2πt, ...

    Every component of a field has its own. On a single point there is one function, which is 1.
    """

    def __init__(self, domain: Domain, basis: Basis, count: int) -> None:
        self.domain, self.basis = domain, basis
        first = 0 if basis == "cosines" else 1
        dim = 0 if domain.is_point else len(domain.low)
        self.waves = [tuple(k) for k in product(range(first, first + count), repeat=dim)]

    @property
    def count(self) -> int:
        return len(self.waves) * self.domain.components

    @property
    def frequencies(self) -> Float[Tensor, " R"]:
        """|k| of every function."""
        return torch.tensor([sqrt(sum(k * k for k in wave)) for wave in self.waves] * self.domain.components)

    def block(self, count: int) -> Int[Tensor, " r"]:
        """Which of the functions are products of the first `count` waves alone."""
        first = 0 if self.basis == "cosines" else 1
        low = [all(k < first + count for k in wave) for wave in self.waves] * self.domain.components
        return torch.tensor(low).nonzero()[:, 0]

    def __call__(self, grid: Grid) -> Float[Tensor, "size R"]:
        return torch.block_diag(*[self.of_component(grid)] * self.domain.components)

    def of_component(self, grid: Grid) -> Float[Tensor, "n r"]:
        """The functions of one component."""
        values = torch.ones(len(grid.points), len(self.waves), dtype=torch.float64, device=grid.points.device)
        if not self.domain.is_point:
            wave = torch.sin if self.basis == "sines" else torch.cos
            first, last = self.waves[0][0], self.waves[-1][0]
            k = torch.arange(first, last + 1, dtype=torch.float64, device=grid.points.device)
            norms = torch.where(k > 0, k.new_tensor(sqrt(2)), 1.0)
            values = torch.ones_like(grid.points[:, :1])
            for t in self.places(grid).unbind(dim=1):
                values = (values[:, :, None] * (norms * wave(pi * k * t[:, None]))[:, None, :]).flatten(1)
        return values

    def inside(self, grid: Grid) -> Float[Tensor, " size"]:
        """1 where fields may differ from zero: for sines, not on the boundary."""
        values = torch.ones(len(grid.points), dtype=torch.float64, device=grid.points.device)
        if self.basis == "sines" and not self.domain.is_point:
            t = self.places(grid)
            values = ((t > EDGE) & (t < 1 - EDGE)).all(dim=-1).double()
        return values.repeat(self.domain.components)

    def places(self, grid: Grid) -> Float[Tensor, "n dim"]:
        """Points in the coordinates t."""
        return (self.domain.coordinates(grid) + 1) / 2

    def weights(self, grid: Grid) -> Float[Tensor, " size"]:
        """Quadrature weights in the coordinates t; 1 for a single point."""
        return grid.value_weights / self.volume if not self.domain.is_point else torch.ones_like(grid.value_weights)

    @property
    def volume(self) -> float:
        """Of the box; 1 for a single point."""
        if self.domain.is_point:
            return 1.0
        return prod(high - low for low, high in zip(self.domain.low, self.domain.high, strict=True))
