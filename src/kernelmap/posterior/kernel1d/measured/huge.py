"""Single responses far beyond all others, which a fit of all pairs would follow.

A pair that alone sees some part of the kernel can always be explained, by a huge kernel there. So whether such a
response is a mistake is asked of the others: it is one if it is far from what a fit without it predicts, and then all
of the difference is an error.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.posterior.kernel1d.fit import fit
from kernelmap.posterior.kernel1d.measured.outliers import LEAST_ERROR, OUTLIER, student_precision
from kernelmap.posterior.kernel1d.mixture import pool
from kernelmap.posterior.kernel1d.prior import Prior
from kernelmap.posterior.kernel1d.units import size

HUGE = 30.0
"""Times the size of f: the largest response of 150 systems of the world is 14 times as large."""


def precision_without_huge(
    U: Float[Tensor, "N d"], f: Float[Tensor, " d"], y: Grid, prior: Prior
) -> Float[Tensor, " d"] | None:
    """Of all pairs, relative; None where no response is huge, or the others explain it."""
    huge = f.abs() > HUGE * size(f)
    if not huge.any():
        return None
    others = fit(U[:, ~huge], f[~huge], y, prior)
    mean, variance = pool(*others.response_moments(U[:, huge], f.new_zeros(int(huge.sum()), 0)))
    difference = f[huge] / others.units.f - mean
    if float((difference / variance.sqrt()).abs().max()) < OUTLIER:
        return None
    noise = max(float(others.mixture.weights @ others.mixture.white_variance()) ** 0.5, LEAST_ERROR)
    precision = torch.ones_like(f)
    precision[huge] = student_precision(difference / noise)
    return precision
