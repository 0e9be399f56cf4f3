"""The mixer of u-tokens: a function of position, pointwise and spectral, free of the grid."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.grids import Grid
from kernelmap.maps.nao.set_nao.modes import Modes


class Mixer(nn.Module):
    """C v(y) = c(y) v(y) + Σ_ij ψ_i(y) M_ij ∫ ψ_j v, one for each of H heads; started at the identity.

    log c is a sum of a few cosines.
    """

    def __init__(self, modes: Modes, pointwise: Modes, heads: int) -> None:
        super().__init__()
        self.modes, self.pointwise = modes, pointwise
        self.log_c = nn.Parameter(torch.zeros(heads, pointwise.count))
        self.M = nn.Parameter(torch.zeros(heads, modes.count, modes.count))
        if heads > 1:
            # Heads that start alike stay alike.
            nn.init.normal_(self.M, std=0.1 / modes.count)

    def on(self, y: Grid) -> "GridMixer":
        psi, h = self.modes(y).to(self.M), self.modes.weights(y).to(self.M)
        c = (self.log_c @ self.pointwise(y).to(self.M).mT).exp()
        return GridMixer(c, self.M, psi, h)

    def deviation(self) -> Tensor:
        """Squared distance from where it started."""
        return self.M.square().sum() + self.log_c.square().sum()


@dataclass(frozen=True)
class GridMixer:
    """C on a grid with quadrature weights h: C = diag(c) + Ψ M Ψᵀ diag(h) for every head."""

    c: Float[Tensor, "H N"]
    M: Float[Tensor, "H R R"]
    psi: Float[Tensor, "N R"]
    h: Float[Tensor, " N"]

    def apply(self, U: Float[Tensor, "*b N n"]) -> Float[Tensor, "*b H N n"]:
        """C U."""
        spectral = self.psi @ (self.M @ self._coefficients(U)[..., None, :, :])
        return self.c[..., None] * U[..., None, :, :] + spectral

    def adjoint(self, V: Float[Tensor, "*b H N n"]) -> Float[Tensor, "*b N n"]:
        """C* V = diag(h)⁻¹ Cᵀ diag(h) V, summed over heads."""
        spectral = self.psi @ (self.M.mT @ self._coefficients(V)).sum(dim=-3)
        return (self.c[..., None] * V).sum(dim=-3) + spectral

    def _coefficients(self, v: Float[Tensor, "*b N n"]) -> Float[Tensor, "*b R n"]:
        return self.psi.mT @ (self.h[:, None] * v)
