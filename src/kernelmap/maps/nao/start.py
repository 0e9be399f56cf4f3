"""A start of NAO's attention at the inverse that it has to become.

With W_f = 1 and W_u = 0, K_hat diag(w) U = F P Uᵀ U, where P is the d x d matrix of the attention: it fits a context as
soon as P is an inverse of Uᵀ U. Contexts differ, so one matrix W_Q W_Kᵀ is an inverse of their mean only; the layers
before the last bring the tokens of each closer to it, by a step of the Newton-Schulz iteration.
"""

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

F_SIZE = 0.1
"""Standard deviation of f-tokens where that of u-tokens is 1: in the iteration Fᵀ F is an error."""

LARGEST = 2.4
"""Largest eigenvalue of C Xᵀ h X, to which s in C shrinks it: 3 is taken to 0, and above 5 the iteration diverges."""


def inverse_projections(
    grams: Float[Tensor, "b d d"], layers: int, width: int, dk: int
) -> list[tuple[Float[Tensor, "r d"], Float[Tensor, "r d"]]]:
    """W_Qᵀ and W_Kᵀ of every layer, of r = min(width, d) rows, from Xᵀ h X of all contexts, X = [U; F]:

        W_Q W_Kᵀ / √dk = -(9/4)^(l-1) C / 3 in layer l,      (9/4)^(L-1) C in the last one, L

    C = s Σ_k v_k v_kᵀ / λ_k, of rank r, is the inverse of the mean Xᵀ h X, times an s of at most 1. A layer is then
    X <- X (1 - C Xᵀ h X / 3), with functions w = 1 and b = 0. It takes an eigenvalue λ of C Xᵀ h X to
    (9/4) λ (1 - λ/3)²: 1 stays, and what is near it comes closer.
    """
    eigenvalues, vectors = torch.linalg.eigh(grams.mean(dim=0))
    rank = min(width, len(eigenvalues))
    root = vectors[:, -rank:] / eigenvalues[-rank:].clamp(min=1e-12 * float(eigenvalues[-1])).sqrt()
    root = root * sqrt(min(1.0, LARGEST / float(torch.linalg.eigvalsh(root.mT @ grams @ root).amax())))
    side = (root * dk**0.25).mT
    sizes = [sqrt((9 / 4) ** layer / 3) for layer in range(layers - 1)]
    last = sqrt((9 / 4) ** (layers - 1)) * side
    return [(-size * side, size * side) for size in sizes] + [(last, last)]


def gram_matrices(tokens: list[Tensor], h: list[Tensor]) -> Float[Tensor, "b d d"]:
    """Xᵀ h X of every context of a batch, from tokens (*b, n, d) and weights h (n) of each block."""
    parts = [(x.double().mT * part.double()) @ x.double() for x, part in zip(tokens, h, strict=True)]
    total = sum(parts[1:], parts[0])
    return total.reshape(-1, *total.shape[-2:])
