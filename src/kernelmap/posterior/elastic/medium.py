"""An elastic medium on a regular mesh of a plane: bilinear cells in plane strain, each with a stiffness of its own."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.mesh import Lattice, quadrilateral


@dataclass(frozen=True)
class Medium:
    """Equilibrium A(c) u = M f of the free values of u; the others are constrained to zero.

    A(c) = Σ_p c_p Σ_r φ_pr φ_prᵀ, with the five modes φ_r of strain of a cell of unit stiffness. The free values are
    those at `free` among all 2 n values, component by component; `places` are those of a cell's eight values among
    the free ones, or one past the last where a value is constrained. `slopes` are those of the functions of a cell's
    four nodes, in both directions, at its four points of quadrature.
    """

    cells: tuple[int, int]
    free: Int[Tensor, " free"]
    mass: Float[Tensor, "free N"]
    places: Int[Tensor, "8 cells"]
    modes: Float[Tensor, "5 8"]
    slopes: Float[Tensor, "4 2 4"]
    steps: tuple[float, float]
    poisson: float

    @classmethod
    def of(cls, grid: Grid, free: Int[Tensor, " free"], poisson: float) -> "Medium":
        """On the mesh that the points of a grid form."""
        scalar = grid.with_components(1)
        lattice = Lattice.of(scalar, scalar)
        shape = (lattice.rows, lattice.columns)
        extent = grid.points.amax(dim=0) - grid.points.amin(dim=0)
        steps = (extent / (extent.new_tensor(shape) - 1)).tolist()
        device = grid.points.device
        number = torch.arange(len(grid.points), device=device).reshape(shape)
        corners = [part.flatten() for rows in (number[:-1], number[1:]) for part in (rows[:, :-1], rows[:, 1:])]
        element = torch.from_numpy(quadrilateral(1).mass).to(device) * steps[0] * steps[1]
        nodes = torch.stack(corners)
        mass = grid.points.new_zeros(2 * (len(grid.points),)).index_put_(
            (nodes[:, None], nodes[None]), element[..., None].expand(-1, -1, nodes.shape[1]), accumulate=True
        )
        place = torch.full((2 * len(grid.points),), len(free), device=device)
        place = place.index_put((free,), torch.arange(len(free), device=device))
        places = torch.stack([place[corner + start] for start in (0, len(grid.points)) for corner in corners])
        cells = (shape[0] - 1, shape[1] - 1)
        mass, modes = torch.block_diag(mass, mass)[free], cell_modes(steps, poisson).to(device)
        return cls(cells, free, mass, places, modes, cell_slopes(steps).to(device), (steps[0], steps[1]), poisson)

    @property
    def count(self) -> int:
        return self.cells[0] * self.cells[1]

    @property
    def area(self) -> float:
        """Of a cell."""
        return self.steps[0] * self.steps[1]

    @property
    def longest(self) -> float:
        """The longer side."""
        return max(n * step for n, step in zip(self.cells, self.steps, strict=True))

    @property
    def centres(self) -> Float[Tensor, "cells 2"]:
        """Of the cells, in units of the longer side."""
        places = torch.cartesian_prod(
            *[torch.arange(n, dtype=torch.float64, device=self.free.device) + 0.5 for n in self.cells]
        )
        return places * places.new_tensor(self.steps) / self.longest

    def stiffness(self, c: Float[Tensor, " cells"]) -> Float[Tensor, "free free"]:
        """A(c)."""
        element, size = self.modes.mT @ self.modes, len(self.free) + 1
        places = self.places[:, None] * size + self.places
        A = c.new_zeros(size * size).index_add_(0, places.flatten(), (element[..., None] * c).flatten())
        return A.reshape(size, size)[:-1, :-1]

    def assemble(
        self, weight: Float[Tensor, "cells 1"], forces: Float[Tensor, "2 4 cells_n"]
    ) -> Float[Tensor, "free n"]:
        """The sum of forces on the nodes of all cells, each times its weight."""
        weighted = (weight * forces.reshape(8, self.count, -1)).flatten(0, 1)
        total = weighted.new_zeros(len(self.free) + 1, weighted.shape[-1])
        return total.index_add_(0, self.places.flatten(), weighted)[:-1]

    def forces_of_poisson(self, c: Float[Tensor, " cells"], u: Float[Tensor, "free n"]) -> Float[Tensor, "free n"]:
        """∂A(c)/∂ν u, from the slopes of μ and λ."""
        poisson = self.poisson
        change = -1 / (2 * (1 + poisson) ** 2), (1 + 2 * poisson**2) / ((1 + poisson) * (1 - 2 * poisson)) ** 2
        element = cell_matrix(list(self.steps), *change).to(u)
        values = torch.cat([u, torch.zeros_like(u[:1])])[self.places]
        return self.assemble(c[:, None], (element @ values.flatten(1)).reshape(2, 4, -1))

    def strains(self, u: Float[Tensor, "free n"]) -> Float[Tensor, "modes n"]:
        """φ_prᵀ u: the strains of all cells, mode by mode."""
        values = torch.cat([u, torch.zeros_like(u[:1])])[self.places]
        return (self.modes.to(u) @ values.flatten(1)).reshape(-1, u.shape[-1])


def cell_modes(steps: list[float], poisson: float) -> Float[Tensor, "5 8"]:
    """φ_r with Σ_r φ_r φ_rᵀ = ∫ μ (∇u + ∇uᵀ):∇v + λ div u div v over one cell of modulus 1.

    A cell's values: component by component, nodes at (0, 0), (0, 1), (1, 0), (1, 1).
    """
    if not -1 < poisson < 0.5:
        raise InputError(f"Poisson's ratio must lie between -1 and 0.5, got {poisson}.")
    element = cell_matrix(steps, *lame(poisson))
    values, vectors = torch.linalg.eigh(element)
    return (vectors[:, 3:] * values[3:].sqrt()).mT


def cell_matrix(steps: list[float], mu: float, lam: float) -> Float[Tensor, "8 8"]:
    """∫ μ (∇u + ∇uᵀ):∇v + λ div u div v over one cell."""
    element = torch.zeros(8, 8, dtype=torch.float64, device="cpu")
    for dx, dy in cell_slopes(steps):
        zero = torch.zeros_like(dx)
        xx, yy, xy = torch.cat([dx, zero]), torch.cat([zero, dy]), torch.cat([dy, dx])
        parts = (2 * mu * (xx.outer(xx) + yy.outer(yy)), mu * xy.outer(xy), lam * (xx + yy).outer(xx + yy))
        element += steps[0] * steps[1] / 4 * sum(parts)
    return element


def lame(poisson: float) -> tuple[float, float]:
    """μ and λ of modulus 1."""
    return 1 / (2 * (1 + poisson)), poisson / ((1 + poisson) * (1 - 2 * poisson))


def cell_slopes(steps: list[float]) -> Float[Tensor, "4 2 4"]:
    """Of the four bilinear functions of a cell, at the points of Gauss's rule."""
    slopes = torch.from_numpy(np.ascontiguousarray(quadrilateral(1).gradients.transpose(2, 0, 1)))
    return slopes / torch.tensor(steps, dtype=torch.float64, device="cpu")[:, None]
