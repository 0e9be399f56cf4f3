"""The pointwise posterior map: responses that combine, point by point, the components of the tokens there."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.algebra.linear_gaussian import Regression, regress
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel

NOISE = 1e-4
"""Variance of f's error relative to that of a typical component of the tokens, per pair."""


@dataclass(frozen=True)
class PointwisePosterior:
    """Coefficients c(x) of the components: K(x, (r, y)) w(y) = c_r(x) where y = x, and zero elsewhere."""

    regression: Regression
    d: int
    context: Context

    @property
    def kernel(self) -> Kernel:
        return self._on_grid(self.regression.mean[0])

    @property
    def std(self) -> Float[Tensor, "*b M N"]:
        scale = (self.regression.misfit[0] / self.d)[..., None]
        identity = torch.eye(self.regression.omega.shape[-1], dtype=scale.dtype)
        return self._on_grid((scale * self.regression.variance_of(identity)[0]).sqrt()).values

    def _on_grid(self, c: Float[Tensor, "*b M R"]) -> Kernel:
        """Values that are zero but where both points are the same."""
        y, x = self.context.y, self.context.x
        values = torch.diag_embed(c.mT).transpose(-3, -2).flatten(-2)
        return Kernel(values / y.value_weights.to(values), y, x)


def pointwise(context: Context, spread: Sequence[float]) -> PointwisePosterior:
    """f_j(x) = Σ_r c_r(x) u_rj(x) + e, c_r ~ N(0, α spread_r²), a regression for every point x."""
    y, x = context.y, context.x
    if y.points.shape != x.points.shape or not torch.equal(y.points, x.points) or x.components != 1:
        raise InputError(
            "pointwise kernels need tokens and responses on the same points, and responses of one component."
        )
    if len(spread) != y.components:
        raise InputError(f"the tokens have {y.components} components, but {len(spread)} standard deviations are given.")
    X = context.U.unflatten(-2, (y.components, -1)).transpose(-3, -2)
    X = X.expand(*context.batch_shape, *X.shape[-3:])
    f = context.F.expand(*context.batch_shape, *context.F.shape[-2:])
    error = NOISE * context.d * X.square().mean(dim=(-3, -2, -1))[..., None, None]
    omega = X.new_tensor(list(spread)).reshape(1, *[1] * (X.ndim - 2), -1)
    return PointwisePosterior(regress(X, error.expand_as(f), f, omega), context.d, context)
