"""Noise on u: its effect on f, K * noise through the pilot kernel, as a part of the errors' covariance.

A pair is a sum over the samples of u around its place, f_j = Σ_m h_m u(x_j + m step), with h = cᵀ diag(w) K and c the
tokens of a single sample. Errors of u with the autocovariance R make errors of f that go together where pairs share
samples, or samples whose errors go together:

    Cov(e_j, e_l) = A((x_j - x_l) / step) ,   A(k) = Σ_mn h_m h_n R(k + m - n)
"""

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.places import Places
from kernelmap.operators import OPERATORS

FRACTIONS = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999)
"""Parts of the errors' variance that come from noise on u, tried by evidence."""

ROUNDS = 2
"""Of the covariance through the kernel that was found, and the fit with it."""


def covariance_through(K: Float[Tensor, " nN"], context: Context, places: Places) -> Float[Tensor, "d d"]:
    """Of the errors of f that errors of u make through the kernel K, of pairs at these places."""
    assert context.u_errors is not None
    if context.operator not in OPERATORS:
        raise InputError(f"errors of u are known of for the operators {', '.join(OPERATORS)}, not {context.operator}.")
    one = context.y.with_components(1)
    operator = OPERATORS[context.operator].on(one)
    steps = places.values[:, -1].to(K) / operator.step
    distance = (steps[:, None] - steps).abs()
    together = torch.ones_like(distance)
    if places.values.shape[1] > 1:
        run = places.values[:, 0].to(K.device)
        together = (run[:, None] == run).to(K)
    found = torch.zeros_like(distance)
    for kernel, R in zip(K.split(one.size), context.u_errors.to(K), strict=True):
        found += together * interpolated(autocovariance(sample_response(kernel, one, context.operator), R), distance)
    return found


def sample_response(K: Float[Tensor, " N"], y: Grid, operator: str) -> Float[Tensor, " L"]:
    """h: the response of a pair to one unit of u at each sample around it."""
    own = OPERATORS[operator].on(y)
    unit = torch.eye(sum(own.reach) + 1, dtype=K.dtype, device=K.device)
    return own.tokens(unit) @ (y.weights * K)


def autocovariance(h: Float[Tensor, " L"], R: Float[Tensor, " r"]) -> Float[Tensor, " k"]:
    """A(k) for k = 0, 1, .., up to where it vanishes. R may be cut short: its spectrum must not be negative."""
    n = 2 * (len(h) + len(R))
    both = torch.cat([R, R.new_zeros(n - 2 * len(R) + 1), R[1:].flip(0)])
    A = torch.fft.irfft(torch.fft.rfft(h, n).abs().square() * torch.fft.rfft(both).real.clamp(min=0), n)
    return A[: len(h) + len(R)]


def interpolated(A: Float[Tensor, " k"], at: Float[Tensor, "d d"]) -> Float[Tensor, "d d"]:
    """A, linear between whole steps and zero beyond the last."""
    A = torch.cat([A, A.new_zeros(2)])
    low = at.floor().clamp(max=len(A) - 2).long()
    return torch.lerp(A[low], A[low + 1], (at - low).clamp(max=1))
