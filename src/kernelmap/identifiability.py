"""What the pairs can determine of a kernel, and what they cannot."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from kernelmap.context import Context
from kernelmap.maps import KernelPosterior
from kernelmap.metrics import exploration_measure

DARK = 1e-2
"""Where ρ is below this share of its largest value, the pairs hardly look at the kernel."""


@dataclass(frozen=True)
class Identifiability:
    """rho: where the pairs look at the kernel (a density on the grid y).

    spectrum: eigenvalues of G-bar, the data's normal operator in L²(ρ), largest first.
    effective_rank: (Σ λ)² / Σ λ², how many directions of K the data weigh alike.
    determined: how many directions of one row of the kernel stand out of the noise.
    data_share: 1 - posterior variance / prior variance at every point: 1 is known from data, 0 is prior alone.
    """

    rho: Float[Tensor, " N"]
    spectrum: Float[Tensor, " R"]
    effective_rank: float
    determined: int
    data_share: Float[Tensor, "M N"]

    @property
    def dark(self) -> Bool[Tensor, " N"]:
        """True where ρ is almost zero."""
        return self.rho < DARK * self.rho.max()


def identifiability_of(context: Context, posterior: KernelPosterior) -> Identifiability:
    """The diagnosis of one system's pairs."""
    rho, spectrum = normal_spectrum(context)
    rank = float(spectrum.sum() ** 2 / spectrum.square().sum())
    return Identifiability(rho, spectrum, rank, posterior.determined, posterior.data_share)


def normal_spectrum(context: Context) -> tuple[Float[Tensor, " N"], Float[Tensor, " R"]]:
    """ρ, and the eigenvalues of G-bar(y, z) = Σ_j g_j(y) g_j(z) / (d ρ(y)) in L²(ρ), from the d x d Gram matrix."""
    rho = exploration_measure(context.U.mT, context.y)
    weights = context.y.value_weights.to(rho)
    scaled = context.U * torch.where(rho > 0, weights / rho, torch.zeros_like(rho)).sqrt()[:, None]
    gram = scaled.mT @ scaled / context.d if context.d <= context.y.size else scaled @ scaled.mT / context.d
    return rho, torch.linalg.eigvalsh(gram).flip(0).clamp(min=0)
