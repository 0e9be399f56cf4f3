"""`Lattice`: the regular mesh a grid forms, and the bonds between its nodes that a local kernel is made of.

A local kernel acts on u through the node itself and its bonds to the nodes around it, in steps o of the mesh:

    Σ_k K(x, y_k) w_k u(y_k) = c_0(x) u(x) + Σ_o c_o(x) (u(x) - u(x + o))

Any row K(x, .) that vanishes beyond the reach can be written so. For diffusion c_o > 0 is a conductance and c_0 = 0.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid

EXACT = 1e-6
"""How far a point may lie from its node, in steps of the mesh."""


def steps(reach: int, device: torch.device | None = None) -> Int[Tensor, "R 2"]:
    """All steps (i, j) with |i|, |j| <= reach; the middle one is the node itself."""
    return torch.cartesian_prod(*[torch.arange(-reach, reach + 1, device=device)] * 2)


def step_classes(reach: int) -> Int[Tensor, " R"]:
    """Steps that a rotation or reflection of the mesh turns into each other share a number; 0 is the node itself."""
    near, far = steps(reach).abs().sort(dim=1).values.unbind(dim=1)
    return far * (far + 1) // 2 + near


def at_ends(c: Float[Tensor, "*b R"]) -> Float[Tensor, "*b R"]:
    """What multiplies u(x + o) for every step o, from the strengths c of the bonds."""
    middle = c.shape[-1] // 2
    return torch.cat([-c[..., :middle], c.sum(-1, keepdim=True), -c[..., middle + 1 :]], dim=-1)


@dataclass(frozen=True)
class Lattice:
    """rows x columns nodes, last coordinate fastest, and the places `at` of M of them; a line has one column.

    spacing: the distances between rows and between columns.
    """

    rows: int
    columns: int
    at: Int[Tensor, " M"]
    spacing: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def of(cls, y: Grid, x: Grid) -> "Lattice":
        """The mesh of y; x must be nodes of it."""
        if y.dim not in (1, 2) or y.components != 1 or x.components != 1:
            raise InputError("a local kernel needs fields of one component on the mesh of a line or of a plane.")
        axes = [y.points[:, i].unique() for i in range(y.dim)]
        counts = y.points.new_tensor([len(axis) for axis in axes])
        if counts.min() > 1 and counts.prod() == len(y.points):
            low, high = (torch.stack([axis[end] for axis in axes]) for end in (0, -1))
            spacing = (high - low) / (counts - 1)
            mesh = torch.cartesian_prod(*[torch.arange(len(axis), device=low.device) for axis in axes])
            mesh = mesh.reshape(-1, y.dim).to(low)
            nodes, places = ((points - low) / spacing for points in (y.points, x.points))
            inside = (places > -EXACT).all() and (x.points < high + EXACT * spacing).all()
            if inside and all((a - b).abs().max() < EXACT for a, b in ((nodes, mesh), (places, places.round()))):
                rows, columns = (*map(len, axes), 1)[:2]
                at = (places.round() @ low.new_tensor([columns, 1])[: y.dim]).long()
                return cls(rows, columns, at, (float(spacing[0]), float(spacing[-1])))
        raise InputError(
            "a local kernel needs u on all nodes of a regular mesh, last coordinate fastest, and f on some of them; "
            f"the {len(y.points)} and {len(x.points)} points given are not so. Interpolate them first."
        )

    def stretch(self, reach: int) -> Float[Tensor, " R"]:
        """|o|² / |h o|² of every step o, relative to square cells of the same area; 1 for the node itself.

        Across a line there are no steps: 0.
        """
        step = steps(reach, self.at.device).double()
        if self.columns == 1:
            return (step[:, 1] == 0).double()
        ratio = (self.spacing[1] / self.spacing[0]) ** 0.5
        ratio = 1.0 if abs(ratio - 1) < EXACT else ratio
        lengths = (step / step.new_tensor([ratio, 1 / ratio])).square().sum(dim=1)
        length = step.square().sum(dim=1)
        return torch.where(length > 0, length / lengths, 1.0)

    def neighbours(self, reach: int) -> tuple[Int[Tensor, "M R"], Bool[Tensor, "M R"]]:
        """The node that each step leads to, and whether there is one; without one, the node itself."""
        step = steps(reach, self.at.device)
        i, j = self.at // self.columns, self.at % self.columns
        row, column = i[:, None] + step[:, 0], j[:, None] + step[:, 1]
        exists = (row >= 0) & (row < self.rows) & (column >= 0) & (column < self.columns)
        return torch.where(exists, row * self.columns + column, self.at[:, None]), exists

    def subset(self, nodes: slice) -> "Lattice":
        """The same mesh with some of the places."""
        return replace(self, at=self.at[nodes])

    def around(self, u: Float[Tensor, "*b N d"], reach: int) -> Float[Tensor, "*b M R d"]:
        """u(x + o) for every step o; u(x) where it leads out of the mesh."""
        return u[..., self.neighbours(reach)[0], :]

    def bonds(self, u: Float[Tensor, "*b N d"], reach: int) -> Float[Tensor, "*b M R d"]:
        """u(x) - u(x + o) for every step o, zero where it leads out of the mesh; u(x) for the node itself."""
        place, _ = self.neighbours(reach)
        here = u[..., self.at, None, :]
        differences = here - u[..., place, :]
        middle = place.shape[1] // 2
        return torch.cat([differences[..., :middle, :], here, differences[..., middle + 1 :, :]], dim=-2)

    def rows_of(self, c: Float[Tensor, "*b M R"], reach: int) -> Float[Tensor, "*b M N"]:
        """K(x, y) w(y) from the strengths c of the bonds."""
        return self.scatter(at_ends(c), reach)

    def scatter(self, values: Float[Tensor, "*b M R"], reach: int) -> Float[Tensor, "*b M N"]:
        """Values at the ends of all bonds, as a matrix."""
        place, exists = self.neighbours(reach)
        matrix = values.new_zeros(*values.shape[:-1], self.rows * self.columns)
        return matrix.scatter_add(-1, place.expand_as(values), values * exists)
