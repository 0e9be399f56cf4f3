"""What the forms of a function of two points have in common."""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.grids import Grid


class TwoPointFunction(nn.Module):
    """W(x, z) of an output point and a token's place, for each of H heads and each pair of field components.

    h holds the weight of every token in integrals over z. A form with a delta starts with `delta` of it.
    """

    heads: int

    @abstractmethod
    def integrate(
        self, x: Grid, z: Grid, h: Float[Tensor, " N"], values: Float[Tensor, "*#b H N k"]
    ) -> Float[Tensor, "*#b H M k"]:
        """∫ W(x, z) v(z) dz ≈ Σ_z W(x, z) h(z) v(z)."""

    def rows(self, x: Grid, z: Grid, h: Float[Tensor, " N"]) -> Float[Tensor, "H M N"]:
        """W(x, z) h(z) as a matrix: the integrals of unit tokens."""
        return self.integrate(x, z, h, torch.eye(z.size, dtype=h.dtype, device=h.device).expand(self.heads, -1, -1))
