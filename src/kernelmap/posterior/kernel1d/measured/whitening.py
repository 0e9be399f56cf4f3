"""From pairs with correlated errors and nuisance columns to pairs with white errors and none.

f = A z + Z β + e ,  e ~ N(0, κ C) ,  C = L Lᵀ ,  L⁻¹ Z = [Q₁ Q₂] [R; 0]
T = Q₂ᵀ L⁻¹ :   T f = T A z + e' ,  e' ~ N(0, κ)
β | z, f ~ N(G (f - A z), κ S) ,  G = R⁻¹ Q₁ᵀ L⁻¹ ,  S = R⁻¹ R⁻ᵀ             under a flat prior of β
log p(f) = log p(T f) - log |L| - log |R| - q log s - ½ q log 2π              under N(0, s²), s wide
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

WIDE = 10.0
"""s, in units of the size of f without its mean: more than any offset or trend that is not a level of its own."""


class Whitening(NamedTuple):
    """T, G, S of the formulas above; log_volume: -log |L| - log |R|; correlated: whether C is more than a diagonal."""

    T: Float[Tensor, "n d"]
    G: Float[Tensor, "q d"]
    S: Float[Tensor, "q q"]
    log_volume: float
    correlated: bool

    @classmethod
    def of(cls, C: Float[Tensor, "d d"], Z: Float[Tensor, "d q"]) -> "Whitening":
        L = torch.linalg.cholesky(C)
        inverse = torch.linalg.solve_triangular(L, torch.eye(len(C)).to(C), upper=False)
        q = Z.shape[1]
        Q, R = torch.linalg.qr(inverse @ Z, mode="complete")
        R = R[:q]
        R_inverse = torch.linalg.solve_triangular(R, torch.eye(q).to(C), upper=True)
        log_volume = -float(L.diagonal().log().sum()) - float(R.diagonal().abs().log().sum())
        G, S = R_inverse @ Q[:, :q].mT @ inverse, R_inverse @ R_inverse.mT
        return cls(Q[:, q:].mT @ inverse, G, S, log_volume, bool((C - C.diagonal().diag()).any()))

    def log_evidence(self, of_whitened: float, unit: float, size: float) -> float:
        """log p(f), from that of T f in its unit; `size`: of f."""
        n, q = len(self.T), len(self.G)
        return of_whitened - n * math.log(unit) + self.log_volume - q * math.log(WIDE * size * math.sqrt(2 * math.pi))
