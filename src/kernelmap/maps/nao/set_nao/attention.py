"""The order-free NAO as pure functions of its tokens. Pairs enter through sums over them alone."""

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.maps.nao.set_nao.mixers import GridMixer
from kernelmap.maps.nao.set_nao.newton_schulz import inverse_gram
from kernelmap.maps.nao.set_nao.tokens import Factors


def attend(
    U: Float[Tensor, "*#b N d"], mixer: GridMixer, coefficients: Float[Tensor, "L 3"]
) -> tuple[Float[Tensor, "*#b d d"], Float[Tensor, "*#b N d"]]:
    """q and Z of the kernel R = G q Zᵀ, for which R diag(h) U -> G as layers are added.

    V = C U ,   S = Vᵀ diag(h) V ,   q = q(S / tr S) / tr S -> S⁻¹ ,   Z = C* V ,   Zᵀ diag(h) U = S
    """
    V = mixer.apply(U)
    S = ((mixer.h[:, None] * V).mT @ V).sum(dim=-3)
    trace = S.diagonal(dim1=-2, dim2=-1).sum(dim=-1)[..., None, None]
    trace = torch.where(trace > 0, trace, 1)
    return inverse_gram(S / trace, coefficients) / trace, mixer.adjoint(V)


def one_way(G: Float[Tensor, "*b M d"], q: Float[Tensor, "*#b d d"], Z: Float[Tensor, "*#b N d"]) -> Factors:
    """R = G q Zᵀ."""
    return Factors(G @ q, Z.mT)


def other_way(
    U: Float[Tensor, "*#b N d"],
    G: Float[Tensor, "*b N d"],
    q: Float[Tensor, "*#b d d"],
    Z: Float[Tensor, "*#b N d"],
    h: Float[Tensor, " N"],
) -> Factors:
    """Rᵀ (1 - Π): the kernel R read the other way round, where that does not change the answer to the context.

    Π = diag(h) U q Zᵀ, so that (1 - Π) diag(h) U -> 0. Where the part E of the hidden kernel that the mean lacks is
    symmetric, R = E Π, and R + Rᵀ (1 - Π) = E - (1 - Π)ᵀ E (1 - Π) lacks only what both sides lack.
    """
    past = (G.mT @ (h[:, None] * U)) @ q
    return Factors(Z @ q, G.mT - past @ Z.mT)
