"""What to measure next: the candidates whose responses would narrow the band most."""

from dataclasses import dataclass
from math import log, prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.places import Places
from kernelmap.core.posterior import KernelEstimate, KernelPosterior

SAMPLES = 500
"""Kernels of the posterior, whose covariance is that of the mixture."""


@dataclass(frozen=True)
class Suggestion:
    """A candidate by its number, and its name where its place is known.

    band: the mean band of the kernel, ± 1.96 std, expected when it and those before it have been measured.
    information: expected information gain about the kernel's response there, in nats.
    """

    candidate: int
    name: str
    band: float
    information: float


@dataclass(frozen=True)
class Suggestions:
    """In the order in which to measure; `band` is the mean band now."""

    band: float
    suggestions: tuple[Suggestion, ...]

    def to_json(self) -> dict[str, Any]:
        return {"band": self.band, "suggestions": [vars(suggestion) for suggestion in self.suggestions]}


def suggest(
    posterior: KernelEstimate, candidates: Float[Tensor, "N n"], count: int = 3, places: Places | None = None
) -> Suggestions:
    """Greedy: each narrows the mean band most, given that those before it were measured.

    With responses r = K diag(w) U of kernels K drawn from the posterior and errors of variance σ², measuring r_c takes
    Cov(K, r_c)² / (Var r_c + σ²) from the variance of K, and gives ½ log(1 + Var r_c / σ²) of information.
    """
    _check(posterior, candidates, count)
    assert isinstance(posterior, KernelPosterior)
    y, F = posterior.context.y, posterior.context.F
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        K = posterior.sample(SAMPLES, generator)[:, 0]
        K = (K - K.mean(dim=0)) / (SAMPLES - 1) ** 0.5
        weights = y.value_weights.to(K)
        r = K @ (weights[:, None] * candidates.to(K))
        F = F - posterior.beside_kernel(F.shape[-1], posterior.context.places)
        noise = float(posterior.relative_residual.mean() * F.square().mean().sqrt()) ** 2
        fraction = weights / weights.sum()
        chosen: list[Suggestion] = []
        for _ in range(min(count, candidates.shape[1])):
            variance = r.square().sum(dim=0)
            gain = (K.mT @ r).square() / (variance + noise).clamp(min=torch.finfo(K.dtype).tiny)
            bands = 1.96 * fraction @ (K.square().sum(dim=0)[:, None] - gain).clamp(min=0).sqrt()
            bands[[suggestion.candidate for suggestion in chosen]] = torch.inf
            best = int(bands.argmin())
            name = f"candidate {best}" if places is None else places.name(best)
            v = float(variance[best])
            information = 0.5 * log(1 + v / noise) if noise > 0 else float("inf")
            chosen.append(Suggestion(best, name, float(bands[best]), information))
            K, r = (part - _root(v, noise) * r[:, [best]] * (r[:, best] @ part) for part in (K, r))
        now = 1.96 * float(fraction.to(posterior.std) @ posterior.std[0])
    return Suggestions(now, tuple(chosen))


def _root(variance: float, noise: float) -> float:
    """β / v of the square root of a conditioned covariance, X - β r rᵀX / v: (2β - β²) = v / (v + σ²)."""
    if not variance > 0:
        return 0.0
    return (1 - (noise / (variance + noise)) ** 0.5) / variance


def _check(posterior: KernelEstimate, candidates: Tensor, count: int) -> None:
    if not isinstance(posterior, KernelPosterior) or posterior.context.x.size != 1 or posterior.context.batch_shape:
        raise InputError("measurements are suggested for one kernel with one output and an error bar.")
    N = posterior.context.y.size
    if candidates.ndim != 2 or candidates.shape[0] != N or not candidates.shape[1] or not candidates.isfinite().all():
        raise InputError(
            f"candidates must be finite tokens of shape ({N}, n), one column for each, got {tuple(candidates.shape)}."
        )
    if count < 1:
        raise InputError(f"suggest one measurement or more, got count = {count}.")
    if not prod(candidates.shape):
        raise InputError("there are no candidates.")
