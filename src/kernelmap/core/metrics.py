"""Errors of an estimated kernel: of the operator it gives, and of the kernel itself."""

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid


def operator_error(
    predicted: Float[Tensor, "*#b M d"], measured: Float[Tensor, "*#b M d"], x: Grid
) -> Float[Tensor, "*#b"]:
    """||K_hat u - f|| / ||f||, averaged over pairs; the norm is over x.

    With a single output point (M = 1) the pairs *are* the locations x, and the norm is over them.
    """
    squares = [squared_norm(values, x) for values in (predicted - measured, measured)]
    if x.is_point:
        return (squares[0].sum(dim=-1) / squares[1].sum(dim=-1)).sqrt()
    return (squares[0] / squares[1]).sqrt().mean(dim=-1)


def squared_norm(f: Float[Tensor, "*#b M d"], x: Grid) -> Float[Tensor, "*#b d"]:
    """∫ f² over x, for every pair."""
    return (x.value_weights.to(f)[:, None] * f.square()).sum(dim=-2)


def exploration_measure(u: Float[Tensor, "*#b P N"], y: Grid) -> Float[Tensor, "*#b N"]:
    """ρ(y) ∝ Σ_j |g[u_j](y)| with ∫ρ = 1: where the pairs look at the kernel."""
    rho = u.abs().sum(dim=-2)
    return rho / (rho * y.value_weights.to(rho)).sum(dim=-1, keepdim=True)


def kernel_error(
    estimate: Float[Tensor, "*#b M N"], truth: Float[Tensor, "*#b M N"], rho: Float[Tensor, "*#b N"], y: Grid
) -> Float[Tensor, "*#b"]:
    """||K_hat - K|| / ||K|| in L²(ρ)."""
    weights = (rho * y.value_weights.to(rho))[..., None, :]
    squares = [(weights * values.square()).sum(dim=(-2, -1)) for values in (estimate - truth, truth)]
    return (squares[0] / squares[1]).sqrt()


def coverage(
    estimate: Float[Tensor, "*#b M N"],
    std: Float[Tensor, "*#b M N"],
    truth: Float[Tensor, "*#b M N"],
    rho: Float[Tensor, "*#b N"],
    y: Grid,
) -> Float[Tensor, "*#b"]:
    """Fraction of the rho-mass on which the truth lies within ± 1.96 std of the estimate."""
    weights = (rho * y.value_weights.to(rho))[..., None, :]
    inside = (estimate - truth).abs() <= 1.96 * std
    return (weights * inside).sum(dim=(-2, -1)) / (weights.sum(dim=(-2, -1)) * truth.shape[-2])


def relative_difference(a: Tensor, b: Tensor) -> float:
    """||a - b|| / ||b|| in the Frobenius norm."""
    return (torch.linalg.vector_norm(a - b) / torch.linalg.vector_norm(b)).item()
