"""The pairs of one system as the evidence sees them, and what is assumed of a band of x."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.posterior.integral.generic.bands import Bands
from kernelmap.posterior.integral.generic.matern import Matern


class Hypothesis(NamedTuple):
    """The covariance in y, and the size of h relative to the prior's responses."""

    matern: Matern
    tau: float


@dataclass(frozen=True)
class Pairs:
    """A = w U R and G = Vᵀ F R with orthonormal columns R (d, r) that span all that u can tell: ones = 1ᵀ R.

    rest: sums of squares of Vᵀ F outside of R, where there is only noise, and how many values of a row they are of.
    """

    A: Float[Tensor, "N r"]
    ones: Float[Tensor, " r"]
    G: Float[Tensor, "M r"]
    y: Grid
    bands: Bands
    rest: Float[Tensor, " bands"]
    rest_count: int = 0

    @classmethod
    def of(cls, A: Float[Tensor, "N d"], F: Float[Tensor, "M d"], y: Grid, bands: Bands) -> "Pairs":
        """A function of N values and h have N + 1 directions: from more pairs than that, these directions are made."""
        G, ones = bands.V.mT @ F, torch.ones_like(A[0])
        if A.shape[1] <= A.shape[0] + 1:
            return cls(A, ones, G, y, bands, A.new_zeros(len(bands.members)))
        R = torch.linalg.qr(torch.cat([A, ones[None]]).mT)[0]
        outside = (G - (G @ R) @ R.mT).square().sum(dim=-1)
        return cls(A @ R, ones @ R, G @ R, y, bands, bands.sums @ outside, len(ones) - R.shape[1])

    @property
    def rows(self) -> Float[Tensor, " bands"]:
        """Functions of x in every band."""
        return self.bands.sums.sum(dim=-1)

    def gram(self, matern: Matern) -> tuple[Float[Tensor, "r r"], float]:
        """S / t, and t, the mean response to a pair's input."""
        S = self.A.mT @ matern.times(self.y, self.A)
        t = float(S.diagonal().sum()) / (len(self.ones) + self.rest_count) or 1.0
        return S / t, t

    def decomposed(self, S: Float[Tensor, "r r"], tau: float) -> tuple[Float[Tensor, " r"], Float[Tensor, "r r"]]:
        """S + τ² 1 1ᵀ = P D Pᵀ."""
        D, P = torch.linalg.eigh(S + tau**2 * self.ones[:, None] * self.ones)
        return D.clamp(min=0), P

    def power(self, P: Float[Tensor, "r r"]) -> Float[Tensor, "bands r"]:
        """Σ_i (G P)_ij² of every band."""
        return self.bands.sums @ (self.G @ P).square()
