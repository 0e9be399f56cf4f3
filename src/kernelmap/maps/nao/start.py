"""A start of NAO's attention at the inverse that it has to become.

With W_f = 1 and W_u = 0, K_hat diag(w) U = F P Uᵀ U, where P is the d x d matrix of the attention: it fits a context as
soon as P is an inverse of Uᵀ U. Contexts differ, so one matrix W_Q W_Kᵀ is an inverse of their mean only; the layers
before the last bring the tokens of each closer to it, by a step of the Newton-Schulz iteration.
"""

from collections.abc import Iterable
from math import sqrt
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.maps.nao.attention import sum_blocks
from kernelmap.maps.nao.functions import NetworkFunction
from kernelmap.maps.nao.norms import ContinuousNormaliser

if TYPE_CHECKING:
    from kernelmap.maps.nao.model import NAO

F_SIZE = 0.1
"""Standard deviation of f-tokens where that of u-tokens is 1: in the iteration Fᵀ F is an error."""

LARGEST = 2.4
"""Largest eigenvalue of C Xᵀ h X, to which s in C shrinks it: from 4 on, the iteration does not converge."""


@torch.no_grad()
def start_at_inverse(model: "NAO", contexts: Iterable[Context]) -> None:
    """W_Q W_Kᵀ / √dk = -(9/4)^(l-1) C / 3 in layer l, and (9/4)^(L-1) C in the last one, L.

    C = s Σ_k v_k v_kᵀ / λ_k, of rank dk, is the inverse of the mean Xᵀ h X of all contexts, X = [U; F], times an s of
    at most 1. A layer is then X <- X (1 - C Xᵀ h X / 3), with functions w = 1 and b = 0. It takes an eigenvalue λ of
    C Xᵀ h X to (9/4) λ (1 - λ/3)²: 1 stays, and what is near it comes closer. W_f is a delta over F_SIZE, and W_u zero.
    """
    grams = torch.cat([gram_matrices(model, context) for context in contexts])
    eigenvalues, vectors = torch.linalg.eigh(grams.mean(dim=0))
    rank = min(model.options.heads * model.options.dk, len(eigenvalues))
    root = vectors[:, -rank:] / eigenvalues[-rank:].clamp(min=1e-12 * float(eigenvalues[-1])).sqrt()
    root = root * sqrt(min(1.0, LARGEST / float(torch.linalg.eigvalsh(root.mT @ grams @ root).amax())))
    side = (root * model.options.dk**0.25).mT.to(model.u_std)
    for number, projection in enumerate(model.linear_layers):
        last = number == model.options.layers - 1
        size = sqrt((9 / 4) ** number * (1 if last else 1 / 3))
        q, k = projection.weight.chunk(2)
        k.zero_()
        q[:rank], k[:rank] = (size if last else -size) * side, size * side
        projection.bias.zero_()
    for norm in model.norms:
        if isinstance(norm, ContinuousNormaliser):
            norm.set_identity()
    assert model.w_f is not None
    for function, delta in ((model.w_u, 0.0), (model.w_f, 1 / F_SIZE)):
        if isinstance(function, NetworkFunction):
            function.set_constant(delta)
        elif function is model.w_f:
            function.get_parameter("pointwise.c").mul_(delta)
        else:
            for parameter in function.parameters():
                parameter.zero_()


def gram_matrices(model: "NAO", context: Context) -> Float[Tensor, "b d d"]:
    """Xᵀ h X of every context of a batch."""
    h = model.geometry(context)[1]
    tokens = [x.double() for x in model.tokens(context, h).standardised]
    total = sum_blocks([(x.mT * part.double()) @ x for x, part in zip(tokens, h, strict=True)])
    return total.reshape(-1, *total.shape[-2:])
