"""What is not linear in the responses of a medium, to second order in the load.

To third order in H = ∇u, with ε its symmetric part, the energy of an isotropic medium in the plane is the elastic one,
of second order, and

    Σ_p c_p ∫ α₁ tr ε H:H + α₂ (tr ε)³ + α₃ tr ε ε:ε

(all other cubic invariants are sums of these). So the response to a load b is, with G = A(c)⁻¹ and v = G b,

    u = v - Σ_k α_k G q_k(v) + O(b³) ,      q_k: the forces of the k-th term, quadratic in v

for three numbers α, which the pairs determine. (One of them, α₁ = (λ + μ) / 2, follows from the elastic energy, because
rotations cost nothing; it is found as the others are, and takes up some of what is of third order.)
"""

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.posterior.elastic.medium import Medium


def quadratic_forces(
    medium: Medium, c: Float[Tensor, " cells"], v: Float[Tensor, "free n"]
) -> Float[Tensor, "3 free n"]:
    """q_k(v): derivatives of the three energies, integrated as the medium's own is."""
    points, _, nodes = medium.slopes.shape
    values = torch.cat([v, torch.zeros_like(v[:1])])[medium.places].reshape(2, nodes, -1)
    slopes = medium.slopes.reshape(-1, nodes)
    H = (slopes @ values).reshape(2, points, 2, -1).transpose(1, 2)
    strain = (H + H.transpose(0, 1)) / 2
    trace = H[0, 0] + H[1, 1]
    stresses = (
        _with_pressure(2 * trace * H, H.square().sum(dim=(0, 1))),
        _with_pressure(torch.zeros_like(H), 3 * trace.square()),
        _with_pressure(2 * trace * strain, strain.square().sum(dim=(0, 1))),
    )
    weight = (c * medium.area / points)[:, None]
    return torch.stack([medium.assemble(weight, slopes.mT @ _by_component(P)) for P in stresses])


def second_order(
    medium: Medium, c: Float[Tensor, " cells"], G: Float[Tensor, "free free"], v: Float[Tensor, "free n"]
) -> Float[Tensor, "3 free n"]:
    """-G q_k(v): what the three terms add to the response v."""
    return -G @ quadratic_forces(medium, c, v)


def coefficients(
    terms: Float[Tensor, "3 free d"], rest: Float[Tensor, "free d"], w: Float[Tensor, " d"]
) -> tuple[Float[Tensor, " 3"], Float[Tensor, "3 3"]]:
    """α of Σ_j w_j |rest_j - Σ_k α_k terms_kj|² least, and their covariance if 1/w_j are the variances."""
    A, y = ((part * w.sqrt()).flatten(-2) for part in (terms, rest))
    scale = A.norm(dim=-1)
    A = A / scale[:, None]
    covariance = torch.linalg.pinv(A @ A.mT, hermitian=True)
    return covariance @ (A @ y) / scale, covariance / (scale[:, None] * scale)


def _with_pressure(P: Float[Tensor, "2 2 *p"], p: Float[Tensor, "*p"]) -> Float[Tensor, "2 2 *p"]:
    """P + p I."""
    P[0, 0] += p
    P[1, 1] += p
    return P


def _by_component(P: Float[Tensor, "2 2 q *p"]) -> Float[Tensor, "2 qj *p"]:
    """Point and direction together, as the slopes are."""
    return P.transpose(1, 2).flatten(1, 2)
