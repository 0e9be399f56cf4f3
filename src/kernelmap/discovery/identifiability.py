"""What the pairs can determine of a kernel, and what they cannot."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.metrics import exploration_measure
from kernelmap.core.posterior import KernelEstimate

SPECTRUM_PAIRS = 2000
"""Of which ρ and the spectrum of G-bar, averages over pairs, are taken."""

UNOBSERVED = 1e-2
"""Where ρ is below this share of its largest value, the pairs hardly look at the kernel."""


@dataclass(frozen=True)
class Identifiability:
    """rho: where the pairs look at the kernel (a density on the grid y).

    spectrum: eigenvalues of G-bar, the data's normal operator in L²(ρ), largest first.
    effective_rank: (Σ λ)² / Σ λ², how many directions of K the data weigh alike.
    informed_directions: how many directions of one row of the kernel stand out of the noise; None for a map that does
        not know its error.
    variance_reduction: 1 - posterior variance / prior variance at every point: 1 is known from data, 0 is prior alone;
        NaN for a map that does not know its error.
    expected_error: of the kernel in L²(ρ), relative, by its own posterior: √E||K - K_hat||² / ||K_hat||; NaN likewise.
    unobserved: where rho is almost zero, for each input by itself, as inputs have units of their own.
    """

    rho: Float[Tensor, " N"]
    spectrum: Float[Tensor, " R"]
    effective_rank: float
    informed_directions: int | None
    variance_reduction: Float[Tensor, "M N"]
    expected_error: float
    unobserved: Bool[Tensor, " N"]


def identifiability_of(context: Context, posterior: KernelEstimate) -> Identifiability:
    """Of one system's pairs."""
    rho, spectrum = normal_spectrum(context)
    rank = float(spectrum.sum() ** 2 / spectrum.square().sum())
    by_input = rho.reshape(context.y.components, -1)
    return Identifiability(
        rho,
        spectrum,
        rank,
        posterior.informed_directions,
        posterior.variance_reduction,
        expected_error(posterior, rho),
        (by_input <= UNOBSERVED * by_input.amax(dim=1, keepdim=True)).flatten(),
    )


def expected_error(posterior: KernelEstimate, rho: Float[Tensor, " N"]) -> float:
    """√(∫ρ Var K / ∫ρ E[K]²); infinite for a kernel that is zero on average."""
    mean, std = posterior.mean, posterior.std
    if std.isnan().any():
        return math.nan
    unit = torch.maximum(mean.abs().max(), std.max())
    if not unit > 0:
        return math.inf
    weights = rho * posterior.context.y.value_weights.to(rho)
    variance, power = ((weights * (values / unit).square()).sum() for values in (std, mean))
    return float((variance / power).sqrt())


def normal_spectrum(context: Context) -> tuple[Float[Tensor, " N"], Float[Tensor, " R"]]:
    """ρ, and the eigenvalues of G-bar(y, z) = Σ_j g_j(y) g_j(z) / (d ρ(y)) in L²(ρ), from the d x d Gram matrix."""
    some = context.thinned(SPECTRUM_PAIRS)
    U = some.U / some.U.abs().max()
    rho = exploration_measure(U.mT, context.y)
    weights = context.y.value_weights.to(rho)
    scaled = U * torch.where(rho > 0, weights / rho, torch.zeros_like(rho)).sqrt()[:, None]
    gram = scaled.mT @ scaled / some.d if some.d <= context.y.size else scaled @ scaled.mT / some.d
    return rho, torch.linalg.eigvalsh(gram).flip(0).clamp(min=0)
