"""How a local operator sees f: at the nodes, or averaged over the cells around them.

    A u = M f ,      M = Π_i (1 + γ δ_i²) ,      δ_i² f(x) = f(x + h_i) - 2 f(x) + f(x - h_i)

Data of a scheme with values at nodes have γ = 0. Fields that solve a differential equation of second order, or come
from a much finer mesh, have γ = 1/12, with an error of fourth order in the step (Numerov; Collatz on a plane), and
finite elements of first degree γ = 1/6. δ_i² is left out where a node has no free neighbour on both sides.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kernelmap.core.mesh.lattice import Lattice

GAMMAS = (0.0, 1 / 12, 1 / 6)


@dataclass(frozen=True)
class Averaging:
    """M between the M nodes of f: their neighbours on both sides along each axis, or the nodes themselves."""

    gamma: Float[Tensor, "*b 1 1"]
    neighbours: Int[Tensor, "axes 2 M"]

    @classmethod
    def of(cls, lattice: Lattice, free: Bool[Tensor, " M"], gamma: Float[Tensor, "*b 1 1"]) -> "Averaging":
        M = len(lattice.at)
        number = torch.full((lattice.rows * lattice.columns,), -1, device=free.device)
        number[lattice.at[free]] = torch.arange(M, device=free.device)[free]
        place, exists = lattice.neighbours(1)
        number = torch.where(exists, number[place], -1)
        itself = torch.arange(M, device=free.device)
        # Of the nine steps to neighbours, those along the first and the second axis.
        both = [number[:, list(ends)].T for ends in ((1, 7), (3, 5))]
        return cls(gamma, torch.stack([torch.where(free & (pair >= 0).all(dim=0), pair, itself) for pair in both]))

    def apply(self, f: Float[Tensor, "*#b M d"]) -> Float[Tensor, "*b M d"]:
        """M f."""
        for before, after in self.neighbours:
            f = f + self.gamma * (f[..., before, :] - 2 * f + f[..., after, :])
        return f

    @property
    def matrix(self) -> Float[Tensor, "*b M M"]:
        M = self.neighbours.shape[-1]
        return self.apply(torch.eye(M, dtype=self.gamma.dtype, device=self.gamma.device))

    @property
    def log_det(self) -> Float[Tensor, "*b"]:
        return torch.linalg.slogdet(self.matrix).logabsdet
