"""Tikhonov and DARTR estimates: spectral filters of one singular value decomposition.

The pairs say F = K diag(w) U. In a metric ||K||² = Σ_k D_k K(y_k)² the unknown is c = K D^(1/2), and with the
decomposition Uᵀ diag(w) D^(-1/2) = P S Qᵀ every estimate is K = (F P) φ(S) / S Qᵀ D^(-1/2), with a filter φ:

    Tikhonov   φ = S² / (S² + λ)       penalty λ ||K||²
    DARTR      φ = S⁴ / (S⁴ + λ)       penalty λ times the norm of the space that the data's own Gram kernel spans

DARTR solves A V = B V Λ with A = w U Uᵀ w and B = diag(ρ w); its eigenvalues are Λ = S² in the metric ρ.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.core.metrics import exploration_measure
from kernelmap.estimators.choice import Spectrum, gcv

Metric = Literal["rho", "l2"]

RHO_FLOOR = 1e-8
"""Where ρ is below this fraction of its largest value the pairs say nothing: the metric must not blow up there."""


@dataclass(frozen=True)
class Estimate:
    """An estimated kernel and the regularisation parameter it was made with."""

    kernel: Kernel
    regularisation: float


def tikhonov(context: Context, metric: Metric = "rho") -> Estimate:
    """min ||K diag(w) U - F||² + λ ||K||², the norm in L²(ρ) or in plain L²."""
    return _filtered(context, metric, order=2)


def dartr(context: Context) -> Estimate:
    """Data-adaptive RKHS Tikhonov regularisation: the penalty looks only where the data can."""
    return _filtered(context, "rho", order=4)


def _filtered(context: Context, metric: Metric, order: int) -> Estimate:
    if context.batch_shape:
        raise InputError(f"a classical estimate takes one system, got a batch of shape {tuple(context.batch_shape)}.")
    context = context.to(torch.float64)
    D = metric_weights(context, metric)
    weighted = context.U * (context.y.value_weights.to(D) / D.sqrt())[:, None]
    Q, s, Pt = torch.linalg.svd(weighted, full_matrices=False)
    kept = s > s[0] * max(weighted.shape) * torch.finfo(s.dtype).eps
    Q, s, Pt = Q[:, kept], s[kept], Pt[kept]
    # In units of the largest values: fourth powers of 1e150 are no numbers.
    unit, size = s[0], context.F.abs().max().clamp(min=torch.finfo(s.dtype).tiny)
    F = context.F / size
    data = F @ Pt.mT
    outside = float((F - data @ Pt).square().sum())
    spectrum = Spectrum(s / unit, data, outside, F.numel(), order)
    lam = gcv(spectrum)
    values = (size / unit) * ((data * spectrum.filtered(lam) / spectrum.s) @ Q.mT / D.sqrt())
    return Estimate(Kernel(values, context.y, context.x), float(lam * unit**order))


def metric_weights(context: Context, metric: Metric) -> Float[Tensor, " N"]:
    """D of ||K||² = Σ_k D_k K(y_k)²."""
    weights = context.y.value_weights.to(context.U)
    if metric == "l2":
        return weights
    rho = exploration_measure(context.U.mT, context.y)
    return weights * rho.clamp(min=RHO_FLOOR * rho.max())
