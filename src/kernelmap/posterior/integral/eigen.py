"""Symmetric eigenproblems whose gradients stay finite where eigenvalues meet."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

CLUSTER = 1e-10
"""Eigenvalues nearer than this, relative to the largest, are taken for equal."""


class _Eigh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = torch.linalg.eigh(A)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        values, vectors = ctx.saved_tensors
        by_values, by_vectors = gradients
        gaps = values[..., None, :] - values[..., :, None]
        near = CLUSTER * values.abs().amax(dim=-1)[..., None, None]
        turns = (vectors.mT @ by_vectors) * torch.where(gaps.abs() > near, 1 / gaps, 0)
        inner = torch.diag_embed(by_values) + (turns + turns.mT) / 2
        return vectors @ inner @ vectors.mT


def eigh(A: Float[Tensor, "*b n n"]) -> tuple[Float[Tensor, "*b n"], Float[Tensor, "*b n n"]]:
    """Eigenvalues, ascending and not below zero, and eigenvectors of a positive semidefinite matrix.

    The gradient leaves out turns among eigenvectors of equal eigenvalues. For what depends on A alone, and not on the
    choice of its eigenvectors, that is exact where A does not change within their space: for S = UᵀCU, where U has
    nothing there.
    """
    values, vectors = _Eigh.apply(A)  # pyright: ignore
    return values.clamp(min=0), vectors
