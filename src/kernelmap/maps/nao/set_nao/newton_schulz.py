"""Linear attention layers that treat all pairs alike: the Newton-Schulz iteration, on d x d matrices.

A layer acts on the tokens V and G (their columns are pairs) by attention whose keys and values are the tokens V:

    V <- V (c0 + c1 S + c2 S²) ,  G <- G (c0 + c1 S + c2 S²) ,     S = VᵀV ,  so that V S = (V Vᵀ) V

V stays V_0 times a polynomial in S_0, and G is multiplied by the same one: all layers together need S_0 alone. A
singular value σ of V becomes σ (c0 + c1 σ² + c2 σ⁴); where that tends to 1, V tends to an orthonormal basis.
"""

import torch
from jaxtyping import Float
from torch import Tensor

START = (1.875, 1.25, 1.0)
"""Bernstein coefficients of (c0, c1, c2) = (15, -10, 3) / 8, whose map is flat at its fixed point 1."""


def layer_coefficients(log_bernstein: Float[Tensor, "L 3"]) -> Float[Tensor, "L 3"]:
    """(c0, c1, c2) of layers that are stable: σ -> σ (c0 + c1 σ² + c2 σ⁴) maps (0, 1] into itself.

    Positive Bernstein coefficients make c0 + c1 t + c2 t² positive on [0, 1]; division by the largest value of the map,
    where it exceeds 1, does the rest.
    """
    b0, b1, b2 = log_bernstein.exp().unbind(dim=-1)
    c = torch.stack([b0, 2 * (b1 - b0), b0 - 2 * b1 + b2], dim=-1)
    return c / _largest(c).clamp(min=1)[..., None]


def _largest(c: Float[Tensor, "L 3"]) -> Float[Tensor, " L"]:
    """max of σ (c0 + c1 σ² + c2 σ⁴) on [0, 1]: at σ = 1 or where its slope c0 + 3 c1 t + 5 c2 t² vanishes, t = σ²."""
    c0, c1, c2 = c.detach().unbind(dim=-1)
    root = (9 * c1.square() - 20 * c0 * c2).clamp(min=0).sqrt()
    # The stable form of the two roots: neither subtracts numbers of the same sign.
    sum_ = -0.5 * (3 * c1 + torch.where(c1 < 0, -root, root))
    candidates = torch.stack([sum_ / (5 * c2), c0 / sum_, torch.ones_like(c0)]).nan_to_num(1.0).clamp(0, 1)
    t = candidates
    values = t.sqrt() * (c[:, 0] + c[:, 1] * t + c[:, 2] * t.square())
    return values.amax(dim=0)


def inverse_gram(S: Float[Tensor, "*b d d"], coefficients: Float[Tensor, "L 3"]) -> Float[Tensor, "*b d d"]:
    """q(S) = P(S)², with P the product of all layers' polynomials: G_L V_Lᵀ = G_0 q(S_0) V_0ᵀ, and q(S) -> S⁻¹."""
    identity = torch.eye(S.shape[-1], dtype=S.dtype, device=S.device)
    product = identity.expand_as(S)
    for c0, c1, c2 in coefficients:
        layer = c0 * identity + c1 * S + c2 * (S @ S)
        product, S = product @ layer, layer @ S @ layer
    return product @ product
